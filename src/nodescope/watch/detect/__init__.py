"""One module for each kind of finding: it takes looks and says what it sees."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from nodescope.watch.detect.crash_loop import CrashLoops
from nodescope.watch.detect.disk_full import FullDisks
from nodescope.watch.detect.gpu_loss import LostGpus
from nodescope.watch.detect.memory_leak import Leaks
from nodescope.watch.detect.noisy_neighbour import Neighbours
from nodescope.watch.detect.oom_kill import Kills
from nodescope.watch.detect.throttling import Throttling
from nodescope.watch.detect.waste import Waste
from nodescope.watch.look import NodeLook
from nodescope.watch.sighting import Sighting


class Detector(Protocol):
    """Keeps what it needs between looks, and no more than its containers are."""

    quiet_seconds: float
    """So long after the last sighting a finding of its kind is over."""

    def look(self, look: NodeLook) -> list[Sighting]: ...


@runtime_checkable
class Learner(Protocol):
    """A detector that knows by name what was harmless; it outlives the agent."""

    def remember(self) -> dict[str, float]: ...

    def recall(self, known: Mapping[str, float]) -> None: ...


def build_detectors() -> dict[str, Detector]:
    """By kind."""
    return {
        "memory_leak": Leaks(),
        "oom_kill": Kills(),
        "disk_full": FullDisks(),
        "gpu_loss": LostGpus(),
        "crash_loop": CrashLoops(),
        "noisy_neighbour": Neighbours(),
        "cpu_throttling": Throttling(),
        "waste": Waste(),
    }
