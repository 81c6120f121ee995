"""
One pass over a data folder: merge, copy, remove; each although another one failed.

A disk that is full lets nothing be merged, and needs retention most of all; a
store that is away keeps nobody from merging. Copied before retention looks:
what is in the store by then may leave.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodescope.base.clock import Clock
from nodescope.base.log import Log
from nodescope.keep.archive_clock import ClockReading, take_time
from nodescope.keep.consolidator import Consolidator, Report
from nodescope.keep.copy.copier import Copied, Copier
from nodescope.keep.retention import RetentionLimits, apply_retention

log = Log("consolidate")


@dataclass(slots=True)
class PassReport:
    """What a pass did, and which of its parts failed."""

    merged: Report = field(default_factory=Report)
    copied: Copied | None = None
    """None where nothing is copied."""
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Housekeeping:
    """The parts of a pass; no copier where nothing is copied, no limits where nothing is removed."""

    consolidator: Consolidator
    clock: Clock
    boot_id: str
    copier: Copier | None = None
    limits: RetentionLimits | None = None
    report: PassReport = field(default_factory=PassReport)

    def run_pass(self, *, everything: bool = False, copy_seconds: float | None = None) -> PassReport:
        self.report = PassReport()
        now_ms = self.clock.wall_ns() // 1_000_000
        parts: dict[str, Callable[[], None]] = {
            "merging": lambda: self._merge(now_ms),
            "copying": lambda: self._copy(everything, copy_seconds),
            "retention": lambda: self._remove(now_ms),
        }
        for name, part in parts.items():
            try:
                part()
            except OSError as error:
                log.warning("a part of the pass failed", part=name, error=str(error))
                self.report.failures.append(f"{name}: {error.strerror or error}")
        return self.report

    def _merge(self, now_ms: int) -> None:
        self.report.merged = self.consolidator.run_pass(now_ms)

    def _copy(self, everything: bool, seconds: float | None) -> None:
        if self.copier:
            self.report.copied = Copied()
            self.report.copied = self.copier.run_pass(everything=everything, seconds=seconds)

    def _remove(self, now_ms: int) -> None:
        if not self.limits:
            return
        disk, folder = self.consolidator.disk, self.consolidator.folder
        time = take_time(disk, folder, ClockReading(now_ms, self.clock.mono_ns(), self.boot_id))
        copied = self.copier.copied_files if self.copier else None
        self.report.merged.freed = apply_retention(disk, folder, self.limits, time, copied)
