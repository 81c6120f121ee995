"""
A finding as an Event of Kubernetes: about the pod, under a name that never changes.

    nodescope-<finding>-<state>     in the pod's namespace

The same moment told twice is the same object, so that nothing is doubled by
a restart or by an answer that was lost on its way.
"""

from datetime import UTC, datetime
from typing import Any

from nodescope.base.findings import NodeFinding
from nodescope.base.text import clean_text

COMPONENT = "nodescope"
# The API server takes 1,024 bytes where it is strict; a character may have four.
MESSAGE_BYTES = 1000
# Words as the kubelet's own reasons are.
REASONS = {
    "memory_leak": "MemoryLeak",
    "oom_kill": "OOMKilled",
    "disk_full": "DiskFull",
    "gpu_loss": "GpuLost",
    "crash_loop": "CrashLoop",
    "noisy_neighbour": "NoisyNeighbour",
    "cpu_throttling": "CpuThrottled",
    "waste": "RequestsUnused",
}


def is_for_pods(finding: NodeFinding) -> bool:
    """Confirmed once, about a pod, and worth its reader's time."""
    is_told = finding.is_confirmed or (not finding.is_open and finding.confirmed is not None)
    is_wanted = finding.severity != "curious" and not finding.silenced
    return is_told and is_wanted and bool(finding.namespace and finding.pod)


def name_event(finding: NodeFinding) -> str:
    return f"{COMPONENT}-{finding.id}-{finding.state}"


def build_event(finding: NodeFinding, count: int) -> dict[str, Any]:
    """Of core/v1: `kubectl describe pod` and all dashboards know its count and times."""
    is_over = not finding.is_open
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": finding.namespace, "name": finding.pod}
    if "-" in finding.pod_uid:
        # kubectl describe asks for Events of this very pod. A static pod's cgroup has
        # the hash of its manifest instead, which no object of the API server has.
        pod["uid"] = finding.pod_uid
    if finding.container:
        pod["fieldPath"] = f"spec.containers{{{finding.container}}}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name_event(finding), "namespace": finding.namespace},
        "involvedObject": pod,
        "reason": REASONS[finding.kind] + ("Resolved" if is_over else ""),
        "type": "Normal" if is_over or finding.severity == "waste" else "Warning",
        "source": {"component": COMPONENT, "host": finding.node},
        "reportingComponent": COMPONENT,
        "reportingInstance": finding.node,
        "firstTimestamp": render_utc(finding.updated),
        **build_change(finding, count),
    }


def build_change(finding: NodeFinding, count: int) -> dict[str, Any]:
    """What is new in an Event that is there already."""
    return {
        "message": render_message(finding),
        "lastTimestamp": render_utc(finding.updated),
        "count": count,
    }


def render_message(finding: NodeFinding) -> str:
    words = f"Over: {finding.sentence}" if not finding.is_open else finding.sentence
    if finding.is_open and finding.advice:
        words = f"{words} Look at: {finding.advice}"
    text = clean_text(words, MESSAGE_BYTES)
    return text.encode()[:MESSAGE_BYTES].decode(errors="ignore")


def render_utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
