"""What the adapter counts about itself, as families for /metrics."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodescope import __version__
from nodescope.base.clock import process_cpu_seconds
from nodescope.base.self_counters import Histogram
from nodescope.kube.watch import WatchState
from nodescope.serve.prometheus_text import (
    Labels,
    MetricFamily,
    build_histogram,
    build_labelled,
    build_single,
)
from nodescope.use.adapter.pod_index import PodIndex

GROUPS = ("custom.metrics.k8s.io", "external.metrics.k8s.io")
BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


@dataclass(slots=True)
class AdapterCounters:
    """Counters since the start."""

    seconds: dict[str, Histogram] = field(
        default_factory=lambda: {group: Histogram(BOUNDS_SECONDS) for group in GROUPS}
    )
    values: Counter[str] = field(default_factory=Counter)
    """Given, by group."""
    refused: Counter[int] = field(default_factory=Counter)
    """Questions without an answer, by status."""


def derive_adapter_families(
    counters: AdapterCounters, index: PodIndex, requests: Mapping[str, int], watch: WatchState
) -> list[MetricFamily]:
    seconds: dict[Labels, Histogram] = {(("group", group),): one for group, one in counters.seconds.items()}
    values = {group: counters.values[group] for group in GROUPS}
    refused = {str(status): count for status, count in sorted(counters.refused.items())}
    asked = {outcome: requests.get(outcome, 0) for outcome in ("ok", "failed")}
    build = {__version__: 1}
    return [
        build_histogram("nodescope_adapter_seconds", "Time from a question to its answer.", seconds),
        build_labelled("nodescope_adapter_values_total", "Values that were given, by API.", "group", values),
        build_labelled("nodescope_adapter_refused_total", "Questions without an answer.", "status", refused),
        build_labelled(
            "nodescope_adapter_agent_requests_total", "Questions to agents, by outcome.", "outcome", asked
        ),
        build_single("nodescope_adapter_pods", "Pods that the watch knows.", len(index)),
        build_single("nodescope_adapter_agents", "Nodes whose agent is known.", index.count_agents()),
        build_single(
            "nodescope_adapter_watch_current",
            "1 while the watch of pods is up to date.",
            watch.status == "current",
        ),
        build_single(
            "nodescope_adapter_watch_errors_total", "Interruptions of the watch of pods.", watch.errors
        ),
        build_single(
            "nodescope_process_cpu_seconds_total", "CPU time of the adapter.", process_cpu_seconds()
        ),
        build_labelled("nodescope_build_info", "Version of nodescope; always 1.", "version", build),
    ]
