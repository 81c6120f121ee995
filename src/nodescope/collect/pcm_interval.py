"""
How long a PCM interval was, by PCM's own clock and by nothing else.

PCM stamps a row with local wall time, without a zone, after the counters were
read. Only differences are used: between two rows of one process they are the
interval. Where the clock cannot be trusted the time stamp counter can: the
cell TIME(ticks) says how many million ticks the row covers, and rows before
told how many there are in a second.

    first row            no row before it: not measured, unless ticks tell
    clock went back      the hour of a summer's end, or a second writer: ticks, or not measured
    much too long        a second writer, or a summer's beginning: ticks, or not measured
    same time            a row written twice: dropped
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

REASONS = ("first", "repeated", "backwards", "gap")
# Rows that agree with their neighbours before one may be doubted.
MEMORY = 9
# A self-correcting interval varies by milliseconds; a stall doubles it.
GAP_RATIO = 3.0
# Ticks per second are constant to a few parts per million; a printed count
# of three digits (before 2020) is off by half a percent at the most.
DOUBT_RATIO = 0.1


@dataclass(slots=True)
class IntervalClock:
    """Remembers the last row's time and what the last intervals were like."""

    _before: datetime | None = None
    _lengths: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    _tick_rates: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))

    def restart(self) -> None:
        """Another process: its first row has no row before it."""
        self._before = None

    def measure(self, date: str, time: str, ticks: float) -> float | str:
        """Seconds that a row covers, or the reason why nobody knows."""
        at = datetime.fromisoformat(f"{date.strip()} {time.strip()}")
        before, self._before = self._before, at
        by_ticks = ticks / median(self._tick_rates) if self._tick_rates and ticks > 0 else None
        if before is None:
            return by_ticks or "first"
        seconds = (at - before).total_seconds()
        if seconds == 0:
            return "repeated"
        if by_ticks is not None:
            return self._settle(seconds, by_ticks, ticks)
        if seconds < 0:
            return "backwards"
        if self._lengths and seconds > GAP_RATIO * median(self._lengths):
            return "gap"
        return self._remember(seconds, ticks)

    def _settle(self, seconds: float, by_ticks: float, ticks: float) -> float:
        """Two clocks: where they agree the calendar is finer, where not the ticks are right."""
        if abs(seconds - by_ticks) > DOUBT_RATIO * by_ticks:
            return by_ticks
        return self._remember(seconds, ticks)

    def _remember(self, seconds: float, ticks: float) -> float:
        self._lengths.append(seconds)
        if ticks > 0:
            self._tick_rates.append(ticks / seconds)
        return seconds
