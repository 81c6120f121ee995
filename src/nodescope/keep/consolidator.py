"""
The consolidator: small files become hours, hours become days.

A pass, partition by partition:

    1  finish what a crash left: temporary files, and sources that an output
       in place already replaces
    2  turn closed segments of the log into Parquet, unless an agent does
    3  merge the files of each hour that are older than five minutes
    4  merge the hours of each day that is over, into one file or, of a
       large node, into some of a few hours each; a fresh file that is alone
       there is written anew like one
    5  roll up what is new
    6  read a part of all files again; what is damaged is repaired or set aside

It runs beside an agent and readers without a lock they could wait on: a file
gets its name when it is whole, and readers leave out what another file says
it replaces. What it cannot read it sets aside or leaves alone, and says so;
all other files are merged, copied and removed as if it were not there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from nodescope.base.errors import ArchiveDamaged, ArchiveRefused
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.keep.check.heal import Healer
from nodescope.keep.check.sums import forget_checks
from nodescope.keep.convert import convert_all, is_converted, sweep
from nodescope.keep.disk import Disk
from nodescope.keep.folder import (
    MS_PER_DAY,
    MS_PER_HOUR,
    ArchiveFile,
    DataFolder,
    list_partition,
    remove_files,
)
from nodescope.keep.merge import merge_files, open_source
from nodescope.keep.parquet import first_line, open_parquet
from nodescope.keep.retention import Freed
from nodescope.keep.rollup import renew_rollups
from nodescope.keep.sidecar import read_sidecar

log = Log("consolidator")

# fgm's own numbers for the first three; a file younger than five minutes may
# belong to a rotation that is not finished.
AGE_MS = 300_000
FILES_LEAST = 10
# Open at once in a merge. Each costs 4.6 MiB (measured: 41 files peak at 368
# MiB, 7 at 218); twelve stay within 256. More are merged in rounds.
SOURCES_MOST = 12
ROUNDS_MOST = 8
OUTPUT_BYTES = 512 * 2**20
# Of a day's file: a day of 30 containers, four to eight hours of 100. Its rows are in order of series: a
# question about one hour reads as much of each metric as the file has (docs/decisions/0829), and a page
# of more hours holds fewer series that share their times (docs/decisions/0108).
DAY_ROWS = 52_000_000


Batch = tuple[Path, ...]
"""Files of a partition that become one."""


def has_work(batch: Sequence[ArchiveFile], level: str) -> bool:
    """One file is as merged as it can be, but a fresh one of a day that is over would never have its minutes."""
    return len(batch) > 1 or (level == "day" and batch[0].kind == "metrics")


@dataclass(slots=True)
class Report:
    """What a pass did."""

    merged_files: int = 0
    outputs: int = 0
    rows: int = 0
    rollups: int = 0
    freed: Freed | None = None
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Consolidator:
    """One data folder."""

    disk: Disk
    folder: DataFolder
    least: int = FILES_LEAST
    report: Report = field(default_factory=Report)
    healer: Healer = field(init=False)

    def __post_init__(self) -> None:
        self.healer = Healer(self.disk, self.folder)

    def run_pass(self, now_ms: int) -> Report:
        self.report = Report()
        sweep(self.disk, self.folder)
        convert_all(self.disk, self.folder)
        self.healer.scrub()
        for partition in self.folder.partitions():
            try:
                self._work_on(partition, now_ms)
            except OSError as error:
                # A folder of another user, or a full disk, is not a reason to stop before the next.
                self._refuse(partition, error)
        self.report.refused |= self.healer.lost
        self.healer.lost = {}
        return self.report

    def _work_on(self, partition: Path, now_ms: int) -> None:
        self.finish(partition)
        for level in ("hour", "day"):
            self._merge_rounds(partition, level, now_ms)
        self.report.rollups += renew_rollups(self.disk, self.folder, partition, self._refuse)

    def _merge_rounds(self, partition: Path, level: str, now_ms: int) -> None:
        """Until one is left: an hour of forty files takes two rounds."""
        for _ in range(ROUNDS_MOST):
            batches = self.plan(partition, level, now_ms)
            if not batches:
                return
            for batch in batches:
                self._merge(batch)

    def finish(self, partition: Path) -> None:
        """Sources of an output that is in place: a crash came before they were removed."""
        for file in list_partition(partition):
            if file.kind != "consolidated":
                continue
            try:
                replaces = read_sidecar(file.sidecar).head.replaces
                left = [partition / name for name in replaces if (partition / name).exists()]
                if left:
                    # Opened whole once more: what it replaces is removed only for a good file.
                    open_source(file.path)
                    remove_files(self.disk, left)
            except (ArchiveRefused, OSError) as error:
                self._refuse(file.path, error)

    def plan(self, partition: Path, level: str, now_ms: int) -> list[Batch]:
        files = [file for file in list_partition(partition) if self._is_ripe(file, now_ms)]
        length_ms = MS_PER_HOUR if level == "hour" else MS_PER_DAY
        groups: dict[int, list[ArchiveFile]] = {}
        for file in files:
            spans_hours = file.to_ms is not None and file.to_ms // MS_PER_HOUR != file.from_ms // MS_PER_HOUR
            if level == "hour" and spans_hours:
                continue
            groups.setdefault(file.from_ms // length_ms, []).append(file)
        batches: list[Batch] = []
        for number, group in sorted(groups.items()):
            is_over = (number + 1) * length_ms + AGE_MS <= now_ms
            if level == "day" and not is_over:
                continue
            # An hour that is not over is merged in pieces of fresh files.
            chosen = group if is_over else [file for file in group if file.kind == "metrics"]
            if is_over or len(chosen) >= self.least:
                batches += self._cut(chosen, level)
        return batches

    def _is_ripe(self, file: ArchiveFile, now_ms: int) -> bool:
        if file.path.name in self.report.refused:
            return False
        try:
            # The age of the samples or of the file, whichever says older: an
            # archive that was copied here is not fresh because the copy is.
            written_ms = min(file.path.stat().st_mtime_ns // 1_000_000, file.to_ms or file.from_ms)
            return now_ms - written_ms >= AGE_MS and is_converted(self.folder, file.path)
        except (ArchiveRefused, OSError) as error:
            self._refuse(file.path, error)
            return False

    def _cut(self, files: Sequence[ArchiveFile], level: str) -> list[Batch]:
        """Within what a merge may hold open and an output may weigh; a large day in parts of about the same size."""
        counts = {file.path: self._count_rows(file) if level == "day" else 0 for file in files}
        part_rows = sum(counts.values()) / max(1, ceil(sum(counts.values()) / DAY_ROWS))
        batches: list[list[ArchiveFile]] = []
        current: list[ArchiveFile] = []
        size = rows = 0
        for file in sorted(files, key=lambda one: one.from_ms):
            weight, more = file.path.stat().st_size, counts[file.path]
            is_full = size + weight > OUTPUT_BYTES or rows + more / 2 > part_rows
            if current and (len(current) >= SOURCES_MOST or is_full):
                batches.append(current)
                current, size, rows = [], 0, 0
            current.append(file)
            size, rows = size + weight, rows + more
        batches.append(current)
        return [tuple(file.path for file in batch) for batch in batches if has_work(batch, level)]

    def _count_rows(self, file: ArchiveFile) -> int:
        """0 where it cannot be read: the merge says why."""
        try:
            return int(open_parquet(file.path).metadata.num_rows)
        except (ArchiveRefused, OSError):
            return 0

    def _merge(self, batch: Batch) -> None:
        readable = []
        for path in batch:
            try:
                open_source(path)
                readable.append(path)
            except (ArchiveRefused, OSError) as error:
                self._refuse(path, error)
        if len(readable) < min(2, len(batch)):
            return
        try:
            rows = merge_files(self.disk, readable)
        except (ArchiveRefused, ArithmeticError, ValueError, KeyError) as error:
            # Found only while reading: in a file without a checksum, or on a disk that fails since it
            # was checked. All sources stay, and the next pass reads them again.
            forget_checks()
            for path in readable:
                self._refuse(path, error)
            return
        self.report.merged_files += len(readable)
        self.report.outputs += 1
        self.report.rows += rows

    def _refuse(self, path: Path, error: BaseException) -> None:
        """Named and left out of this pass. One with a checksum that does not fit is healed at once."""
        reason = clean_text(first_line(error))
        if path.name not in self.report.refused:
            log.warning("file left alone", file=path.name, reason=reason)
        self.report.refused[path.name] = reason
        if isinstance(error, ArchiveDamaged):
            self.healer.examine_path(path)
