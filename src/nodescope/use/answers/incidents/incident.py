"""What an answer about incidents is made of; numbers are means of samples over some seconds, never of a fit."""

from dataclasses import dataclass

from nodescope.base.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class Change:
    """What one workload took, or lacked: before, and while it lasted."""

    workload: str
    container: str
    """One of its containers, as other questions take it."""
    metric: str
    unit: str
    before: float | None
    """None: it was not there."""
    after: float | None
    from_ms: int
    to_ms: int
    lag_seconds: float | None = None
    """Of a victim: how long after the cause it began."""
    overlap: float | None = None
    """Of a victim: the share of its time in which the cause was there."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One thing that happened: its cause, and whom it hit."""

    kind: str
    """taken, oom_kill, throttled, deploy, crash_loop, change, unexplained."""
    node: str
    resource: str
    """What was taken or lacked: cpu, memory, disk, network, memory bandwidth, GPU."""
    causes: tuple[Change, ...]
    """The first is the cause; then others of the same workload. Empty where the cause was not seen."""
    victims: tuple[Change, ...]
    victims_count: int
    from_ms: int
    to_ms: int
    is_over: bool
    confidence: float | None
    """Of a hundred generated incidents with such a score, in so many the named cause was the true one."""
    weight: float | None
    share: float | None = None
    """Of all that was taken at that time."""
    limit: float | None = None
    limit_before: float | None = None
    """Of one that was throttled: the limit before, where there was one."""
    killed_ms: int = 0
    kills: int = 0
    image_before: str = ""
    image_after: str = ""
    is_new: bool = False
    """The cause was not there before."""
    notes: tuple[str, ...] = ()
    """What somebody noted shortly before it began or while it lasted, each with its moment."""

    @property
    def cause(self) -> Change | None:
        return self.causes[0] if self.causes else None


@dataclass(frozen=True, slots=True)
class IncidentList:
    """At most three incidents of a node, the weightiest first."""

    node: str
    from_ms: int
    to_ms: int
    history_ms: int
    """How far back it was looked for what is usual."""
    incidents: tuple[Incident, ...]
    workloads: int
    containers: int
    asked: str
    """The container that was asked about; empty for the whole node."""
    background: tuple[str, ...]
    """What was there before as well, and is no news."""
    unseen: tuple[str, ...]
    """What could not be seen."""

    @property
    def span(self) -> TimeRange:
        return TimeRange(self.from_ms, self.to_ms)
