"""
The write-ahead log: one append-only file a segment, packed as it goes.

    wal/<run>-<n>.open    being written: hello, definitions, frames (packed/log_encoder.py)
    wal/<run>-<n>.log     closed: waits to become Parquet

Each segment begins with a hello that says run, number, node, identifier and
what to keep, and defines its entities again, so it can be read alone. A
record that failed half way is cut off again; one that a crash tore is where
reading stops.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodescope.base.frame import Frame
from nodescope.keep.disk import Disk, Output
from nodescope.keep.folder import CLOSED, OPEN, DataFolder, render_day, segment_name
from nodescope.keep.packed.log_encoder import LogEncoder

# The wall clock may be slewed by 500 us a second; a second between two ticks
# is a step.
STEP_NS = 1_000_000_000


@dataclass(slots=True)
class LogWriter:
    """The open segment."""

    disk: Disk
    output: Output
    encoder: LogEncoder
    first: Frame
    last: Frame
    size: int = 0
    unsynced: bool = False

    @classmethod
    def begin(
        cls, disk: Disk, folder: DataFolder, number: int, facts: Mapping[str, Any], frame: Frame
    ) -> "LogWriter":
        path = folder.wal / (segment_name(str(facts["run"]), number) + OPEN)
        encoder = LogEncoder()
        output = disk.create(path)
        writer = cls(disk, output, encoder, frame, frame)
        try:
            writer.size = output.write(encoder.hello(segment=number, **facts))
        except OSError:
            output.close()
            disk.remove(path)
            raise
        return writer

    def append(self, frame: Frame) -> int:
        """The frame, whole, with the kernel; an OSError leaves the log as it was."""
        data = self.encoder.encode(frame)
        try:
            self.output.write(data)
        except OSError:
            self.output.cut_to(self.size)
            raise
        self.size += len(data)
        self.last = frame
        self.unsynced = True
        return len(data)

    def sync(self) -> None:
        if self.unsynced:
            self.unsynced = False
            self.output.sync()

    def is_due(self, frame: Frame, rotation_ns: int) -> bool:
        """Whether the next frame belongs to a new segment: age, midnight, or a stepped clock."""
        aged = frame.mono_ns - self.first.mono_ns >= rotation_ns
        day = render_day(frame.at_ns // 1_000_000) != render_day(self.first.at_ns // 1_000_000)
        drift_ns = (frame.at_ns - self.last.at_ns) - (frame.mono_ns - self.last.mono_ns)
        return aged or day or abs(drift_ns) > STEP_NS

    def close(self) -> None:
        """From .open to .log: from here on a converter may take it."""
        try:
            self.sync()
        finally:
            self.output.close()
        self.disk.rename(self.output.path, self.output.path.with_suffix(CLOSED))
