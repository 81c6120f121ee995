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
# A minute of rows: a time stamp is printed after the counters were read, on a
# busy machine some 100 ms after, so one rate of ticks tells little, a median much.
MEMORY = 61
KNOWN = 5
# A self-correcting interval varies by milliseconds; a stall doubles it.
GAP_RATIO = 3.0
# Ticks per second are constant to a few parts per million; a printed count
# of three digits (before 2020) is off by half a percent at the most.
DOUBT_RATIO = 0.1
# Millions: less than a millisecond of the slowest clock measures nothing.
LEAST_TICKS = 1.0


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
        by_ticks = self._count_ticks(ticks)
        if before is None:
            return by_ticks or "first"
        seconds = (at - before).total_seconds()
        if seconds == 0:
            return "repeated"
        is_odd = seconds < 0 or (bool(self._lengths) and seconds > GAP_RATIO * median(self._lengths))
        if not is_odd:
            self._remember(seconds, ticks)
        if by_ticks is not None and abs(seconds - by_ticks) > DOUBT_RATIO * by_ticks:
            # Where the clocks agree the calendar does; where not, the ticks
            # are what the counts of this row cover.
            return by_ticks
        if is_odd and by_ticks is None:
            return "backwards" if seconds < 0 else "gap"
        return seconds

    def _count_ticks(self, ticks: float) -> float | None:
        """Seconds by the time stamp counter, once its rate is known well."""
        if len(self._tick_rates) < KNOWN or ticks < LEAST_TICKS:
            return None
        return ticks / median(self._tick_rates)

    def _remember(self, seconds: float, ticks: float) -> None:
        self._lengths.append(seconds)
        if ticks >= LEAST_TICKS:
            self._tick_rates.append(ticks / seconds)
