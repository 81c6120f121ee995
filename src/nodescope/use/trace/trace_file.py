"""
Perfetto's trace format: packets one after the other, written as they are made.

    Trace         1 packet
    packet        6 clock_snapshot, 8 timestamp, 10 sequence, 11 track_event, 13 sequence_flags,
                  58 timestamp_clock_id, 60 track_descriptor
    descriptor    1 uuid, 2 name, 3 process {1 pid, 6 process_name}, 5 parent_uuid, 8 counter {3 unit, 6 unit_name}
    event         4 debug_annotations, 9 type, 11 track_uuid, 22 categories, 23 name, 44 double_counter_value

protos/perfetto/trace/trace_packet.proto. Timestamps are Unix time in
nanoseconds, on the clock REALTIME, which the first packet makes the trace's own:
a trace of another tool that has snapshots of this clock is put beside ours at
the right place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO

from nodescope.serve.protobuf_message import bytes_field, double_field, integer_field, text_field

REALTIME, MONOTONIC = 1, 3
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
SEQUENCE = 1
# The first packet of a sequence: nothing before it is needed.
STATE_CLEARED = 1
BYTES_UNIT, COUNT_UNIT = 3, 2


@dataclass(slots=True)
class TraceFile:
    """Writes a trace; tracks are numbered as they come."""

    file: IO[bytes]
    zero_ns: int = 0
    """Subtracted from every time: where another trace counts from its own begin."""
    packets: int = 0
    _tracks: int = 0
    _head: bytes = field(default=integer_field(10, SEQUENCE))

    def begin(self, clocks: Iterable[tuple[int, int]] = ()) -> None:
        """(wall ns, monotonic ns) at the same moments; without any, the wall clock alone."""
        pairs = list(clocks)
        for wall_ns, mono_ns in pairs or [(0, 0)]:
            snapshot = encode_clock(REALTIME, wall_ns) + (encode_clock(MONOTONIC, mono_ns) if pairs else b"")
            self._write(bytes_field(6, snapshot + integer_field(2, REALTIME)))
        self._write(integer_field(13, STATE_CLEARED))

    def add_track(self, name: str, parent: int = 0, pid: int = 0, unit: str | None = None) -> int:
        """Its number; a unit makes it a counter, a pid a process."""
        self._tracks += 1
        body = integer_field(1, self._tracks) + text_field(2, name)
        if pid:
            body += bytes_field(3, integer_field(1, pid) + text_field(6, name))
        if parent:
            body += integer_field(5, parent)
        if unit is not None:
            body += bytes_field(8, encode_unit(unit))
        self._write(bytes_field(60, body))
        return self._tracks

    def count(self, track: int, at_ns: int, value: float) -> None:
        event = integer_field(9, COUNTER) + integer_field(11, track) + double_field(44, value)
        self._event(at_ns, event)

    def mark(self, track: int, at_ns: int, name: str, facts: Mapping[str, float | str] | None = None) -> None:
        """A moment."""
        self._event(at_ns, encode_named(INSTANT, track, name, facts or {}))

    def span(
        self,
        track: int,
        from_ns: int,
        to_ns: int,
        name: str,
        facts: Mapping[str, float | str] | None = None,
    ) -> None:
        """A stretch of time; those of one track must not overlap, or lie within each other."""
        self._event(from_ns, encode_named(BEGIN, track, name, facts or {}))
        self._event(to_ns, integer_field(9, END) + integer_field(11, track))

    def _event(self, at_ns: int, event: bytes) -> None:
        # With a zero of its own the trace has no clock that others know.
        clock = b"" if self.zero_ns else integer_field(58, REALTIME)
        self._write(integer_field(8, max(0, at_ns - self.zero_ns)) + clock + bytes_field(11, event))

    def _write(self, body: bytes) -> None:
        self.file.write(bytes_field(1, body + self._head))
        self.packets += 1


def encode_clock(clock: int, at_ns: int) -> bytes:
    return bytes_field(1, integer_field(1, clock) + integer_field(2, at_ns))


def encode_unit(unit: str) -> bytes:
    if unit == "bytes":
        return integer_field(3, BYTES_UNIT)
    return integer_field(3, COUNT_UNIT) if unit in ("", "count") else text_field(6, unit)


def encode_named(kind: int, track: int, name: str, facts: Mapping[str, float | str]) -> bytes:
    body = (
        integer_field(9, kind) + integer_field(11, track) + text_field(22, "nodescope") + text_field(23, name)
    )
    for word, value in facts.items():
        told = text_field(6, value) if isinstance(value, str) else double_field(5, value)
        body += bytes_field(4, text_field(10, word) + told)
    return body
