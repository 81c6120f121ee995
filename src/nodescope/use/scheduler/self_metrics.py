"""What the extender counts about itself, as families for /metrics."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nodescope import __version__
from nodescope.base.clock import Clock, process_cpu_seconds
from nodescope.base.self_counters import Histogram
from nodescope.kube.watch import ObjectWatch
from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.node import NO_LOAD, NO_STATE
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods

# From an answer that needs no thought to kube-scheduler's usual patience.
BOUNDS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

Labels = tuple[tuple[str, str], ...]
Samples = tuple[tuple[str, Labels, float], ...]
Family = tuple[str, str, str, Samples]
"""Name, type, sentence, samples of (suffix, labels, value)."""


@dataclass(slots=True)
class ExtenderTally:
    """Counters since the start."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By verb and outcome: ok, refused."""
    pods: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By verb and kind."""
    seconds: dict[str, Histogram] = field(
        default_factory=lambda: {verb: Histogram(BOUNDS_SECONDS) for verb in ("filter", "prioritize")}
    )


def derive_families(
    tally: ExtenderTally,
    nodes: Nodes,
    ledger: PlacedPods,
    watches: dict[str, ObjectWatch],
    clock: Clock,
    histogram_samples: Callable[[Histogram, Labels], Iterable[tuple[str, Labels, float]]],
) -> list[Family]:
    seen = count_annotations(nodes, clock.wall_ns() / 1e9)
    current = {name: float(watch.state.status == "current") for name, watch in watches.items()}
    errors = {name: float(watch.state.errors) for name, watch in watches.items()}
    events = {name: float(watch.state.events) for name, watch in watches.items()}
    return [
        (
            "nodescope_extender_requests_total",
            "counter",
            "Calls of kube-scheduler, by verb and outcome.",
            tuple(
                ("", (("verb", verb), ("outcome", outcome)), float(tally.requests[verb, outcome]))
                for verb in tally.seconds
                for outcome in ("ok", "refused")
            ),
        ),
        (
            "nodescope_extender_pods_total",
            "counter",
            "Pods that kube-scheduler asked about, by verb and by what they ask for.",
            tuple(
                ("", (("verb", verb), ("kind", kind)), float(tally.pods[verb, kind]))
                for verb in tally.seconds
                for kind in ("fpga", "gpu", "balance", "plain")
            ),
        ),
        (
            "nodescope_extender_seconds",
            "histogram",
            "Time from a whole request to its answer.",
            tuple(
                sample
                for verb, histogram in tally.seconds.items()
                for sample in histogram_samples(histogram, (("verb", verb),))
            ),
        ),
        one("nodescope_extender_nodes", "gauge", "Nodes that the watch knows.", len(nodes)),
        one("nodescope_extender_pods_in_flight", "gauge", "Pods placed that no window shows.", len(ledger)),
        (
            "nodescope_extender_annotations",
            "gauge",
            "Nodes by annotation and by what it is worth.",
            tuple(
                ("", (("annotation", which), ("state", state)), float(seen[which, state]))
                for which in ("fpga", "window")
                for state in ("fresh", "ageing", "stale", "broken", "absent")
            ),
        ),
        by_resource("nodescope_extender_watch_current", "gauge", "1 while a watch is up to date.", current),
        by_resource("nodescope_extender_watch_errors_total", "counter", "Interruptions of a watch.", errors),
        by_resource("nodescope_extender_watch_events_total", "counter", "Changes that a watch told.", events),
        one(
            "nodescope_process_cpu_seconds_total",
            "counter",
            "CPU time of the extender.",
            process_cpu_seconds(),
        ),
        (
            "nodescope_build_info",
            "gauge",
            "Version of nodescope; always 1.",
            (("", (("version", __version__),), 1.0),),
        ),
    ]


def count_annotations(nodes: Nodes, now_seconds: float) -> Counter[tuple[str, str]]:
    seen: Counter[tuple[str, str]] = Counter()
    for node in nodes.all():
        if node.fpga is not None:
            seen["fpga", name_state(now_seconds - node.fpga.at_ms / 1000)] += 1
        else:
            seen["fpga", "absent" if node.fpga_reason == NO_STATE else "broken"] += 1
        if node.load is not None:
            seen["window", name_state(now_seconds - node.load.at_seconds)] += 1
        else:
            seen["window", "absent" if node.load_reason == NO_LOAD else "broken"] += 1
    return seen


def name_state(age_seconds: float) -> str:
    confidence, _ = judge_age(age_seconds)
    return "fresh" if confidence == 1 else "ageing" if confidence else "stale"


def one(name: str, metric_type: str, sentence: str, value: float) -> Family:
    return name, metric_type, sentence, (("", (), float(value)),)


def by_resource(name: str, metric_type: str, sentence: str, values: dict[str, float]) -> Family:
    samples = tuple(("", (("resource", resource),), value) for resource, value in values.items())
    return name, metric_type, sentence, samples
