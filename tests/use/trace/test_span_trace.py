"""A span as a trace, read back by Perfetto's own schema."""

import io
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

from nodescope.base.errors import NodescopeError
from nodescope.cli import main
from nodescope.commands.export import parse_zero
from nodescope.read.query.bucket import Points
from nodescope.use.trace.span_trace import find_gaps, find_stretches, shift
from nodescope.use.trace.trace_file import TraceFile


@dataclass
class ReadTrace:
    """A trace as an importer sees it: packet by packet, and every rule that the format states."""

    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    units: dict[int, Any] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)
    counters: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    slices: dict[int, list[tuple[int, int, str]]] = field(default_factory=dict)
    marks: list[tuple[int, int, str, dict[str, Any]]] = field(default_factory=list)
    clocks: list[dict[int, int]] = field(default_factory=list)

    def path(self, track: int) -> str:
        above = self.parents.get(track, 0)
        return f"{self.path(above)} > {self.names[track]}" if above else self.names[track]


def read_trace(data: bytes) -> ReadTrace:
    trace = schema.Trace.FromString(data)
    found = ReadTrace()
    begun: dict[int, list[tuple[int, str]]] = {}
    events = []
    assert trace.packet[0].clock_snapshot.primary_trace_clock == schema.BUILTIN_CLOCK_REALTIME
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id
        if packet.HasField("clock_snapshot"):
            found.clocks.append({one.clock_id: one.timestamp for one in packet.clock_snapshot.clocks})
        elif packet.HasField("track_descriptor"):
            one = packet.track_descriptor
            assert one.uuid not in found.names
            assert not one.parent_uuid or one.parent_uuid in found.names
            found.names[one.uuid], found.parents[one.uuid] = one.name, one.parent_uuid
            if one.HasField("counter"):
                found.units[one.uuid] = one.counter
            if one.HasField("process"):
                found.pids[one.uuid] = one.process.pid
        elif packet.HasField("track_event"):
            assert packet.track_event.track_uuid in found.names
            events.append(packet)
    # An importer sorts by time; of one moment the order in the file holds.
    for packet in sorted(events, key=lambda one: one.timestamp):
        event, track, at = packet.track_event, packet.track_event.track_uuid, packet.timestamp
        if event.type == schema.TrackEvent.TYPE_COUNTER:
            assert track in found.units
            found.counters.setdefault(track, []).append((at, event.double_counter_value))
        elif event.type == schema.TrackEvent.TYPE_INSTANT:
            facts = {one.name: one.string_value or one.double_value for one in event.debug_annotations}
            found.marks.append((track, at, event.name, facts))
        elif event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            begun.setdefault(track, []).append((at, event.name))
        else:
            start, name = begun[track].pop()
            found.slices.setdefault(track, []).append((start, at, name))
    assert not any(begun.values()), "a slice without an end"
    return found


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace") / "demo"
    assert main(["demo", "--data", str(folder), "--hours", "1", "--containers", "6", "--no-serve"]) == 0
    return folder


def export(archive: Path, out: Path, *words: str) -> ReadTrace:
    assert main(["export", str(archive), "--out", str(out), *words]) == 0
    return read_trace(out.read_bytes())


def test_a_span_has_tracks_of_node_and_containers(archive: Path, tmp_path: Path) -> None:
    trace = export(archive, tmp_path / "t.pftrace", "--from", "-10m")
    paths = {trace.path(track): track for track in trace.counters}
    node = next(path for path in paths if path.endswith(" > memory") and path.count(">") == 1)
    assert trace.path(paths[node]).startswith("node ")
    depths = Counter(path.count(">") for path in paths)
    assert depths[1] >= 1
    assert depths[2] >= 6
    memory = next(track for path, track in paths.items() if path.endswith("> memory"))
    assert trace.units[memory].unit == schema.CounterDescriptor.UNIT_SIZE_BYTES
    for points in trace.counters.values():
        assert all(after[0] >= before[0] for before, after in pairwise(points))
        assert np.isfinite([value for _, value in points]).all()


def test_times_are_unix_time_and_the_clocks_are_in_it(archive: Path, tmp_path: Path) -> None:
    trace = export(archive, tmp_path / "t.pftrace", "--from", "-10m", "--metric", "memory")
    times = [at for points in trace.counters.values() for at, _ in points]
    assert min(times) > 1_600_000_000_000_000_000
    assert trace.clocks
    for snapshot in trace.clocks:
        assert set(snapshot) == {schema.BUILTIN_CLOCK_REALTIME, schema.BUILTIN_CLOCK_MONOTONIC}
    reals = [one[schema.BUILTIN_CLOCK_REALTIME] for one in trace.clocks]
    assert reals == sorted(set(reals))


def test_a_zero_of_its_own_moves_every_time(archive: Path, tmp_path: Path) -> None:
    words = ("--from", "-2m", "--metric", "memory")
    plain = export(archive, tmp_path / "a.pftrace", *words)
    zero = 1_600_000_000_000_000_000
    moved = export(archive, tmp_path / "b.pftrace", *words, "--time-zero", str(zero))
    first, second = (
        sorted(at for points in one.counters.values() for at, _ in points) for one in (plain, moved)
    )
    assert [at - zero for at in first] == second
    packets = schema.Trace.FromString((tmp_path / "b.pftrace").read_bytes()).packet
    assert not any(one.timestamp_clock_id for one in packets if one.HasField("track_event"))


def test_what_happened_is_on_the_container_s_track(archive: Path, tmp_path: Path) -> None:
    trace = export(archive, tmp_path / "t.pftrace")
    words = {name for _, _, name, _ in trace.marks}
    assert "killed for memory" in words
    track, at, _, facts = next(one for one in trace.marks if one[2] == "killed for memory")
    assert "was killed for memory" in facts["sentence"]
    running = [one for one in trace.slices[track] if one[2] == "running"]
    assert any(start <= at <= end + 10**10 for start, end, _ in running)
    assert any(one[2] == "throttled" for slices in trace.slices.values() for one in slices)


def test_a_container_alone(archive: Path, tmp_path: Path) -> None:
    trace = export(archive, tmp_path / "t.pftrace", "--container", "api", "--metric", "cpu")
    assert {trace.names[track] for track in trace.counters} == {"cpu"}
    assert {trace.names[trace.parents[track]].split("/")[-1] for track in trace.counters} == {"api"}


@pytest.mark.parametrize(
    "words",
    [
        ("--metric", "cpuu"),
        ("--from", "2001-01-01", "--to", "2001-01-02"),
        ("--time-zero", "soon"),
        ("--container", "nobody"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(
    archive: Path, tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t.pftrace"
    assert main(["export", str(archive), "--out", str(out), *words]) in (1, 2)
    assert capsys.readouterr().err.startswith("nodescope export: ")
    assert list(tmp_path.iterdir()) == []


def test_a_zero_is_nanoseconds() -> None:
    assert parse_zero("12") == 12
    with pytest.raises(NodescopeError, match="nanoseconds"):
        parse_zero("-1")


def test_processes_are_processes_and_names_of_others_stay_text() -> None:
    file = io.BytesIO()
    trace = TraceFile(file)
    trace.begin()
    node = trace.add_track("node n")
    process = trace.add_track('py"\n\udcff', node, pid=42)
    trace.count(trace.add_track("cpu", process, unit="cores"), 5, 0.5)
    trace.span(process, 1, 9, "a", {"x": "y", "z": 1.5})
    found = read_trace(file.getvalue())
    assert found.pids == {process: 42}
    assert found.names[process] == 'py"\n?'
    assert found.slices == {process: [(1, 9, "a")]}


def test_a_rate_stands_at_the_begin_of_its_second() -> None:
    times = np.array([1000, 2000, 3000, 63000, 64000])
    zeros = np.zeros(5)
    moved = shift(Points(times, zeros, zeros, zeros, np.ones(5, np.int64)))
    assert moved.time_ms.tolist() == [0, 1000, 2000, 62000, 63000]


def test_a_gap_is_told_and_not_drawn_through() -> None:
    assert list(find_gaps(np.array([1000, 2000, 3000, 63000, 64000]))) == [(4000, 63000)]
    assert list(find_gaps(np.array([1000, 2000]))) == []


@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_stretches_cover_every_second_with_throttling_and_no_other(flags: list[bool]) -> None:
    times = np.arange(len(flags)) * 1000
    covered = {
        at
        for from_ms, to_ms, share in find_stretches(times, np.array(flags, float))
        for at in range(from_ms, to_ms, 1000)
        if share == 1
    }
    assert covered == {int(at) for at, flag in zip(times, flags) if flag}
