"""What the sampler counts about itself, for publish; nothing is decided by it."""

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field

# How late a tick may be: from less than a scheduler quantum to a whole tick.
LATE_BOUNDS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(slots=True)
class Histogram:
    """A Prometheus histogram: cumulative buckets, sum, count."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass(slots=True)
class ContainerCounters:
    """What was not believed, not looked at or not measured of containers, since the agent's start."""

    refused: Counter[str] = field(default_factory=Counter)
    """Cgroups that claimed another's container or pod, by what they claimed."""
    refused_now: dict[str, str] = field(default_factory=dict)
    """Those that are there now: path -> sentence."""
    cut_now: dict[str, str] = field(default_factory=dict)
    """Who nests more cgroups than are looked into, and what may not be listed: path -> sentence."""
    unmeasured: Counter[str] = field(default_factory=Counter)
    """Containers that came and went between two ticks: with a last look, or without any."""
    overflows: int = 0
    """How often the kernel's queue of news about cgroups was full."""


@dataclass(slots=True)
class SamplerCounters:
    """Counters since the agent's start."""

    ticks: int = 0
    missed: int = 0
    late_seconds: Histogram = field(default_factory=lambda: Histogram(LATE_BOUNDS_SECONDS))
    cost_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    """Entities over their scope's limit, counted at every tick: the rate is how many are left out."""
    over_limit: dict[str, int] = field(default_factory=dict)
    """The same, of the last tick alone."""
    last_ok_mono_ns: dict[str, int] = field(default_factory=dict)
    newest_mono_ns: int | None = None
    loop_mono_ns: int | None = None
    """When the loop last ran, whether or not it sampled."""
    containers: ContainerCounters = field(default_factory=ContainerCounters)
