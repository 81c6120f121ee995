"""
A day of the agent in minutes: 100 containers, scraped, with churn; what its memory, descriptors and threads do.

`run(scale)` ticks the real agent's parts, one tick after the other, on a clock that is
turned by hand: scale 1.0 is 86,400 ticks. Every tenth tick one container goes and
another comes, every fifteenth is scraped over HTTP, as Prometheus does.

The node is a copy of a fixture in memory, with real folders and files that come and go.
Cgroups of the kernel would cost six times as much a tick, and those of whoever else uses
the machine would be in the figure.
"""

import itertools
import os
import shutil
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
from tests.integration.agents import TurnableClock, serving, tick
from tests.support import NODES
from tests.torture.result import TortureRow, at_most

from nodescope.base.settings_load import load_settings
from nodescope.publish.self_metrics import read_resident_bytes
from nodescope.serve.allocator import settle_allocator
from nodescope.wiring import build_parts, settle_process

NODE = "cgroup2-cgroupfs"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
TICKS = 86_400
HOUR_TICKS = 3600
CONTAINERS = 100
CHURN_TICKS = 10
SCRAPE_TICKS = 15
LOOK_TICKS = 300
MIB = 2**20
# After the first hour: obituaries, ring and caches have their size by then.
SLOPE_MIB_PER_HOUR = 0.1


@dataclass
class Course:
    """What was seen, look by look."""

    ticks: list[int] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def look(self, number: int) -> None:
        self.ticks.append(number)
        self.resident.append(read_resident_bytes() / MIB)
        self.descriptors.append(len(os.listdir("/proc/self/fd")))
        self.threads.append(threading.active_count())

    def slope(self) -> float:
        """MiB an hour, by least squares over what came after the first hour."""
        late = [
            place for place, number in enumerate(self.ticks) if number >= min(HOUR_TICKS, self.ticks[-1] // 3)
        ]
        hours = np.array([self.ticks[place] / HOUR_TICKS for place in late])
        resident = np.array([self.resident[place] for place in late])
        return float(np.polyfit(hours, resident, 1)[0])

    def growth(self, values: list[int]) -> int:
        """The second half's most above the first half's."""
        half = len(values) // 2
        return max(values[half:]) - max(values[:half])


class DayNode:
    """A node whose containers come and go."""

    def __init__(self, folder: Path, first: int = 1) -> None:
        """The containers' ids are numbers from `first` on."""
        self.root = Path(shutil.copytree(NODES / NODE / "t0", folder / "node", symlinks=True))
        pods = self.root.glob("sys/fs/cgroup/kubepods*/**/pod*/*")
        self._model = next(path for path in pods if len(path.name) == 64)
        self._numbers = itertools.count(first)
        self.made: deque[Path] = deque()

    def add(self) -> None:
        made = self._model.with_name(f"{next(self._numbers):064x}")
        self.made.append(shutil.copytree(self._model, made))

    def replace_oldest(self) -> None:
        shutil.rmtree(self.made.popleft())
        self.add()


def run(scale: float = 1.0, seconds: float = 7200.0) -> list[TortureRow]:
    deadline = time.monotonic() + seconds
    ticks = max(4 * LOOK_TICKS, int(TICKS * scale))
    course = Course()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        node = DayNode(Path(name))
        for _ in range(CONTAINERS):
            node.add()
        settle_allocator()
        parts = build_parts(load_settings({"root": str(node.root)}, {}, {}, ""), TurnableClock())
        settle_process()
        with serving(parts) as client:
            try:
                for number in range(ticks):
                    tick(parts, 1)
                    live(node, client, number)
                    if number % LOOK_TICKS == 0:
                        course.look(number)
                    if time.monotonic() > deadline:
                        break
            finally:
                parts.sampler.stop()
    hours = course.ticks[-1] / HOUR_TICKS
    remark = f"{hours:.1f} h, {course.resident[0]:.0f} to {course.resident[-1]:.0f} MiB"
    return [
        at_most("a day", "memory, MiB an hour after the first", course.slope(), SLOPE_MIB_PER_HOUR, remark),
        at_most("a day", "descriptors more in the second half", course.growth(course.descriptors), 0),
        at_most("a day", "threads more in the second half", course.growth(course.threads), 0),
    ]


def live(node: DayNode, client: httpx.Client, number: int) -> None:
    """What happens on the node in one second."""
    if number % CHURN_TICKS == 0:
        node.replace_oldest()
    if number % SCRAPE_TICKS == 0:
        client.get("/metrics").raise_for_status()


if __name__ == "__main__":
    for row in run():
        print(row.render())
