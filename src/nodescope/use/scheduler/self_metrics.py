"""What the extender counts about itself, as families for /metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

from nodescope import __version__
from nodescope.base.clock import Clock, process_cpu_seconds
from nodescope.base.self_counters import Histogram
from nodescope.kube.watch import ObjectWatch, WatchState
from nodescope.serve.prometheus_text import (
    Labels,
    MetricFamily,
    build_histogram,
    build_labelled,
    build_single,
)
from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.node import NO_LOAD, NO_STATE
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.pod_request import KINDS, PLAIN

STATES = ("fresh", "ageing", "stale", "broken", "absent")
# From an answer without any rating up to kube-scheduler's usual timeout.
BOUNDS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


@dataclass(slots=True)
class ExtenderCounters:
    """Counters since the start."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By verb and outcome: ok, refused."""
    pods: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By verb and kind."""
    renewals: Counter[str] = field(default_factory=Counter)
    """Of standing costs: by the thread, and by calls that had to wait for it."""
    seconds: dict[str, Histogram] = field(
        default_factory=lambda: {verb: Histogram(BOUNDS_SECONDS) for verb in ("filter", "prioritize")}
    )


def derive_families(
    counters: ExtenderCounters,
    nodes: Nodes,
    placed: PlacedPods,
    watches: Mapping[str, ObjectWatch],
    clock: Clock,
) -> list[MetricFamily]:
    verbs = list(counters.seconds)
    requests = {key: counters.requests[key] for key in product(verbs, ("ok", "refused"))}
    pods = {key: counters.pods[key] for key in product(verbs, (*KINDS, PLAIN))}
    pods_help = "Pods that kube-scheduler asked about, by verb and by what they ask for."
    seconds: dict[Labels, Histogram] = {(("verb", verb),): one for verb, one in counters.seconds.items()}
    seen = count_annotations(nodes, clock.wall_ns() / 1e9)
    worth = {key: seen[key] for key in product(("fpga", "window"), STATES)}
    cpu_seconds = process_cpu_seconds()
    return [
        build_labelled(
            "nodescope_extender_requests_total",
            "Calls of kube-scheduler, by verb and outcome.",
            ("verb", "outcome"),
            requests,
        ),
        build_labelled("nodescope_extender_pods_total", pods_help, ("verb", "kind"), pods),
        build_histogram("nodescope_extender_seconds", "Time from a whole request to its answer.", seconds),
        build_single("nodescope_extender_nodes", "Nodes that the watch knows.", len(nodes)),
        build_single("nodescope_extender_pods_in_flight", "Pods placed that no window shows.", len(placed)),
        build_single(
            "nodescope_extender_pods_settled",
            "FPGA pods that run and that windows show.",
            placed.count_settled(),
        ),
        build_labelled(
            "nodescope_extender_pods_bound_total",
            "Pods that ask for what is rated here and were bound, by whether a scheduler asked this replica.",
            "asked",
            {"true": placed.bound_total[True], "false": placed.bound_total[False]},
        ),
        build_labelled(
            "nodescope_extender_cost_renewals_total",
            "Renewals of what nodes of a large cluster cost, by the thread or by a call that waited for it.",
            "by",
            {who: counters.renewals[who] for who in ("thread", "call")},
        ),
        build_labelled(
            "nodescope_extender_annotations",
            "Nodes by annotation and by what it is worth.",
            ("annotation", "state"),
            worth,
        ),
        *watch_families({name: watch.state for name, watch in watches.items()}),
        build_single("nodescope_process_cpu_seconds_total", "CPU time of the extender.", cpu_seconds),
        build_labelled(
            "nodescope_build_info", "Version of nodescope; always 1.", "version", {__version__: 1}
        ),
    ]


def watch_families(states: Mapping[str, WatchState]) -> Iterable[MetricFamily]:
    current = {name: state.status == "current" for name, state in states.items()}
    errors = {name: state.errors for name, state in states.items()}
    events = {name: state.events for name, state in states.items()}
    for name, sentence, values in (
        ("nodescope_extender_watch_current", "1 while a watch is up to date.", current),
        ("nodescope_extender_watch_errors_total", "Interruptions of a watch.", errors),
        ("nodescope_extender_watch_events_total", "Changes that a watch told.", events),
    ):
        yield build_labelled(name, sentence, "resource", values)


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
