"""
What the nodes' FPGA states say together: how long a session is, and what a pod keeps busy.

Each figure is a median over the nodes whose state is believed. One node that
reports in wrong units, or that lies, moves a median by one place at most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.node import AnnotatedNode, Recent
from nodescope.use.scheduler.placed_pods import SHARE, PlacedPods

# Guess, used until the first report; and what is believed of reports.
SESSION_MS = 1000.0
SESSION_BOUNDS_MS = (1.0, 3_600_000.0)
# Share of its device that a pod which was just placed will keep busy: a guess,
# until it is learned from pods that run, and then within these bounds.
SHARE_BOUNDS = (0.05, 0.5)


@dataclass(frozen=True, slots=True)
class FpgaCluster:
    """The cluster's FPGAs at one moment."""

    session_ms: float = SESSION_MS
    """Typical length of a session."""
    single: float = 0.0
    """Share of pods that run one session each; 0 where no session was reported."""
    share: float = SHARE
    """Share of its device that a pod keeps busy."""


def derive_cluster(nodes: Sequence[AnnotatedNode], placed: PlacedPods, now_ms: int) -> FpgaCluster:
    recent = {node.name: node.fpga.recent(now_ms) for node in nodes if node.fpga}
    believed = [node for node in nodes if is_believed(node, now_ms)]
    bound = placed.bound_lately()
    active = [(node.name, recent[node.name]) for node in believed if recent[node.name].sessions > 0]
    lengths = [one.usage_ms / one.sessions for _, one in active if one.usage_ms > 0]
    singles = [min(1.0, bound.get(name, 0) / one.sessions) for name, one in active]
    return FpgaCluster(
        clamp(median(lengths), SESSION_BOUNDS_MS) if lengths else SESSION_MS,
        median(singles) if singles else 0.0,
        clamp(median(shares), SHARE_BOUNDS)
        if (shares := list(yield_shares(believed, recent, placed)))
        else SHARE,
    )


def is_believed(node: AnnotatedNode, now_ms: int) -> bool:
    """Whether a node has a state, and one that is neither stale nor from the future."""
    return node.fpga is not None and judge_age((now_ms - node.fpga.at_ms) / 1000)[0] > 0


def yield_shares(
    nodes: Sequence[AnnotatedNode], recent: Mapping[str, Recent], placed: PlacedPods
) -> Iterator[float]:
    """What a pod keeps busy of its device, by the nodes whose windows show their pods."""
    for node in nodes:
        pods = placed.settled(node.name)
        if pods and node.fpga is not None:
            yield recent[node.name].usage_ms / node.fpga.window_ms / pods


def clamp(value: float, bounds: tuple[float, float]) -> float:
    return min(bounds[1], max(bounds[0], value))
