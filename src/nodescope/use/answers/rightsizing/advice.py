"""
What a container should request and be limited to, what that saves, and the risk.

CPU: the request is what the 95th percentile of the seconds of its busiest
minutes needs, with a tenth to spare. A CPU limit is recommended only where
there is one today, above its highest second.
Memory: request and limit stand on the crest of what cannot be reclaimed, with
15 and 30 % to spare. A limit at which it was killed is raised by half.
"""

import math
from dataclasses import dataclass

from nodescope.use.answers.rightsizing.need import ContainerNeed

DAY_SECONDS = 86_400.0
# A tick is late now and then; an agent restarts.
ENOUGH_SECONDS = 0.98 * DAY_SECONDS
CPU_SPARE, CPU_LIMIT_SPARE = 1.1, 1.5
MEMORY_SPARE, MEMORY_LIMIT_SPARE, KILLED_SPARE = 1.15, 1.3, 1.5
MIB = 2.0**20
LEAST_CORES, LEAST_BYTES = 0.01, 16 * MIB
# A change of less is not worth a deploy.
SAME_SHARE = 0.1
# Share of periods in which a limit hides what is needed.
HELD_BACK = 0.01
GROWS = 1.05

NOT_YET, SIZED, FITS, UNKNOWN = "not_yet", "sized", "fits", "not_measured"


@dataclass(frozen=True, slots=True)
class SizeAdvice:
    """The recommendation for one container, with the facts it rests on."""

    need: ContainerNeed
    state: str
    """sized, fits (as it is), not_yet (less than a day was seen), not_measured."""
    cpu_request: float | None = None
    cpu_limit: float | None = None
    memory_request: float | None = None
    memory_limit: float | None = None

    @property
    def saved_cores(self) -> float | None:
        """Of all replicas; less than nothing where more is needed. None without a request to compare with."""
        return self._saved(self.need.cpu_request, self.cpu_request)

    @property
    def saved_bytes(self) -> float | None:
        return self._saved(self.need.memory_request, self.memory_request)

    def _saved(self, now: float | None, then: float | None) -> float | None:
        return None if now is None or then is None else (now - then) * self.need.replicas

    @property
    def ready_ms(self) -> int:
        """From when on a day has been seen, if it goes on running."""
        return self.need.last_ms + round(1000 * max(0.0, ENOUGH_SECONDS - self.need.seen_seconds))

    @property
    def weight(self) -> float:
        """
        A core costs about as much as four GiB; a lack weighs as much as a surplus.

        Before its day is over: what is unused of its requests, or of its limits where requests are not known.
        """
        need = self.need
        if self.state == NOT_YET:
            pairs = (
                (need.cpu_limit if need.cpu_request is None else need.cpu_request, need.cpu_busy),
                (need.memory_limit if need.memory_request is None else need.memory_request, need.memory_most),
            )
            cores, count = (need.replicas * max(0.0, (now or 0.0) - (used or 0.0)) for now, used in pairs)
        else:
            cores, count = abs(self.saved_cores or 0.0), abs(self.saved_bytes or 0.0)
        return cores + count / (4 * 1024 * MIB)


def advise(need: ContainerNeed) -> SizeAdvice:
    if need.cpu_busy is None and need.memory_most is None:
        return SizeAdvice(need, UNKNOWN)
    if need.seen_seconds < ENOUGH_SECONDS:
        return SizeAdvice(need, NOT_YET)
    cpu, cpu_limit = advise_cpu(need)
    memory, memory_limit = advise_memory(need)
    pairs = (
        (need.cpu_request, cpu),
        (need.cpu_limit, cpu_limit),
        (need.memory_request, memory),
        (need.memory_limit, memory_limit),
    )
    state = FITS if all(is_same(now, then) for now, then in pairs) else SIZED
    return SizeAdvice(need, state, cpu, cpu_limit, memory, memory_limit)


def advise_cpu(need: ContainerNeed) -> tuple[float | None, float | None]:
    if need.cpu_busy is None:
        return None, None
    request = round_cores(need.cpu_busy * CPU_SPARE)
    if need.cpu_limit is None:
        return request, None
    limit = round_cores(max(need.cpu_most or 0.0, request) * CPU_LIMIT_SPARE)
    if is_held_back(need):
        # What it would have used without the limit was never seen.
        limit = round_cores(max(limit, need.cpu_limit * CPU_LIMIT_SPARE))
        request = max(request, min(need.cpu_request or 0.0, limit))
    return request, limit


def is_held_back(need: ContainerNeed) -> bool:
    return need.cpu_limit is not None and (need.throttled or 0.0) >= HELD_BACK


def advise_memory(need: ContainerNeed) -> tuple[float | None, float | None]:
    if need.memory_most is None:
        return None, None
    request, limit = need.memory_most * MEMORY_SPARE, need.memory_most * MEMORY_LIMIT_SPARE
    if need.oom_kills:
        killed_at = need.killed_at or need.memory_limit or need.memory_most
        limit = max(limit, killed_at * KILLED_SPARE)
        request = max(request, killed_at)
    return round_bytes(request), round_bytes(limit)


def round_cores(cores: float) -> float:
    """Up, to a hundredth of a core; from one core on to a twentieth."""
    step = 0.01 if cores < 1 else 0.05
    return round(max(LEAST_CORES, math.ceil(cores / step - 1e-9) * step), 3)


def round_bytes(count: float) -> float:
    """Up, to whole MiB: of eight below a GiB, of 64 above."""
    step = (8 if count < 1024 * MIB else 64) * MIB
    return max(LEAST_BYTES, math.ceil(count / step - 1e-9) * step)


def is_same(now: float | None, then: float | None) -> bool:
    """Near enough to leave it; nothing recommended is nothing to change."""
    return then is None or (now is not None and abs(now - then) <= SAME_SHARE * max(now, then))
