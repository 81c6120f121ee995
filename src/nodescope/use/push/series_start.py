"""
Since when a counter counts: OTLP wants it with every point.

Counters of the kernel count from boot, a container's from its start. Where the
beginning is not known, the first point begins its own series (start = time):
what was counted before it is nobody's increase. A counter that fell began
again after its last point; one that the kernel is known to lower a little stays
where it was. https://opentelemetry.io/docs/specs/otel/metrics/data-model/#resets-and-gaps
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

# A series that was not seen in so many pushes is forgotten.
PUSHES_KEPT = 60


@dataclass(slots=True)
class Counted:
    start_ns: int
    at_ns: int
    value: float
    push: int


@dataclass(slots=True)
class SeriesStarts:
    """The begin of every series that is pushed."""

    _known: dict[Hashable, Counted] = field(default_factory=dict)
    _push: int = 0

    def turn(self) -> None:
        """A push begins: what was not seen for long is forgotten."""
        self._push += 1
        if self._push % PUSHES_KEPT == 0:
            least = self._push - PUSHES_KEPT
            self._known = {key: one for key, one in self._known.items() if one.push >= least}

    def begin(self, key: Hashable, value: float, at_ns: int, began_ns: int | None) -> int:
        """Of an amount that may fall."""
        known = self._known.get(key)
        if known is None:
            start_ns = min(began_ns, at_ns) if began_ns is not None else at_ns
            known = self._known[key] = Counted(start_ns, at_ns, value, self._push)
        known.at_ns, known.value, known.push = at_ns, value, self._push
        return known.start_ns

    def count(
        self, key: Hashable, value: float, at_ns: int, began_ns: int | None, *, may_dip: bool
    ) -> tuple[int, float]:
        """Of a counter: since when it counts, and what it says."""
        known = self._known.get(key)
        if known is not None and value < known.value:
            if may_dip:
                value = known.value
            else:
                # A series of one point began with it: the next begins with its own.
                known.start_ns = known.at_ns if known.at_ns > known.start_ns else at_ns
        return self.begin(key, value, at_ns, began_ns), value
