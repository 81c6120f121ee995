"""
Steps of the wall clock against retention: python -m tests.torture.clock_steps [SCALE].

Scale 1 is every step from a second to a hundred years, both ways, held for a
moment, for minutes and for an hour, with a restart of the agent in between or
without. Nine days of real files with seven to keep; the clocks are simulated,
the passes, the conversion and the files are real. No pass may remove a file
whose samples are, by true time, young enough; and when the clock is right
again, files that are truly too old must leave.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from tests.keep.frames import frame_at, write_log
from tests.torture.result import TortureRow

from nodescope.base.log import set_up_logging
from nodescope.keep.archive_clock import ClockReading, take_time
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.retention import RetentionLimits, apply_retention

DAY, HOUR, MINUTE = 86_400, 3600, 60
STEPS = (1, 10, MINUTE, HOUR, 5 * HOUR, DAY, 8 * DAY, 100 * DAY, 365 * DAY, 36_525 * DAY)
HELD = (15, 10 * MINUTE, HOUR)
PASS_SECONDS = 90
KEEP_DAYS = 7
LIMITS = RetentionLimits(KEEP_DAYS * DAY, 2**60, 0, 90 * DAY)
# 2026-03-10 11:59:00 UTC; the machine was started ten days before.
NOW = 1_773_143_940
UPTIME = 10 * DAY
EVERY = 6 * HOUR


@dataclass
class Node:
    """One data folder, and the true time."""

    folder: DataFolder
    now: float = NOW
    offset: float = 0.0
    boot: str = "boot-1"
    taken: dict[str, float] = field(default_factory=dict)
    """When the samples of each log were truly taken."""
    segment: int = 1000

    @property
    def mono_ns(self) -> int:
        return round((self.now - NOW + UPTIME) * 1e9)

    def reading(self) -> ClockReading:
        return ClockReading(round((self.now + self.offset) * 1000), self.mono_ns, self.boot)

    def sample(self, ago: float = 0.0) -> None:
        """A segment of three ticks becomes a file."""
        before = set(self.names())
        self.segment += 1
        at = self.now - ago
        ticks = [
            frame_at(
                number,
                at_ns=round((at + self.offset + number) * 1e9),
                mono_ns=self.mono_ns - round((ago - number) * 1e9),
            )
            for number in range(3)
        ]
        write_log(self.folder, ticks, segment=self.segment)
        convert_all(Disk(), self.folder)
        self.taken |= dict.fromkeys(set(self.names()) - before, at)

    def names(self) -> list[str]:
        return [str(file.path.relative_to(self.folder.path)) for file in self.folder.files()]

    def run_pass(self) -> list[str]:
        """Files that it removed although their samples are young enough."""
        time = take_time(Disk(), self.folder, self.reading())
        before = self.names()
        apply_retention(Disk(), self.folder, LIMITS, time)
        gone = set(before) - set(self.names())
        return sorted(name for name in gone if self.now - self.taken[name] < KEEP_DAYS * DAY)

    def too_old(self) -> list[str]:
        return [name for name in self.names() if self.now - self.taken[name] > KEEP_DAYS * DAY + HOUR]


def build(path: Path) -> Node:
    node = Node(DataFolder(path))
    path.mkdir()
    session = {"run_id": "run1", "node_name": "n1", "identifier": "n1", "boot_id": node.boot}
    node.folder.session.write_text(json.dumps(session))
    for ago in range(9 * DAY, 0, -EVERY):
        node.sample(ago)
    return node


def run_step(base: Node, path: Path, step: int, held: int, *, is_first: bool) -> tuple[list[str], list[str]]:
    """(wrongly removed, not removed in the end) of one step; it may be there before the first pass."""
    shutil.copytree(base.folder.path, path)
    node = Node(DataFolder(path), taken=dict(base.taken), segment=base.segment)
    wrong = [] if is_first else node.run_pass()
    node.offset = step
    for _ in range(max(1, min(8, held // PASS_SECONDS))):
        node.now += held / max(1, min(8, held // PASS_SECONDS))
        node.sample()
        wrong += node.run_pass()
    node.offset = 0.0
    wrong += settle(node)
    return wrong, node.too_old()


def settle(node: Node) -> list[str]:
    """Two days with a clock that is right, by passes an hour apart."""
    wrong = []
    for hour in range(48):
        node.now += HOUR
        if hour % 8 == 0:
            node.sample()
        wrong += node.run_pass()
    return wrong


def list_cases(scale: float) -> Iterator[tuple[int, int, bool]]:
    cases = [
        (sign * step, held, is_first)
        for step, sign, held, is_first in product(STEPS, (1, -1), HELD, (False, True))
    ]
    stride = max(1, round(1 / scale))
    yield from cases[::stride]


def run(scale: float = 1.0) -> list[TortureRow]:
    wrong: list[str] = []
    stuck: list[str] = []
    count = 0
    with tempfile.TemporaryDirectory(prefix="nodescope-clock-") as text:
        base = build(Path(text, "base"))
        for step, held, is_first in list_cases(scale):
            case = f"{step:+} s for {held} s{', at the start' if is_first else ''}"
            path = Path(text, str(count))
            removed, left = run_step(base, path, step, held, is_first=is_first)
            shutil.rmtree(path)
            wrong += [f"{case}: {name}" for name in removed]
            stuck += [f"{case}: {len(left)} left"] if left else []
            count += 1
    return [
        row(
            "files removed that true time would keep", wrong, f"{count} steps of 1 s to 100 years, both ways"
        ),
        row("steps after which files that are too old stay", stuck),
    ]


def row(figure: str, found: list[str], remark: str = "") -> TortureRow:
    words = "; ".join(filter(None, [*found[:3], remark]))
    return TortureRow("clock steps", figure, str(len(found)), "0", not found, words)


if __name__ == "__main__":
    set_up_logging("error")
    for one in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(one.render())
