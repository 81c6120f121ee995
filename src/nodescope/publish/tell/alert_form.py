"""
A finding as an alert of Alertmanager's API v2.

Its labels are those of the alerts that our Prometheus rules make of the same
finding (deploy/prometheus/rules.yaml), so that Alertmanager, which knows alerts
by their labels, takes both for one.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nodescope.base.findings import NodeFinding
from nodescope.base.findings.node_finding import PAGE_SEVERITIES
from nodescope.base.text import clean_text

# By severity of a finding: the rule's name and its label severity.
ALERTS = {"kill": ("FindingKill", "critical"), "hurt": ("FindingHurt", "warning")}
WHO = ("kind", "namespace", "workload", "container", "device", "node")
TEXT_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class AlertForm:
    """How this node's alerts are labelled."""

    cluster: str = ""

    def build(
        self, finding: NodeFinding, severity: str, starts: float, ends: float | None = None
    ) -> dict[str, Any]:
        """With `ends` it is over; without, Alertmanager waits for its resolve_timeout."""
        name, level = ALERTS[severity]
        labels = {"alertname": name, "severity": level, "cluster": self.cluster}
        labels |= {key: str(getattr(finding, key)) for key in WHO}
        moments = {"startsAt": render_moment(starts)}
        if ends is not None:
            moments["endsAt"] = render_moment(max(ends, starts))
        return {
            # An empty label is no label.
            "labels": {key: clean_text(value) for key, value in labels.items() if value},
            "annotations": describe(finding),
            **moments,
        }


def describe(finding: NodeFinding) -> dict[str, str]:
    words = {
        "summary": finding.sentence,
        "description": finding.advice,
        "cause": finding.cause,
        "victims": ", ".join(finding.victims),
        "pod": finding.pod,
        "finding": finding.id,
        "runbook": f"docs/runbooks.md#{ALERTS[finding.severity][0].lower()}"
        if finding.severity in ALERTS
        else "",
    }
    return {key: clean_text(text, TEXT_CHARACTERS) for key, text in words.items() if text}


def was_page_worthy(finding: NodeFinding) -> bool:
    """Of one that is over: whether somebody should have been told while it lasted."""
    is_told = not finding.is_open and finding.confirmed is not None and not finding.silenced
    return is_told and finding.severity in PAGE_SEVERITIES


def render_moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
