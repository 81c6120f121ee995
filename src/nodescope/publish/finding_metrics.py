"""Findings on /metrics: a few stable labels, at most one series for each open finding."""

from collections.abc import Iterable, Sequence

from nodescope.base.findings import SEVERITIES, NodeFinding
from nodescope.serve.prometheus_text import Labels, MetricFamily, Sample, build_labelled, build_single
from nodescope.watch.watcher import Watcher

# Neither id nor pod: a finding that comes back goes on as the same series.
WHO = ("kind", "namespace", "workload", "container", "device")


def label_finding(finding: NodeFinding, *, more: tuple[str, ...] = ()) -> Labels:
    return tuple((name, str(getattr(finding, name))) for name in (*WHO, *more))


def build_finding_families(watcher: Watcher) -> Iterable[MetricFamily]:
    findings = [finding for finding in watcher.store.current() if finding.is_confirmed]
    heard = [one for one in findings if not one.silenced]
    counts = {name: sum(one.severity == name for one in heard) for name in SEVERITIES}
    sentence = "Confirmed findings that are open and not silenced."
    yield build_labelled("nodescope_findings", sentence, "severity", counts)
    sentence = "Confirmed findings that are open, and that a silence keeps from paging anybody."
    yield build_single("nodescope_findings_silenced", sentence, len(findings) - len(heard))
    yield from build_each(findings)
    status = watcher.status
    yield build_single("nodescope_watcher_looks_total", "Looks that the watcher took.", status.looks)
    sentence = "CPU time of the watcher."
    yield build_single("nodescope_watcher_cpu_seconds_total", sentence, status.cost_seconds)
    sentence = "Seconds from one look to the next; more than 10 while the node is busy."
    yield build_single("nodescope_watcher_look_seconds", sentence, status.look_seconds)
    sentence = "Findings that were not kept because too many are open."
    yield build_single("nodescope_findings_refused_total", sentence, watcher.store.refused)


def build_each(findings: Sequence[NodeFinding]) -> Iterable[MetricFamily]:
    """Nothing where nothing is wrong."""
    infos: tuple[Sample, ...] = tuple(
        (
            "",
            (*label_finding(finding, more=("severity",)), ("silenced", str(bool(finding.silenced)).lower())),
            1.0,
        )
        for finding in findings
    )
    if infos:
        yield MetricFamily("nodescope_finding_info", "A confirmed finding that is open; always 1.", infos)
    lefts: tuple[Sample, ...] = tuple(
        ("", label_finding(finding), finding.time_to_limit_seconds)
        for finding in findings
        if finding.time_to_limit_seconds is not None
    )
    if lefts:
        sentence = "Seconds until a limit is reached at this pace: memory of a container, or a file system."
        yield MetricFamily("nodescope_time_to_limit_seconds", sentence, lefts)
