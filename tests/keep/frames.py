"""Frames for the archive's tests: small, exact, with everything that can be odd about them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodescope.base.block import Block, Table
from nodescope.base.codec import Encoder
from nodescope.base.entity import NODE, Entity
from nodescope.base.frame import OK, Event, Frame
from nodescope.base.metric import Metric
from nodescope.keep.disk import Disk, Operation
from nodescope.keep.folder import DataFolder
from nodescope.keep.packed.log_encoder import LogEncoder

if TYPE_CHECKING:
    from nodescope.read.files.catalog import Catalog
    from nodescope.read.live.tail import LiveTail

# 2026-03-01 11:59:00 UTC.
START_NS = 1_772_366_340_000_000_000
MONO_NS = 5_000_000_000_000
SECOND_NS = 1_000_000_000

USAGE = Metric("cgroup.v2.cpu.stat.usage_usec", "counter", "CPU time used.", unit="seconds", scale=1e-6)
CURRENT = Metric("cgroup.v2.memory.current", "gauge", "Memory in use.", unit="bytes", plain="memory")
LIMIT = Metric("cgroup.v2.memory.max", "gauge", "Memory limit.", unit="bytes")
CONTAINERS = Table("container", "container", ("container",), (USAGE, CURRENT, LIMIT))
LOAD = Metric("cpu.load_1m", "gauge", "Load.")
NODES = Table("cpu", "cpu", ("node",), (LOAD,))


def container(letter: str, pod: str = "") -> Entity:
    names = (("namespace", "shop" if pod else ""), ("pod", pod), ("container", pod and "main"))
    return Entity(
        "container", (letter * 64, "77"), names, (("container_id", letter * 64), ("qos", "Burstable"))
    )


A, B = container("a", "pod-a"), container("b", "pod-b")


def frame_at(
    number: int,
    entities: tuple[Entity, ...] = (A, B),
    *,
    at_ns: int | None = None,
    mono_ns: int | None = None,
    events: tuple[Event, ...] = (),
) -> Frame:
    """Tick `number`: container i has used number * (i + 1) ms of CPU and has no memory limit if first."""
    mono_ns = MONO_NS + number * SECOND_NS if mono_ns is None else mono_ns
    at_ns = START_NS + number * SECOND_NS if at_ns is None else at_ns
    rows = [
        [number * 1000.0 * (place + 1), 4096.0 * number, math.inf if place == 0 else 2.0**30]
        for place in range(len(entities))
    ]
    values = np.array(rows, np.float64).reshape(len(entities), 3)
    blocks = (
        Block(CONTAINERS, entities, values, mono_ns),
        Block(NODES, (NODE,), np.array([[number / 10 if number % 7 else math.nan]]), mono_ns),
    )
    return Frame(number, at_ns, mono_ns, blocks, {"container": OK, "cpu": OK}, events)


SAME = (A, B)


def frames(count: int, first: int = 0) -> list[Frame]:
    return [frame_at(number, SAME) for number in range(first, first + count)]


def write_log(
    folder: DataFolder, many: Sequence[Frame], run: str = "run1", segment: int = 1, **facts: object
) -> Path:
    """A closed segment, as an agent leaves it."""
    return write_segment(LogEncoder(), folder, many, run, segment, **facts)


def write_plain_log(folder: DataFolder, many: Sequence[Frame]) -> Path:
    """One of version 2, as an agent left it before logs were packed."""
    return write_segment(Encoder(), folder, many, "run1", 1)


def write_segment(
    encoder: Encoder | LogEncoder,
    folder: DataFolder,
    many: Sequence[Frame],
    run: str,
    segment: int,
    **facts: object,
) -> Path:
    folder.wal.mkdir(parents=True, exist_ok=True)
    parts = [encoder.hello(**{"run": run, "segment": segment, "node": "n1", "identifier": "n1", **facts})]
    parts += [encoder.encode(frame) for frame in many]
    path = folder.wal / f"{run}-{segment:06d}.log"
    path.write_bytes(b"".join(parts))
    return path


def archived_times(folder: DataFolder, metric: str = CURRENT.name, letter: str = "a") -> list[int]:
    """Times, in seconds since START, that the catalog serves for one series; twice when twice."""
    from nodescope.read.files.catalog import read_catalog

    found: list[int] = []
    for entry in read_catalog([folder.path]).entries:
        rows = pq.read_table(
            entry.path,
            columns=["time"],
            filters=[("metric_name", "=", metric), ("l_container_id", "=", letter * 64)],
            partitioning=None,
        )
        times = rows.column("time").cast(pa.int64()).to_pylist()
        found += [round((time - START_NS // 10**6) / 1000) for time in times]
    return sorted(found)


def read_log_tail(data: Path, catalog: "Catalog") -> "LiveTail":
    """What the log beside an archive has and the archive does not."""
    from nodescope.read.live.follow import LogFeed, make_tail

    feed = LogFeed(data)
    feed.poll()
    return make_tail(feed.streams(), catalog)


@dataclass
class Recorder:
    """Hears every operation; raises before the one it is told to stop at."""

    stop_at: int | None = None
    operations: list[Operation] = field(default_factory=list)

    def __call__(self, operation: Operation) -> None:
        if self.stop_at is not None and len(self.operations) >= self.stop_at:
            raise Stopped
        self.operations.append(operation)

    def disk(self) -> Disk:
        return Disk(self)


class Stopped(BaseException):
    """The process ended here."""


def replay(
    operations: Sequence[Operation], source: Path, target: Path, torn_bytes: int | None = None
) -> None:
    """The given operations on another folder; the last write only in part when torn."""

    def moved(path: Path) -> Path:
        return target / path.relative_to(source)

    for place, operation in enumerate(operations):
        path = moved(operation.path)
        is_last = place == len(operations) - 1
        if operation.kind == "create":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        elif operation.kind == "write":
            data = operation.data[:torn_bytes] if is_last and torn_bytes is not None else operation.data
            with path.open("ab") as file:
                file.write(data)
        elif operation.kind == "truncate":
            with path.open("r+b") as whole:
                whole.truncate(operation.size)
        elif operation.kind == "rename":
            assert operation.target is not None
            path.rename(moved(operation.target))
        elif operation.kind == "remove":
            path.unlink(missing_ok=True)
        elif operation.kind == "folder":
            path.mkdir(parents=True, exist_ok=True)
