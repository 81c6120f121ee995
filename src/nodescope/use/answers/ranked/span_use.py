"""
Use over a span: what was used in it, divided by what was recorded of it, whoever was there for how long.

A job of ten seconds with two cores used 0.0056 cores over an hour, not two.
The mean while it was there stands beside it. Of a workload, what adds up
(cores, bytes) is the sum of its containers; a share of time is their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodescope.base.quantity import is_share, render_count, render_quantity, render_seconds
from nodescope.base.workload import UNSURE
from nodescope.use.answers.containers import Life, there_share
from nodescope.use.answers.levels import MetricLevel
from nodescope.use.answers.ranked.recorded import Recorded

# From this share on it was there all the time, but for rounding.
ALL_THE_TIME = 0.95
CPU_UNITS = {"cores": 1.0, "millicores": 1000.0}


@dataclass(frozen=True, slots=True)
class SpanUse:
    """How much of one metric a workload, or one container, used in a span."""

    over_span: float
    """The integral divided by the recorded part of the span."""
    mean: float
    """While any of it was there."""
    per_pod: float
    """Of one of its containers, while that one was there."""
    least: float
    most: float
    """Of single containers."""
    samples: int
    there_share: float
    """Of what was recorded of the span, how long any of it was there."""
    pods: int
    lives: int
    recorded_seconds: float | None = None
    """Where less than the span was recorded: how much."""


@dataclass(frozen=True, slots=True)
class NodeSize:
    """What a node has; None where it is not known."""

    cores: int | None = None
    memory_bytes: float | None = None

    def share(self, metric: str, unit: str, value: float) -> float | None:
        """Of all its cores or memory; None for what has no such whole."""
        if unit in CPU_UNITS and self.cores:
            return value / (self.cores * CPU_UNITS[unit])
        if unit == "bytes" and metric.startswith("memory") and self.memory_bytes:
            return value / self.memory_bytes
        return None


UNKNOWN_SIZE = NodeSize()


def add_up(
    lives: Sequence[Life], levels: Mapping[str, MetricLevel], recorded: Recorded, unit: str
) -> SpanUse | None:
    """All of these lives together; None where none of them has a sample."""
    mine = [(levels[life.id], there_share([life], recorded)) for life in lives if life.id in levels]
    if not mine:
        return None
    there = there_share(lives, recorded)
    whole = sum(share for _, share in mine)
    total = sum(level.mean * share for level, share in mine)
    per_pod = total / whole if whole else mine[-1][0].mean
    over_span = per_pod * there if is_share(unit) else total
    return SpanUse(
        over_span,
        over_span / there if there else per_pod,
        per_pod,
        min(level.least for level, _ in mine),
        max(level.most for level, _ in mine),
        sum(level.samples for level, _ in mine),
        there,
        len({life.pod or life.id for life in lives}),
        len(lives),
        None if recorded.is_whole else recorded.seconds,
    )


# -- sentences -----------------------------------------------------------------------


def render_use(use: SpanUse, unit: str, share: float | None = None) -> str:
    """`0.4 cores over the span (10 % of the node), 2 cores while there (20 % of the span), in 3 pods`."""
    of_node = f" ({render_quantity(share, 'ratio')} of the node)" if share is not None else ""
    span = render_recorded(use.recorded_seconds)
    words = [f"{render_quantity(use.over_span, unit)} over {span}{of_node}"]
    if use.there_share < ALL_THE_TIME:
        there = f"{render_quantity(use.there_share, 'ratio')} of {'the span' if use.recorded_seconds is None else 'them'}"
        words.append(f"{render_quantity(use.mean, unit)} while it was there ({there})")
    if use.pods > 1:
        words.append(f"in {render_count(use.pods, 'pod')}")
    if use.lives > use.pods:
        words.append(f"{use.lives} lives")
    words.append(f"from {render_quantity(use.least, unit)} to {render_quantity(use.most, unit)}")
    return ", ".join(words)


def render_recorded(recorded_seconds: float | None) -> str:
    """What a mean is over: `the span`, or `the 12 min of the span that were recorded`."""
    if recorded_seconds is None:
        return "the span"
    return f"the {render_seconds(recorded_seconds)} of the span that were recorded"


def render_kind(kind: str) -> str:
    """As a word in a sentence; a kind that is not certain is not claimed."""
    return "" if kind in (UNSURE, "container", "pod", "") else kind
