"""The state of the sampler, the archive and the copy at one moment, for /status, health and the terminal."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.frame import Outcome
from nodescope.base.self_counters import SamplerCounters


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table: how often it is read, what it costs, what went wrong in it."""

    every_ticks: int
    cost_seconds: float
    slowed: bool
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenFilesStatus:
    """The node's files: how many stay open, and how many do not for want of a descriptor."""

    limit: int
    kept_open: int
    reopened: int
    """Opened and closed at each reading: three times the cost, the same values."""
    tables: Mapping[str, tuple[int, int]]
    """For tables with reopened files: how many stay open, how many do not."""


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The memory of the agent's process beside its budget, and what was given up for it."""

    budget_bytes: int
    resident_bytes: int
    """When it was last looked at."""
    is_ring_shortened: bool
    containers_most: int | None
    """Containers that are sampled at the most, while memory is short; None when it is not."""


@dataclass(frozen=True, slots=True)
class SamplerStatus:
    interval_seconds: float
    outcomes: Mapping[str, Outcome]
    tables: Mapping[str, TableStatus]
    load_ratio: float
    """CPU time of reading, as a share of one core."""
    counters: SamplerCounters
    files: OpenFilesStatus


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    data: str
    state: str
    """writing, or paused."""
    reason: str
    """Why it is paused, and how to end that; empty while writing."""
    written_sequence: int
    """The newest frame handed to the kernel; -1 before the first."""
    frames: int
    frames_lost: int
    """Not kept: the disk was full, missing or too slow for longer than the ring holds."""
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
    frames_waiting: int = 0
    """Of a pause that lasts; they are written when it ends."""
    damaged_files: int = 0
    """Set aside since the folder was made, because they could not be read; see DATA/damaged/list.json."""
    repaired_files: int = 0
    """A bit of them had flipped, and was turned back."""
    last_damage: str = ""
    """The newest of these, by name."""
    clock_step_seconds: float = 0.0
    """How far the wall clock is ahead of the time that passed; retention does not believe it yet."""
    copy: "CopyStatus | None" = None
    """None where nothing is copied to an object store."""


@dataclass(frozen=True, slots=True)
class CopyStatus:
    lag_seconds: float
    """Age of the oldest sample that only this node has."""
    waiting_files: int
    waiting_bytes: int
    copied_bytes: int
    failures: int
    lost_bytes: int
    """Removed before they were copied, because the disk was full."""
    vanished_files: int
    """Copied, but later not found in the store; sent again while they are on this node."""
