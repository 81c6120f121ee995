"""
What the archive of a node writes to its disk: by part, how often each sample, how much in a year.

A recording of 100 containers (artifacts/node.frames, or one that is made now) goes
through the agent's log, the converter and the consolidator, faster than time: --seconds of
it, at least an hour, repeated with counters that go on where the repetition
before ended. The log is synced every five ticks, closed every 90, the
consolidator passes every five minutes; in the end the day is over, and its
hours are merged; `python -m tests.torture archive_day` does it for a whole day. Bytes are counted twice: as they are handed to the disk, by
part, and as the kernel counts them for the process (/proc/self/io: whole pages,
so that a page of the log that is synced four times counts four times).

A repeated recording packs a little better than a day would, because gauges repeat;
counters, which are most of the bytes, do not.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.archive import NODE, NODE_CONTAINERS, find_capture, workplace
from bench.pod import data_folder, read_pairs
from bench.result import Goal, Options, Row

if TYPE_CHECKING:
    from nodescope.base.block import Block
    from nodescope.base.frame import Frame
    from nodescope.keep.disk import Operation

LEAST_SECONDS = 3600
RECORDED_SECONDS = 300
# Ticks start so much late on a node that is not busy.
JITTER_NS = 3_000_000
SYNC_TICKS = 5
SEGMENT_TICKS = 90
PASS_TICKS = 300
DAY_MS = 86_400_000
YEAR_SECONDS = 365 * 86_400
WRITES_KIB = 8.0
DAY_MB = 90.0
PARTS = ("log", "fresh", "hours", "days", "rollups", "sidecars", "notes")


@dataclass(slots=True)
class Ledger:
    """Hears of every write, and adds it to its part."""

    level: str = "hours"
    written: Counter[str] = field(default_factory=Counter)

    def __call__(self, operation: "Operation") -> None:
        if operation.kind == "write":
            self.written[self.part_of(operation.path)] += len(operation.data)

    def part_of(self, path: Path) -> str:
        name = path.name.removesuffix(".tmp")
        if name.endswith(".open"):
            return "log"
        if "rollup" in path.parts:
            return "rollups"
        if name.endswith(".containers"):
            return "sidecars"
        if name.endswith(".parquet"):
            return "fresh" if name.startswith("metrics-") else self.level
        return "notes"


def repeat_frames(frames: "list[Frame]", seconds: int) -> "Iterator[Frame]":
    """Ticks of a second; in each repetition counters go on from where the one before ended."""
    growth = measure_growth(frames)
    # A whole day, so that no segment crosses midnight.
    start_ns = frames[0].at_ns // 10**9 // 86_400 * 86_400 * 10**9
    for tick in range(seconds):
        cycle, place = divmod(tick, len(frames))
        frame = frames[place]
        later_ns = start_ns + tick * 10**9 + frame.at_ns % JITTER_NS - frame.at_ns
        blocks = tuple(move_block(block, growth, cycle, later_ns) for block in frame.blocks)
        at_ns, mono_ns = frame.at_ns + later_ns, frame.mono_ns + later_ns
        yield replace(frame, sequence=tick, at_ns=at_ns, mono_ns=mono_ns, blocks=blocks, events=())


def measure_growth(frames: "list[Frame]") -> dict[str, tuple[Any, Any]]:
    """By table: its entities and how much each of its counters grew, where the set is the same at both ends."""
    import numpy as np

    first: dict[str, Block] = {}
    last: dict[str, Block] = {}
    for frame in frames:
        for block in frame.blocks:
            first.setdefault(block.table.name, block)
            last[block.table.name] = block
    found = {}
    for name, block in first.items():
        counters = np.array([metric.kind == "counter" for metric in block.table.metrics])
        if last[name].entities == block.entities and block.values.shape[1] == len(counters):
            with np.errstate(invalid="ignore"):
                grown = np.nan_to_num(last[name].values - block.values, nan=0.0, posinf=0.0, neginf=0.0)
            found[name] = (block.entities, grown * counters)
    return found


def move_block(block: "Block", growth: Mapping[str, tuple[Any, Any]], cycle: int, later_ns: int) -> "Block":
    values = block.values
    if cycle and block.table.name in growth:
        entities, grown = growth[block.table.name]
        values = values + cycle * grown if entities == block.entities else values
    return replace(block, values=values, mono_ns=block.mono_ns + later_ns)


def write_all(capture: str, data: str, seconds: str) -> dict[str, Any]:
    """In a process of its own; its last line is JSON."""
    from nodescope.base.codec import Decoder
    from nodescope.keep.consolidator import Consolidator
    from nodescope.keep.convert import convert_all
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder
    from nodescope.keep.log_writer import LogWriter

    ledger, folder = Ledger(), DataFolder(Path(data))
    disk = Disk(ledger)
    disk.make_folder(folder.wal)
    facts = {"run": "bench", "node": "bench", "identifier": "bench"}
    before = read_pairs(Path("/proc/self/io"))["write_bytes"]
    writer, rows, at_ms = None, 0, 0
    resident: list[float] = []
    recorded = list(Decoder().decode(Path(capture).read_bytes()))
    for tick, frame in enumerate(repeat_frames(recorded, int(seconds))):
        if writer is None:
            writer = LogWriter.begin(disk, folder, tick // SEGMENT_TICKS + 1, facts, frame)
        writer.append(frame)
        at_ms = frame.at_ns // 10**6
        if tick % SYNC_TICKS == SYNC_TICKS - 1:
            writer.sync()
        if tick % SEGMENT_TICKS == SEGMENT_TICKS - 1:
            writer.close()
            writer = None
            rows += convert_all(disk, folder).rows
        if tick % PASS_TICKS == PASS_TICKS - 1:
            make_old(folder)
            Consolidator(disk, folder).run_pass(at_ms)
            resident.append(read_pairs(Path("/proc/self/status"))["VmRSS"] * 1024)
    if writer:
        writer.close()
        rows += convert_all(disk, folder).rows
    make_old(folder)
    Consolidator(disk, folder).run_pass(at_ms + LEAST_SECONDS * 1000 + 600_000)
    hours = dict(ledger.written)
    sizes = {"hours": size_of(folder.path, "dt=*"), "hour_rollups": size_of(folder.path / "rollup", "dt=*")}
    ledger.level = "days"
    make_old(folder)
    Consolidator(disk, folder).run_pass(at_ms + 2 * DAY_MS)
    pages = read_pairs(Path("/proc/self/io"))["write_bytes"] - before
    return {
        "rows": rows,
        "written": ledger.written,
        "before_day": hours,
        "pages": pages,
        "resident": resident,
        **sizes,
        "bytes": size_of(folder.path, "dt=*"),
        "rollup_bytes": size_of(folder.path / "rollup", "dt=*"),
    }


def make_old(folder: Any) -> None:
    """Files are as old as their samples: the replay is faster than the five minutes that a merge waits."""
    import os

    for file in folder.files():
        os.utime(file.path, (0, 0))


def size_of(folder: Path, pattern: str) -> int:
    return sum(
        file.stat().st_size for place in folder.glob(pattern) for file in place.rglob("*") if file.is_file()
    )


def run(options: Options) -> list[Row]:
    seconds = max(LEAST_SECONDS, round(options.seconds))
    return tabulate(measure(seconds), seconds)


def measure(seconds: int, recorded_seconds: int = RECORDED_SECONDS) -> dict[str, Any]:
    """So many seconds of a node, in a process of its own."""
    with workplace() as place, data_folder() as data:
        capture = find_capture(NODE, place / "node.frames", recorded_seconds, NODE_CONTAINERS)
        words = [sys.executable, "-m", "bench.writes", str(capture), str(data), str(seconds)]
        output = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
    facts: dict[str, Any] = json.loads(output.splitlines()[-1])
    return facts


def tabulate(facts: Mapping[str, Any], seconds: int) -> list[Row]:
    written, rows = facts["written"], facts["rows"]
    whole = sum(written.values())
    kept = facts["bytes"] + facts["rollup_bytes"]
    parts = [
        Row(f"written to {part}", written[part] / seconds, "bytes", remark="a second")
        for part in PARTS
        if written.get(part)
    ]
    year = f"{facts['pages'] / seconds * YEAR_SECONDS / 1e12:.2f} TB a year"
    day_mb = 86_400 / seconds / 1e6
    return [
        *parts,
        Row(
            "bytes written a second, all parts",
            whole / seconds,
            "bytes",
            remark=f"{seconds} s, {rows} samples",
        ),
        Row(
            "the same in whole pages",
            facts["pages"] / seconds,
            "bytes",
            goal=Goal(WRITES_KIB * 1024, "ours"),
            remark=year,
        ),
        Row("written for each byte that is kept", whole / kept, "times"),
        Row("a node-day in hours", facts["hours"] * day_mb, "MB", goal=Goal(DAY_MB, "ours")),
        Row("a node-day when the day is over", facts["bytes"] * day_mb, "MB", goal=Goal(DAY_MB, "ours")),
        Row("rollups of it", facts["rollup_bytes"] * day_mb, "MB"),
        Row("bytes a sample, hours", facts["hours"] / rows, "bytes/sample", goal=Goal(0.28, "ours")),
        Row(
            "bytes a sample, the day is over", facts["bytes"] / rows, "bytes/sample", goal=Goal(0.28, "ours")
        ),
    ]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(write_all(*sys.argv[1:])) + "\n")
