"""
What is done to an archive while a file operation fails, and the rows that must be there in the end.

Four scenarios, one for each process that changes a data folder. Each works on
few ticks with known values, in one process, by a clock that is told the time.
"""

import contextlib
import json
import math
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.keep.frames import CURRENT, LIMIT, LOAD, MONO_NS, SECOND_NS, START_NS, USAGE, frame_at, write_log
from tests.support import TurnableClock

from nodescope.keep import convert
from nodescope.keep.archive_clock import ClockReading
from nodescope.keep.archiver import ArchivePlan, Archiver
from nodescope.keep.consolidator import DAY_ROWS, Consolidator
from nodescope.keep.copy.copier import Copier
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.housekeeping import Housekeeping
from nodescope.keep.retention import RetentionLimits
from nodescope.keep.session import Session

DAY = 86_400
HOUR = 3600
# All in ticks (seconds) since START, 11:59 of a day.
OLD = -40 * DAY
MIDNIGHT = 12 * HOUR + 60
# An hour after the day: all that is here is merged into a day.
NOW = MIDNIGHT + DAY + HOUR
LIMITS = RetentionLimits(30.0 * DAY, 2**40, 0, 90.0 * DAY)
NOTHING_STAYS = RetentionLimits(1.0, 2**40, 0, 1.0)
BOOT = "boot-1"


def clock_at(number: int) -> TurnableClock:
    return TurnableClock(START_NS + number * SECOND_NS, MONO_NS + number * SECOND_NS)


def make_session(run: str) -> Session:
    return Session(run, "n1", "2026-03-01T11:59:00.000Z", "n1", "", 1000, 6.0, "0", {}, BOOT)


# -- what the rows are ---------------------------------------------------------------

Row = tuple[str, str, int, float]
"""Metric, container (empty: the node), time in ms, value."""


def rows_of(numbers: Iterable[int]) -> set[Row]:
    """The rows of these ticks, as `frame_at` makes them; an unlimited value is infinite."""
    found: set[Row] = set()
    for number in numbers:
        time_ms = START_NS // 1_000_000 + number * 1000
        if number % 7:
            found.add((LOAD.name, "", time_ms, number / 10))
        for place, letter in enumerate("ab"):
            found.add((USAGE.name, letter, time_ms, number * 1000.0 * (place + 1)))
            found.add((CURRENT.name, letter, time_ms, 4096.0 * number))
            found.add((LIMIT.name, letter, time_ms, math.inf if place == 0 else 2.0**30))
    return found


# -- the scenarios -------------------------------------------------------------------


def share_number(value: int) -> Any:
    """A number in memory that a fork shares with its parent."""
    return multiprocessing.Value("q", value, lock=False)


@dataclass
class Promise:
    """What the process that meets a fault has promised so far; it outlives the process."""

    ticks: Any = field(default_factory=lambda: share_number(-(2**60)))
    """All up to this one are written."""
    lost: Any = field(default_factory=lambda: share_number(0))
    """Counted as lost."""


@dataclass(frozen=True)
class Scenario:
    """One process and its folder; ROOT/data, and ROOT/store where copies go."""

    build: Callable[[Path], None]
    run: Callable[[Path, Promise], None]
    ticks: frozenset[int]
    """All that must be there in the end."""
    written: frozenset[int] = frozenset()
    """Of these, what the process itself writes: when it is killed, those that it has not promised may lack."""
    hidden: frozenset[int] = frozenset()
    """Of these, what no reader has until a flipped bit is turned back."""
    is_resident: bool = True
    """It goes on after a fault, until it is told to stop."""
    day_rows: int = DAY_ROWS
    """A day with more rows becomes several files; where they are cut depends on what a fault left."""


def write_ticks(folder: DataFolder, numbers: Iterable[int], segment: int, run: str = "run1") -> Path:
    return write_log(folder, [frame_at(number) for number in numbers], run, segment)


def make_old(folder: DataFolder) -> None:
    """A file that is too old, for retention to remove."""
    old = [frame_at(number, at_ns=START_NS + (OLD + number) * SECOND_NS) for number in range(5)]
    write_log(folder, old, segment=900)
    convert.convert_all(Disk(), folder)


# The agent: it comes back to a folder with a torn log, writes, rotates.

AGENT_TICKS = range(100, 120)
LEFT_TICKS = range(5)


def build_agent(root: Path) -> None:
    folder = DataFolder(root / "data")
    left = write_ticks(folder, LEFT_TICKS, 1, "run0")
    torn = left.read_bytes() + frame_tail(left)
    left.with_suffix(".open").write_bytes(torn)
    left.unlink()
    session = asdict(make_session("run0"))
    folder.session.write_text(json.dumps(session))


def frame_tail(path: Path) -> bytes:
    """The first half of a record: what a crash leaves of it."""
    return path.read_bytes()[:40]


def refuse_child(*_: object, **__: object) -> None:
    raise OSError("no converter here")


@mock.patch.object(subprocess, "Popen", refuse_child)
def run_agent(root: Path, promise: Promise) -> None:
    """As its thread does, tick by tick."""
    plan = ArchivePlan(6.0, 2.0, LIMITS)
    clock = clock_at(AGENT_TICKS[0])
    archiver = Archiver(DataFolder(root / "data"), make_session("run1"), plan, clock)
    try:
        archiver._prepare()
    except OSError as error:
        archiver._pause(error)
    for number in AGENT_TICKS:
        archiver._keep(frame_at(number))
        archiver._check()
        promise.ticks.value = max(archiver.written_sequence, promise.ticks.value)
        clock.advance(SECOND_NS)
    archiver._finish()
    promise.ticks.value = max(archiver.written_sequence, promise.ticks.value)
    promise.lost.value = archiver.counts.frames_lost


def build_first(root: Path) -> None:
    root.mkdir()


# The converter: closed logs, one across midnight, one torn, one that is Parquet already; what a crash left.

CONVERTER_TICKS = [*range(20), *range(MIDNIGHT - 3, MIDNIGHT + 3)]


def build_converter(root: Path) -> None:
    folder = DataFolder(root / "data")
    make_old(folder)
    kept = write_ticks(folder, range(5), 1).read_bytes()
    convert.convert_all(Disk(), folder)
    (folder.wal / "run1-000001.log").write_bytes(kept)
    write_ticks(folder, range(5, 10), 2)
    torn = write_ticks(folder, range(10, 20), 3)
    torn.write_bytes(torn.read_bytes() + frame_tail(torn))
    write_ticks(folder, range(MIDNIGHT - 3, MIDNIGHT + 3), 4)
    # The agent has looked at it before it starts a converter.
    folder.converter_lock.touch()
    partition = folder.partitions()[-1]
    (partition / "metrics-20260301T120000Z.parquet.tmp").write_bytes(b"half")
    (partition / "metrics-20260301T120000Z.containers").write_bytes(b"alone")


def run_converter(root: Path, promise: Promise) -> None:
    clock = clock_at(NOW)
    reading = ClockReading(clock.wall_ns() // 1_000_000, clock.mono_ns(), BOOT)
    given = {"clock": asdict(reading), "limits": asdict(LIMITS)}
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        convert.main([str(root / "data"), json.dumps(given)])


# The consolidator: hours and a day to merge, rollups, a file to remove for its age, and one whose bit flipped.

CONSOLIDATOR_TICKS = [
    *range(15),
    *range(HOUR, HOUR + 10),
    *range(2 * HOUR, 2 * HOUR + 5),
    *range(3 * HOUR, 3 * HOUR + 5),
]


def build_consolidator(root: Path) -> None:
    folder = DataFolder(root / "data")
    make_old(folder)
    write_ticks(folder, range(2 * HOUR, 2 * HOUR + 5), 9)
    for number, first in enumerate((0, 5, 10, HOUR, HOUR + 5, HIDDEN_TICKS[0]), 1):
        write_ticks(folder, range(first, first + 5), number)
    convert.convert_all(Disk(), folder)
    # The first hour was merged before the last two files came.
    Consolidator(Disk(), folder, 2).run_pass(clock_at(HOUR + 1000).wall_ns() // 1_000_000)
    write_ticks(folder, range(2 * HOUR, 2 * HOUR + 5), 9)
    flip(next(file.path for file in folder.files() if file.from_ms == START_MS + HIDDEN_TICKS[0] * 1000))


START_MS = START_NS // 1_000_000
HIDDEN_TICKS = range(3 * HOUR, 3 * HOUR + 5)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)


def build_housekeeping(root: Path, *, copies: bool, at: int = NOW) -> Housekeeping:
    folder = DataFolder(root / "data")
    clock = clock_at(at)
    store = (root / "store").as_uri()
    copier = Copier(Disk(), folder, open_store(store), clock) if copies else None
    return Housekeeping(Consolidator(Disk(), folder, 2), clock, BOOT, copier, LIMITS)


def run_consolidator(root: Path, promise: Promise) -> None:
    """Two passes, as a resident consolidator makes them."""
    keeper = build_housekeeping(root, copies=False)
    for _ in range(2):
        with contextlib.suppress(OSError):
            keeper.run_pass()


# The copier: a day whose first hours are in the store already.


def build_copier(root: Path) -> None:
    folder = DataFolder(root / "data")
    build_consolidator(root)
    open_store((root / "store").as_uri()).set_up()
    first = Consolidator(Disk(), folder, 2)
    first.run_pass(clock_at(3 * HOUR).wall_ns() // 1_000_000)
    Copier(Disk(), folder, open_store((root / "store").as_uri()), clock_at(5 * HOUR)).run_pass()
    first.run_pass(clock_at(NOW).wall_ns() // 1_000_000)


def run_copier(root: Path, promise: Promise) -> None:
    for _ in range(2):
        with contextlib.suppress(OSError):
            build_housekeeping(root, copies=True).run_pass(everything=True)


# Its four hours have 239 rows together: three files.
LARGE_DAY_ROWS = 80

SCENARIOS = {
    "agent": Scenario(build_agent, run_agent, frozenset([*AGENT_TICKS, *LEFT_TICKS]), frozenset(AGENT_TICKS)),
    "first start": Scenario(build_first, run_agent, frozenset(AGENT_TICKS), frozenset(AGENT_TICKS)),
    "converter": Scenario(build_converter, run_converter, frozenset(CONVERTER_TICKS), is_resident=False),
    "consolidator": Scenario(
        build_consolidator,
        run_consolidator,
        frozenset(CONSOLIDATOR_TICKS),
        hidden=frozenset(HIDDEN_TICKS),
    ),
    "large day": Scenario(
        build_consolidator,
        run_consolidator,
        frozenset(CONSOLIDATOR_TICKS),
        hidden=frozenset(HIDDEN_TICKS),
        day_rows=LARGE_DAY_ROWS,
    ),
    "copier": Scenario(build_copier, run_copier, frozenset(CONSOLIDATOR_TICKS)),
}
