"""A pretended node: many containers with working processes in real cgroups."""

import contextlib
from collections.abc import Iterator

from tests.cgroups import Cgroups, Group, why_not

from bench.compiled import compiled

PROCESSES = 2


@contextlib.contextmanager
def containers(count: int, processes: int = PROCESSES, pause_ms: int = 100) -> Iterator[list[Group]]:
    """
    Half of them named as kubelet's cgroupfs driver does, half as systemd's.

    Each process wakes up and works a little after every pause.
    """
    reason = why_not()
    if reason:
        raise SystemExit(f"this bench needs real cgroups: {reason}")
    worker = str(compiled("worker"))
    with Cgroups() as cgroups:
        made = [cgroups.container(driver="systemd" if number % 2 else "cgroupfs") for number in range(count)]
        for group in made:
            group.limit(memory_bytes=64 << 20, cpu_cores=0.5)
            for _ in range(processes):
                group.spawn([worker, str(pause_ms)])
        yield made
