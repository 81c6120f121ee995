"""
Raw counters into sums that only grow: for counters that wrap, reset or are estimated.

What a counter did between two readings is added, and the time between them
beside it; where nobody can know what it did, neither is. So a window over the
pair is exact, and a reset makes it shorter, not wrong.
"""

from dataclasses import dataclass, field

# A counter that wraps may have wrapped more than once in a longer gap: the
# fastest, RAPL's on a large machine, takes a minute.
LONGEST_GAP_SECONDS = 45.0


@dataclass(slots=True)
class Grown:
    """One counter's sum and the seconds in which it was counted."""

    value: float
    at_seconds: float
    total: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class CounterSum:
    """Sums by name."""

    known: dict[str, Grown] = field(default_factory=dict)

    def add(
        self, name: str, value: float | None, at_seconds: float, wraps_at: float | None = None
    ) -> Grown | None:
        """The sums after this reading; None while it was never read."""
        grown = self.known.get(name)
        if value is None:
            return grown
        if grown is None:
            grown = self.known[name] = Grown(value, at_seconds)
            return grown
        increase, elapsed = value - grown.value, at_seconds - grown.at_seconds
        grown.value, grown.at_seconds = value, at_seconds
        if increase < 0 and wraps_at and elapsed <= LONGEST_GAP_SECONDS:
            increase += wraps_at
        if increase >= 0:
            grown.total += increase
            grown.seconds += elapsed
        return grown
