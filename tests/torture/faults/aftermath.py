"""What an archive is like after a fault: everything finished without faults, then read and compared."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.dataset  # noqa: F401 - pq.read_table would import it in every fork, and pandas with it
import pyarrow.parquet as pq
from tests.torture.faults.scenarios import (
    HOUR,
    NOTHING_STAYS,
    NOW,
    START_MS,
    Row,
    build_housekeeping,
    clock_at,
    make_session,
)

from nodescope.keep.archiver import ArchivePlan, Archiver
from nodescope.keep.check.quarantine import read_damage
from nodescope.keep.check.verify import list_folder_work, list_store_work
from nodescope.keep.copy.manifest import MANIFEST, parse_manifest
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.retention import apply_retention
from nodescope.read.files.catalog import read_catalog

COLUMNS = ["metric_name", "l_container_id", "time", "value"]


def read_rows(paths: Iterable[Path]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for path in paths:
        table = pq.read_table(path, columns=COLUMNS, partitioning=None)
        metric, container, value = (table.column(name).to_pylist() for name in (COLUMNS[0], *COLUMNS[1::2]))
        times = table.column("time").cast("int64").to_pylist()
        for row in zip(metric, container, times, value):
            if row[2] >= START_MS:
                value_or_none = math.inf if row[3] is None else row[3]
                found[(row[0], (row[1] or "")[:1], row[2], value_or_none)] += 1
    return found


def read_archive(folder: DataFolder) -> Counter[Row]:
    """As our readers see it."""
    return read_rows(entry.path for entry in read_catalog([folder.path]).entries)


def list_shape(folder: DataFolder) -> list[str]:
    """Which files of samples there are: the same however they came to be."""
    return sorted(f"{file.kind} {file.day} {file.from_ms}" for file in folder.files())


def count_rolled(folder: DataFolder) -> int:
    """
    Samples that rollups say they were made of; how they are cut into files may differ.

    As with samples, none of the old file: whether its minutes were written before retention came to it is
    a matter of when the fault was.
    """
    return sum(
        count
        for file in folder.rollup.files()
        if file.from_ms >= START_MS
        for count in pq.read_table(file.path, columns=["count"], partitioning=None)
        .column("count")
        .to_pylist()
    )


def list_leftovers(folder: DataFolder) -> list[str]:
    """What nothing will ever remove."""
    return [
        *(str(path) for path in folder.path.rglob(f"identifier=*/*{TEMPORARY}")),
        *(path.name for path in folder.segments()),
    ]


@dataclass
class Aftermath:
    """After the restart and three passes."""

    rows: Counter[Row] = field(default_factory=Counter)
    shape: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    unwhole: list[str] = field(default_factory=list)
    copied_rows: int = 0
    rolled_rows: int = 0
    left_by_retention: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def finish(root: Path) -> Aftermath:
    """A restart of everything, without faults; for two days, in which a clock is believed again."""
    folder = DataFolder(root / "data")
    agent = Archiver(folder, make_session("run9"), ArchivePlan(6.0, 2.0, NOTHING_STAYS), clock_at(NOW))
    agent._prepare()
    has_store = (root / "store").is_dir()
    for hours in (0, 25, 50):
        build_housekeeping(root, copies=has_store, at=NOW + hours * HOUR).run_pass(everything=True)
    found = Aftermath(read_archive(folder), list_shape(folder), list_leftovers(folder))
    found.rolled_rows = count_rolled(folder)
    verdicts = [work.judge() for work in list_folder_work(folder)]
    if has_store:
        store = open_store((root / "store").as_uri())
        verdicts += [work.judge() for work in list_store_work(store)]
        found.copied_rows = count_copied(root / "store")
    found.unwhole = [f"{one.file}: {one.reason}" for one in verdicts if one.state != "whole"]
    found.damaged = [note.file for note in read_damage(folder).notes if not note.is_repaired]
    apply_retention(Disk(), folder, NOTHING_STAYS, clock_at(2 * NOW).wall_ns() // 1_000_000)
    found.left_by_retention = [*list_shape(folder), *(file.path.name for file in folder.rollup.files())]
    return found


def count_copied(store: Path) -> int:
    manifests = store.rglob(MANIFEST)
    return sum(
        row.rows
        for path in manifests
        for row in parse_manifest(path.read_bytes()).files.values()
        if row.from_ms >= START_MS
    )
