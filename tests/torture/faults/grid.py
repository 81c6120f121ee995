"""
Every file operation of agent, converter, consolidator and copier x every fault.

    python -m tests.torture.faults.grid [SCENARIO ...] [--share SHARE] [--only FAULT]

Run by fault_grid.py with the shim preloaded. All is imported once; each cell
is a fork of this process. The scenario is run once to list its operations. A
cell runs it again in a fork of its own, with one fault at one operation; then
another fork restarts everything without faults, lets it finish, and compares
the archive with the rows that are known to have been written.

SIGKILL is sent before each operation that changes something, and amid each
write. A delay holds the process at an operation while a reader asks for all
rows. Two faults stay: a bad sector (each read of that file fails) and a full
disk (all that needs room fails).

A file that is written or read in many pieces, one after the other, is met at
the first two, one in the middle and the last of them: the others differ only in
how much of an unfinished file is there, which nobody looks at before it has its name.
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.keep.frames import CURRENT, LOAD, USAGE, read_log_tail
from tests.torture.faults.aftermath import Aftermath, finish, read_archive
from tests.torture.faults.scenarios import OLD, SCENARIOS, START_MS, Promise, Scenario, rows_of
from tests.torture.faults.shim import Shim

from nodescope.base.log import set_up_logging
from nodescope.keep import consolidator
from nodescope.keep.consolidator import DAY_ROWS
from nodescope.keep.disk import TEMPORARY
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine

NEEDS_ROOM = ("create", "write", "mkdir", "truncate")
# What each kind of operation can meet. One that only looks leaves the disk as it was: killing or delaying
# it is killing or delaying the next one that changes something.
CHANGE = ("SIGKILL", "EIO", "ENOSPC", "EINTR", "delay")
LOOK = ("EIO", "EINTR")
FAULTS_OF = {
    "create": CHANGE,
    "write": (*CHANGE, "SIGKILL in a write", "short"),
    **dict.fromkeys(("sync", "rename", "remove", "mkdir", "rmdir", "truncate", "close", "lock"), CHANGE),
    "read": (*LOOK, "short"),
    **dict.fromkeys(("open", "list", "map"), LOOK),
    **dict.fromkeys(("stat", "statvfs"), ("EIO",)),
}
# Kinds that come many times in a row for one file: Arrow writes a Parquet file in a hundred pieces.
PIECES = ("read", "write")
# A cell that takes longer hangs; usual are fifty milliseconds.
PATIENCE_SECONDS = 20.0
SHIM = Shim()


@dataclass(frozen=True)
class FileCall:
    """One counted operation."""

    number: int
    kind: str
    path: str


@dataclass(frozen=True)
class Cell:
    scenario: str
    call: FileCall
    fault: str

    def __str__(self) -> str:
        return f"{self.scenario}, {self.fault} at {self.call.number} ({self.call.kind} {self.call.path})"


@dataclass
class Verdicts:
    """Of all cells."""

    cells: Counter[str] = field(default_factory=Counter)
    """By scenario."""
    calls: Counter[str] = field(default_factory=Counter)
    unmet: int = 0
    """Cells whose operation did not come: another number of operations than when they were listed."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Hung, ended by itself, never finished, not copied, or not removed by retention."""


# -- forks ---------------------------------------------------------------------------


def fork(work: Callable[[], object]) -> tuple[int, int]:
    """(pid, descriptor of its answer as JSON)."""
    answer, out = os.pipe()
    pid = os.fork()
    if pid:
        os.close(out)
        return pid, answer
    code = 1
    try:
        with os.fdopen(out, "w") as file:
            try:
                json.dump({"answer": work()}, file)
                code = 0
            except BaseException:  # noqa: BLE001 - told to the parent
                json.dump({"error": traceback.format_exc(limit=-6)}, file)
    finally:
        os._exit(code)


@dataclass(frozen=True)
class Ended:
    """How a fork ended."""

    signal: int
    answer: object = None
    error: str = ""


def collect(pid: int, answer: int) -> Ended:
    """Waits for a fork; one that hangs is killed."""
    parts = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    is_hanging = False
    while True:
        ready, _, _ = select.select([answer], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            is_hanging = True
            os.kill(pid, signal.SIGKILL)
            break
        part = os.read(answer, 65536)
        if not part:
            break
        parts.append(part)
    os.close(answer)
    _, status = os.waitpid(pid, 0)
    if is_hanging:
        return Ended(0, error="it hung")
    said = json.loads(b"".join(parts)) if parts else {}
    return Ended(
        os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, said.get("answer"), said.get("error", "")
    )


# -- a scenario ----------------------------------------------------------------------


@dataclass
class Bench:
    """One scenario with its folder, and how it ends without faults."""

    name: str
    place: Path
    calls: list[FileCall] = field(default_factory=list)
    shape: list[str] = field(default_factory=list)
    left_by_retention: list[str] = field(default_factory=list)
    copied_rows: int = 0
    rolled_rows: int = 0

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS[self.name]

    @property
    def base(self) -> Path:
        return self.place / "base"

    def prepare(self) -> None:
        self.place.mkdir()
        self.must(lambda: self.scenario.build(self.base))
        root = self.copy()
        record = self.place / "calls"
        descriptor = os.open(record, os.O_WRONLY | os.O_CREAT, 0o600)
        self.must(lambda: self.run(root, Promise(), "record", record=descriptor))
        os.close(descriptor)
        for line in record.read_text().splitlines():
            number, kind, path = line.split(" ", 2)
            self.calls.append(FileCall(int(number), kind, path))
        after = finish_in_fork(root)
        wanted = rows_of(self.scenario.ticks)
        assert isinstance(after, Aftermath), after
        assert after.rows == Counter(wanted), "without a fault all rows are there once"
        assert not after.leftovers + after.unwhole
        self.shape, self.left_by_retention = after.shape, after.left_by_retention
        self.copied_rows, self.rolled_rows = after.copied_rows, after.rolled_rows

    def must(self, work: Callable[[], object]) -> None:
        ended = collect(*fork(work))
        assert not ended.error, ended.error
        assert not ended.signal, ended

    def copy(self) -> Path:
        root = self.place / "cell"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.base, root)
        return root

    def run(
        self,
        root: Path,
        promise: Promise,
        fault: str,
        number: int = -1,
        record: int = -1,
        hold: tuple[int, int] = (-1, -1),
    ) -> bool:
        """In a fork. Whether the fault was met."""
        SHIM.begin(root, fault, number, record, *hold)
        try:
            self.scenario.run(root, promise)
        finally:
            SHIM.end()
        return SHIM.was_met()

    def cells(self) -> Iterator[Cell]:
        broken: set[str] = set()
        for call in thin(self.calls):
            faults = [*FAULTS_OF[call.kind]]
            if call.kind in NEEDS_ROOM:
                faults.append("full disk")
            if call.kind in ("read", "map") and call.path not in broken:
                broken.add(call.path)
                faults.append("bad sector")
            yield from (Cell(self.name, call, fault) for fault in faults)


def thin(calls: list[FileCall]) -> list[FileCall]:
    """Without the middle of long rows of pieces."""
    rows: list[list[FileCall]] = []
    newest: dict[str, list[FileCall]] = {}
    for call in calls:
        row = newest.get(call.path)
        if row is None or call.kind not in PIECES or row[-1].kind != call.kind:
            rows.append(row := [])
        row.append(call)
        newest[call.path] = row
    kept = [call for row in rows for call in dict.fromkeys([*row[:2], row[len(row) // 2], row[-1]])]
    return sorted(kept, key=lambda call: call.number)


def finish_in_fork(root: Path) -> Aftermath | str:
    ended = collect(*fork(lambda: pack(finish(root))))
    return unpack(ended.answer) if isinstance(ended.answer, dict) else ended.error or f"signal {ended.signal}"


def pack(after: Aftermath) -> dict[str, object]:
    rows = [[*row, count] for row, count in after.rows.items()]
    return {**vars(after), "rows": rows}


def unpack(said: dict[str, list[list[object]]]) -> Aftermath:
    rows = {tuple(row[:4]): row[4] for row in said["rows"]}
    return Aftermath(**{**said, "rows": Counter(rows)})  # type: ignore[arg-type]


# -- a cell --------------------------------------------------------------------------


def run_cell(bench: Bench, cell: Cell, verdicts: Verdicts) -> None:
    root = bench.copy()
    promise = Promise()
    verdicts.cells[cell.scenario] += 1
    if cell.fault == "delay":
        ended, seen = run_held(bench, root, promise, cell, verdicts)
    else:
        ended = collect(*fork(lambda: bench.run(root, promise, cell.fault, cell.call.number)))
        seen = None
    judge_end(cell, ended, verdicts)
    if ended.answer is False:
        verdicts.unmet += 1
    if cell.fault in ("bad sector", "full disk"):
        judge_meanwhile(cell, DataFolder(root / "data"), verdicts)
    after = finish_in_fork(root)
    if isinstance(after, str):
        verdicts.stuck.append(f"{cell}: the restart failed: {after}")
        return
    judge_rows(bench, cell, promise, ended, after, verdicts)
    if seen is not None and isinstance(seen.answer, str) and seen.answer:
        verdicts.lost.append(f"{cell}: {seen.answer}")
    if seen is not None and seen.error:
        verdicts.lost.append(f"{cell}: the reader failed: {seen.error}")


def run_held(
    bench: Bench, root: Path, promise: Promise, cell: Cell, verdicts: Verdicts
) -> tuple[Ended, Ended | None]:
    """The process is stopped at the operation while another one reads."""
    ask_in, ask_out = os.pipe()
    answer_in, answer_out = os.pipe()
    pid, said = fork(lambda: bench.run(root, promise, "delay", cell.call.number, hold=(ask_out, answer_in)))
    os.close(ask_out)
    os.close(answer_in)
    seen = None
    # Readable as well when the process has ended without coming there.
    ready, _, _ = select.select([ask_in], [], [], PATIENCE_SECONDS)
    if ready and os.read(ask_in, 1):
        seen = collect(*fork(lambda: look(bench.scenario, root, promise)))
        os.write(answer_out, b"g")
    ended = collect(pid, said)
    os.close(ask_in)
    os.close(answer_out)
    return ended, seen


def look(scenario: Scenario, root: Path, promise: Promise) -> str:
    """What a reader misses or sees twice at this moment."""
    folder = DataFolder(root / "data")
    if not folder.path.is_dir():
        return ""
    doubled = [row for row, count in read_archive(folder).items() if count > 1]
    if doubled:
        return f"a reader sees {len(doubled)} rows twice: {doubled[0]}"
    there = {tick for tick in scenario.ticks if tick not in scenario.written or tick <= promise.ticks.value}
    missing = {row[:3] for row in rows_of(there - scenario.hidden)} - read_with_log(folder)
    missing = {row for row in missing if row[0] in (CURRENT.name, USAGE.name, LOAD.name)}
    return f"a reader misses {len(missing)} rows: {min(missing)}" if missing else ""


def read_with_log(folder: DataFolder) -> set[tuple[str, str, int]]:
    """As the viewer sees it, log included: without values."""
    catalog = read_catalog([folder.path])
    tail = read_log_tail(folder.path, catalog)
    found: set[tuple[str, str, int]] = set()
    # Not before the fork: it has threads.
    engine = Engine()
    for metric in (CURRENT.name, USAGE.name, LOAD.name):
        if metric not in {**catalog.metrics, **tail.metrics}:
            continue
        answer = engine.query(catalog, metric, None, max_points=2**40, rate="off", tail=tail)
        for line in answer.lines:
            letter = (line.subject.label("l_container_id") or "")[:1]
            found |= {(metric, letter, at_ms) for at_ms in line.points.time_ms.tolist()}
    return found


def judge_end(cell: Cell, ended: Ended, verdicts: Verdicts) -> None:
    """A fault may end a process only where it is a kill, or where a converter says so."""
    is_kill = cell.fault.startswith("SIGKILL")
    if ended.signal and not is_kill:
        verdicts.stuck.append(f"{cell}: ended by signal {ended.signal}")
    if ended.error and (SCENARIOS[cell.scenario].is_resident or "OSError" not in ended.error):
        verdicts.stuck.append(f"{cell}: {ended.error}")


def judge_meanwhile(cell: Cell, folder: DataFolder, verdicts: Verdicts) -> None:
    """While a fault stays, everything else goes on: retention, and the merging of other files."""
    if cell.scenario in ("agent", "first start"):
        return
    files = list(folder.files())
    old = [file for file in files if file.from_ms < START_MS + OLD * 500]
    if any(file.path.parent.parent.name in cell.call.path for file in old):
        # What cannot be read, here or in the store, can be neither copied nor, before it is copied, removed.
        return
    if old:
        verdicts.stuck.append(f"{cell}: retention stood still")
    if cell.call.path.endswith(TEMPORARY):
        # What a merge wrote and cannot read back is not believed: its sources stay until it can.
        return
    fresh = [file.path.name for file in files if file.kind == "metrics" and file not in old]
    if cell.fault == "bad sector" and cell.scenario != "converter" and len(fresh) > 1:
        verdicts.stuck.append(f"{cell}: not merged: {fresh}")


def judge_rows(
    bench: Bench, cell: Cell, promise: Promise, ended: Ended, after: Aftermath, verdicts: Verdicts
) -> None:
    scenario = bench.scenario
    is_killed = bool(ended.signal)
    may_lack = {tick for tick in scenario.written if is_killed and tick > promise.ticks.value}
    wanted = rows_of(scenario.ticks - may_lack)
    missing = wanted - set(after.rows)
    ticks_lost = {row[2] for row in missing}
    is_named = cell.fault == "bad sector" and any(cell.call.path.endswith(name) for name in after.damaged)
    if missing and not is_named and len(ticks_lost) > promise.lost.value:
        verdicts.lost.append(f"{cell}: {len(missing)} rows lost: {min(missing)}")
    if promise.lost.value and cell.fault != "full disk":
        verdicts.lost.append(f"{cell}: {promise.lost.value} frames given up")
    # A tick in flight may be there whole.
    strange = set(after.rows) - rows_of(scenario.ticks)
    doubled = [row for row, count in after.rows.items() if count > 1]
    if doubled or strange:
        verdicts.doubled.append(f"{cell}: {len(doubled)} rows twice, {len(strange)} that nobody wrote")
    judge_shape(bench, cell, after, verdicts, is_whole=not missing and not may_lack)


def judge_shape(bench: Bench, cell: Cell, after: Aftermath, verdicts: Verdicts, *, is_whole: bool) -> None:
    if after.leftovers or after.unwhole:
        verdicts.stuck.append(f"{cell}: left over: {after.leftovers + after.unwhole}")
    if is_whole and after.shape != bench.shape and bench.scenario.day_rows == DAY_ROWS:
        verdicts.stuck.append(f"{cell}: files are {after.shape}")
    if is_whole and after.copied_rows != bench.copied_rows:
        verdicts.stuck.append(f"{cell}: {after.copied_rows} rows in the store, not {bench.copied_rows}")
    if is_whole and after.rolled_rows != bench.rolled_rows:
        verdicts.doubled.append(f"{cell}: {after.rolled_rows} samples in rollups, not {bench.rolled_rows}")
    if len(after.left_by_retention) > len(bench.left_by_retention):
        verdicts.stuck.append(f"{cell}: retention leaves {after.left_by_retention}")


# -- all of them ---------------------------------------------------------------------


def choose(cells: list[Cell], share: float, part: int, parts: int) -> list[Cell]:
    """All, or a share that is the same every time; of those, every so many-th."""
    if share < 1:
        cells = random.Random(27).sample(cells, max(1, round(share * len(cells))))
    return cells[part::parts]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="*", help=f"of {', '.join(SCENARIOS)}; all unless given")
    parser.add_argument("--share", type=float, default=1.0, help="of all cells")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1, help="so many walkers share the cells")
    parser.add_argument("--only", default="", metavar="FAULT", help="this fault alone")
    parser.add_argument("--at", type=int, metavar="NUMBER", help="at this operation alone")
    return parser.parse_args()


def walk(name: str, place: Path, options: argparse.Namespace, verdicts: Verdicts) -> None:
    bench = Bench(name, place)
    # For all forks of this scenario, those that finish after a fault included.
    with mock.patch.object(consolidator, "DAY_ROWS", bench.scenario.day_rows):
        walk_cells(bench, options, verdicts)


def walk_cells(bench: Bench, options: argparse.Namespace, verdicts: Verdicts) -> None:
    bench.prepare()
    verdicts.calls.update(call.kind for call in bench.calls)
    cells = [
        cell
        for cell in bench.cells()
        if options.only in ("", cell.fault) and options.at in (None, cell.call.number)
    ]
    for cell in choose(cells, options.share, options.part, options.parts):
        run_cell(bench, cell, verdicts)


def main() -> None:
    options = parse_options()
    set_up_logging("critical")
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="nodescope-faults-") as text:
        for name in options.scenarios or SCENARIOS:
            walk(name, Path(text) / name.replace(" ", "-"), options, verdicts)
    json.dump(vars(verdicts), sys.stdout)


if __name__ == "__main__":
    main()
