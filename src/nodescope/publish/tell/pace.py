"""How often somebody may be told: a burst at first, then one by one."""

from dataclasses import dataclass, field

from nodescope.base.clock import Clock


@dataclass(slots=True)
class SendPace:
    clock: Clock
    burst: int
    every_seconds: float
    """One more may be sent after this long."""
    _left: float = field(init=False)
    _seen_mono_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self._left = float(self.burst)
        self._seen_mono_ns = self.clock.mono_ns()

    def take(self) -> bool:
        """Whether one may be sent now; it counts as sent."""
        now_ns = self.clock.mono_ns()
        grown = (now_ns - self._seen_mono_ns) / 1e9 / self.every_seconds
        self._left = min(float(self.burst), self._left + grown)
        self._seen_mono_ns = now_ns
        if self._left < 1:
            return False
        self._left -= 1
        return True
