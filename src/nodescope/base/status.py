"""How the sampler stands: a snapshot that /status, health and the terminal read."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.frame import Outcome
from nodescope.base.self_counters import Tally


@dataclass(frozen=True, slots=True)
class TableCondition:
    """One table: how often it is read, what it costs, what went wrong in it."""

    every_ticks: int
    cost_seconds: float
    slowed: bool
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilesCondition:
    """Files of the node: those that stay open, and those there was no descriptor for."""

    limit: int
    kept_open: int
    reopened: int
    """Opened and closed at each reading: three times as dear, the same values."""
    tables: Mapping[str, tuple[int, int]]
    """Where some are reopened: how many stay open, how many do not."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The sampler at one moment."""

    interval_seconds: float
    outcomes: Mapping[str, Outcome]
    tables: Mapping[str, TableCondition]
    load_ratio: float
    """CPU time of reading, as a share of one core."""
    tally: Tally
    files: FilesCondition


@dataclass(frozen=True, slots=True)
class ArchiveCondition:
    """The archive at one moment."""

    data: str
    state: str
    """writing, or paused."""
    reason: str
    """Why it is paused, and what would end it; empty while writing."""
    written_sequence: int
    """The newest frame that the kernel has; -1 before the first."""
    frames: int
    frames_lost: int
    """Not kept: the disk was full or gone, or could not follow."""
    log_bytes: int
    """Bytes appended to the log since the start."""
    log_seconds: float
    """Age of the oldest sample that is in the log only."""
    segments_waiting: int
    rows: int
    """Rows turned into Parquet since the start."""
    parquet_bytes: int
    archive_bytes: int
    """All files of the data folder, when last looked at."""
    removed_bytes: int
    failures: int
    last_failure: str
    copy: "CopyCondition | None" = None
    """None where nothing is copied to an object store."""


@dataclass(frozen=True, slots=True)
class CopyCondition:
    """The copy to an object store at one moment."""

    lag_seconds: float
    """Age of the oldest sample that only this node has."""
    waiting_files: int
    waiting_bytes: int
    copied_bytes: int
    failures: int
    lost_bytes: int
    """Removed for want of free space before they were copied."""
    vanished_files: int
    """Copied, and later no longer found in the store; sent again while they are here."""
