"""
Power cuts on the archive's disk: python -m tests.torture.power_cuts [SCALE].

An agent's log, its conversion and a merge are recorded as file operations. A cut comes after any of them. What was
synced is on the disk; of what was not, any part may be: of each file any prefix of its bytes, torn within a record or
followed by zeros (a length that was written before the data), and of renames, removals and new
files any number in their order, from the last one that was synced on. After each cut the folder is put together,
recovered and asked: every tick that was synced is there once, none is there twice.

Scale 1 makes 40 disks of each cut.
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.keep.frames import Recorder, archived_times, frame_at
from tests.torture.result import TortureRow, at_most

from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all, sweep
from nodescope.keep.disk import Disk, Operation
from nodescope.keep.folder import CLOSED, OPEN, DataFolder
from nodescope.keep.log_writer import LogWriter

DISKS = 40
TICKS = 8
SYNC_TICKS = 3
FACTS = {"run": "run1", "node": "n1", "identifier": "n1"}
LATER_MS = 1_772_366_340_000 + 90 * 86_400_000
METADATA = ("create", "rename", "remove", "folder", "truncate")


class WholeWrites(Recorder):
    """Arrow writes a file in a hundred pieces; before it is synced and has its name they are as good as one."""

    def __call__(self, operation: Operation) -> None:
        last = self.operations[-1] if self.operations else operation
        is_more = (last.kind, last.path) == ("write", operation.path) and operation.kind == "write"
        if is_more and operation.path.suffix != OPEN:
            self.operations[-1] = replace(last, data=last.data + operation.data)
        else:
            super().__call__(operation)


@dataclass(slots=True)
class PowerTrial:
    """A recorded run, and which operation made each tick safe."""

    operations: list[Operation]
    source: Path
    safe: dict[int, int] = field(default_factory=dict)


def record(source: Path, segments: int = 3) -> PowerTrial:
    """Segments of eight ticks, synced every three; each is converted, and in the end all are merged."""
    recorder = WholeWrites()
    disk, folder = recorder.disk(), DataFolder(source)
    trial = PowerTrial(recorder.operations, source)
    disk.make_folder(folder.wal)
    for segment in range(1, segments + 1):
        first = (segment - 1) * TICKS
        writer = LogWriter.begin(disk, folder, segment, FACTS, frame_at(first))
        waiting = []
        for tick in range(first, first + TICKS):
            writer.append(frame_at(tick))
            waiting.append(tick)
            if tick % SYNC_TICKS == 0:
                writer.sync()
                trial.safe |= dict.fromkeys(waiting, len(recorder.operations))
                waiting = []
        writer.close()
        trial.safe |= dict.fromkeys(waiting, len(recorder.operations))
        convert_all(disk, folder)
    Consolidator(disk, folder, 2).run_pass(LATER_MS)
    return trial


@dataclass(slots=True)
class CutFile:
    data: bytes = b""
    synced: int = 0


def cut_power(operations: Sequence[Operation], dice: random.Random) -> tuple[dict[Path, bytes], set[Path]]:
    """(files, folders) of a disk as a cut behind these operations may leave it."""
    synced = max((place for place, one in enumerate(operations, 1) if one.kind.startswith("sync")), default=0)
    reached = dice.randint(synced, len(operations))
    files: dict[Path, CutFile] = {}
    folders: set[Path] = set()
    for place, operation in enumerate(operations, 1):
        if operation.kind in METADATA and place > reached:
            continue
        apply(operation, files, folders)
    return {path: tear(file, dice) for path, file in files.items()}, folders


def apply(operation: Operation, files: dict[Path, CutFile], folders: set[Path]) -> None:
    path = operation.path
    if operation.kind == "folder":
        folders.add(path)
    elif operation.kind == "create":
        files[path] = CutFile()
    elif operation.kind == "rename" and operation.target:
        files[operation.target] = files.pop(path)
    elif operation.kind == "remove":
        files.pop(path, None)
    elif path in files:
        change(operation, files[path])


def change(operation: Operation, file: CutFile) -> None:
    """A file whose creation or new name did not reach the disk has no such changes either."""
    if operation.kind == "write":
        file.data += operation.data
    elif operation.kind == "truncate":
        file.data, file.synced = file.data[: operation.size], min(file.synced, operation.size)
    elif operation.kind == "sync":
        file.synced = len(file.data)


def tear(file: CutFile, dice: random.Random) -> bytes:
    kept = dice.choice((file.synced, len(file.data), dice.randint(file.synced, len(file.data))))
    zeros = dice.choice((0, 0, dice.randint(0, len(file.data) - kept)))
    return file.data[:kept] + bytes(zeros)


def put_together(files: dict[Path, bytes], folders: set[Path], source: Path, target: Path) -> None:
    target.mkdir()
    for folder in folders:
        (target / folder.relative_to(source)).mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def recover(folder: DataFolder) -> None:
    """What an agent and its consolidator do at their start."""
    if folder.wal.is_dir():
        for left in folder.wal.glob(f"*{OPEN}"):
            left.rename(left.with_suffix(CLOSED))
    sweep(Disk(), folder)
    convert_all(Disk(), folder)


@dataclass(slots=True)
class PowerTally:
    cuts: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)


def judge(trial: PowerTrial, length: int, dice: random.Random, target: Path, tally: PowerTally) -> None:
    """One disk."""
    put_together(*cut_power(trial.operations[:length], dice), trial.source, target)
    folder = DataFolder(target)
    recover(folder)
    times = archived_times(folder)
    tally.cuts += 1
    where = f"after {trial.operations[length - 1].kind} {length} of {trial.operations[length - 1].path.name}"
    if {tick for tick, ended in trial.safe.items() if ended <= length} - set(times):
        tally.lost.append(where)
    if len(times) != len(set(times)):
        tally.twice.append(where)


def cut_everywhere(place: Path, disks: float, segments: int = 3, seed: int = 1) -> PowerTally:
    """So many disks of each cut; below one, of so many cuts one."""
    dice, tally = random.Random(seed), PowerTally()
    trial = record(place / "source", segments)
    for length in range(1, len(trial.operations) + 1):
        count = int(disks) + (dice.random() < disks % 1)
        for number in range(count):
            judge(trial, length, dice, place / f"{length}-{number}", tally)
    return tally


def run(scale: float = 1.0) -> list[TortureRow]:
    with tempfile.TemporaryDirectory() as place:
        tally = cut_everywhere(Path(place), DISKS * scale)
    name = f"{tally.cuts} power cuts"
    return [
        at_most(name, "disks that lost a synced tick", len(tally.lost), 0, "; ".join(tally.lost[:3])),
        at_most(name, "disks with a tick twice", len(tally.twice), 0, "; ".join(tally.twice[:3])),
    ]


if __name__ == "__main__":
    for row in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(row.render())
