"""The sampler: absolute deadlines, sources that fail, and nothing that stops a tick."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tests.collect.nodes import SECOND, Node, TurnableClock

from nodescope.base.block import Block, Table
from nodescope.base.entity import NODE
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.frame import Event, Frame
from nodescope.base.metric import Metric
from nodescope.base.settings import Settings
from nodescope.collect.files.batch import FileFault, ReadSegment
from nodescope.collect.run.sampler import REOPEN_TICKS, Sampler
from nodescope.collect.run.source import Context, Tick


def nothing() -> None:
    pass


class OneNumber:
    """A segment that counts its readings, and does what it is told before each."""

    def __init__(self, name: str, before_read: Callable[[], None] = nothing) -> None:
        self.table = Table(name, name, ("node",), (Metric(f"{name}.m", "gauge", "A number."),))
        self.faults: list[FileFault] = []
        self.cost_ns = 0
        self.meets: list[FileFault] = []
        self.readings = 0
        self.before_read = before_read
        self.before_block: Callable[[], None] = nothing

    def read(self) -> None:
        self.before_read()
        self.faults = list(self.meets)
        self.readings += 1

    def block(self, mono_ns: int) -> Block | None:
        self.before_block()
        return Block(self.table, (NODE,), np.array([[float(self.readings)]]), mono_ns)

    def close(self) -> None:
        pass


@dataclass
class Simple:
    """A source with one segment; making and refreshing it do what they are told."""

    name: str
    segment: OneNumber
    on_open: Callable[[], None] = nothing
    on_refresh: Callable[[], None] = nothing
    tier: int = 1
    closed: int = 0
    left_out: int = 0

    def __call__(self, context: Context) -> "Simple":
        self.on_open()
        return self

    def refresh(self, tick: Tick) -> Iterable[Event]:
        self.on_refresh()
        return ()

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(self.segment, self.tier)]

    def dropped(self) -> dict[str, int]:
        return {"node": self.left_out}

    def close(self) -> None:
        self.closed += 1


@dataclass
class Kept:
    frames: list[Frame] = field(default_factory=list)

    def accept(self, frame: Frame) -> None:
        self.frames.append(frame)


def simple(
    name: str, on_open: Callable[[], None] = nothing, on_refresh: Callable[[], None] = nothing
) -> Simple:
    return Simple(name, OneNumber(name), on_open, on_refresh)


def raising(error: Exception) -> Callable[[], None]:
    def throw() -> None:
        raise error

    return throw


@dataclass
class Bench:
    sampler: Sampler
    clock: TurnableClock
    kept: Kept


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(*sources: Simple, settings: Settings | None = None) -> Bench:
        clock, kept = TurnableClock(), Kept()
        context = Node(tmp_path).context(settings)
        return Bench(Sampler(sources, [], [kept], context, clock), clock, kept)

    return make


MakeBench = Callable[..., Bench]


def test_ticks_are_taken_at_absolute_deadlines(bench: MakeBench) -> None:
    """n ticks after the start it is start + n * interval, whatever a tick took."""
    slow = simple("a")
    parts = bench(slow)
    slow.segment.before_read = lambda: parts.clock.turn(0.3)
    parts.clock.ends_ns = 10 * SECOND
    parts.sampler.run()
    assert [frame.mono_ns for frame in parts.kept.frames] == [n * SECOND for n in range(10)]
    assert parts.sampler.counters.missed == 0
    assert parts.sampler.counters.late_seconds.total == 0.0


def test_a_late_tick_does_not_move_the_next(bench: MakeBench) -> None:
    slow = simple("a")
    parts = bench(slow)
    durations = iter([0.0, 1.4, 0.0, 0.0])
    slow.segment.before_read = lambda: parts.clock.turn(next(durations, 0.0))
    parts.clock.ends_ns = 5 * SECOND
    parts.sampler.run()
    # The tick at 1 s took 1.4 s: the one of 2 s starts at 2.4 s, the one of 3 s on time.
    assert [frame.mono_ns / SECOND for frame in parts.kept.frames] == [0, 1, 2.4, 3, 4]
    assert parts.sampler.counters.missed == 0
    assert parts.sampler.counters.late_seconds.total == pytest.approx(0.4)


def test_ticks_that_could_not_be_taken_are_counted_not_caught_up_with(bench: MakeBench) -> None:
    slow = simple("a")
    parts = bench(slow)
    durations = iter([0.0, 3.5])
    slow.segment.before_read = lambda: parts.clock.turn(next(durations, 0.0))
    parts.clock.ends_ns = 7 * SECOND
    parts.sampler.run()
    # Begun at 1 s, done at 4.5 s: those of 2 s and 3 s are lost, that of 4 s is late.
    assert [frame.mono_ns / SECOND for frame in parts.kept.frames] == [0, 1, 4.5, 5, 6]
    assert parts.sampler.counters.missed == 2
    assert parts.sampler.counters.ticks == 5


def test_a_source_that_is_absent_is_asked_again_after_a_while(bench: MakeBench) -> None:
    found = [False]

    def look() -> None:
        if not found[0]:
            raise SourceAbsent("no such device yet")

    late = simple("late", on_open=look)
    parts = bench(simple("a"), late)
    frames = [parts.sampler.tick() for _ in range(REOPEN_TICKS)]
    assert all(frame.outcomes["late"].state == "absent" for frame in frames)
    assert frames[-1].outcomes["late"].reason == "no such device yet"
    found[0] = True
    frame = parts.sampler.tick()
    assert frame.outcomes["late"].state == "ok"
    assert {block.table.name for block in frame.blocks} == {"a", "late"}


@pytest.mark.parametrize(
    ("error", "state", "detail"),
    [
        (SourceFailed("disk on fire"), "failed", "failed"),
        (SourceAbsent("unplugged"), "absent", "absent"),
        (ValueError("a bug"), "failed", "raised"),
    ],
)
def test_a_source_that_raises_while_refreshing_stops_nobody(
    bench: MakeBench, error: Exception, state: str, detail: str
) -> None:
    parts = bench(simple("bad", on_refresh=raising(error)), simple("good"))
    frame = parts.sampler.tick()
    assert (frame.outcomes["bad"].state, frame.outcomes["bad"].detail) == (state, detail)
    assert str(error) in frame.outcomes["bad"].reason
    assert [block.table.name for block in frame.blocks] == ["good"]
    assert frame.outcomes["good"].state == "ok"


def test_a_source_that_raises_while_reading_stops_nobody(bench: MakeBench) -> None:
    """A bug in one segment is an outcome: the others are read, the tick ends, the next one comes."""
    bad = simple("bad")
    bad.segment.before_read = raising(KeyError("a bug"))
    parts = bench(bad, simple("good"))
    for number in range(3):
        frame = parts.sampler.tick()
        assert frame.sequence == number
        assert frame.outcomes["bad"].state == "failed"
        assert "a bug" in frame.outcomes["bad"].reason
        assert [block.table.name for block in frame.blocks] == ["good"]
    assert parts.sampler.counters.errors["bad", "raised"] >= 3
    bad.segment.before_read = nothing
    assert parts.sampler.tick().outcomes["bad"].state == "ok"


def test_a_source_that_makes_no_sense_of_its_own_values_stops_nobody(bench: MakeBench) -> None:
    bad = simple("bad")
    bad.segment.before_block = raising(ValueError("values are (1, 2), expected (1, 1)"))
    parts = bench(bad, simple("good"))
    frame = parts.sampler.tick()
    assert frame.outcomes["bad"].state == "failed"
    assert [block.table.name for block in frame.blocks] == ["good"]


def test_a_file_that_is_gone_is_no_failure_and_one_that_breaks_is(bench: MakeBench) -> None:
    source = simple("a")
    parts = bench(source)
    source.segment.meets = [FileFault("x", "gone", "no such device")]
    assert parts.sampler.tick().outcomes["a"].state == "ok"
    assert not parts.sampler.status().tables["a"].faults
    source.segment.meets = [FileFault("x", "failed", "input/output error")]
    parts.sampler.tick()
    assert parts.sampler.counters.errors["a", "failed"] >= 1
    assert parts.sampler.status().tables["a"].faults == ("x: input/output error",)


def test_a_slow_table_is_in_some_frames_only(bench: MakeBench) -> None:
    slow = simple("slow")
    slow.tier = 5
    parts = bench(simple("fast"), slow)
    frames = [parts.sampler.tick() for _ in range(11)]
    assert [len(frame.blocks) for frame in frames] == [2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2]


def test_the_condition_is_a_snapshot_of_everything(bench: MakeBench) -> None:
    parts = bench(simple("a"))
    parts.sampler.tick()
    status = parts.sampler.status()
    assert status.outcomes["a"].state == "ok"
    assert status.tables["a"].every_ticks == 1
    assert status.counters.last_ok_mono_ns["a"] == 0


def test_what_is_left_out_is_counted_at_every_tick(bench: Callable[..., Bench]) -> None:
    """A true counter, whose rate is how many are left out; /status has the present number."""
    source = simple("a")
    sampler = bench(source).sampler
    for source.left_out in (3, 3, 1, 0):
        sampler.tick()
    assert sampler.counters.dropped["node"] == 7
    assert sampler.counters.over_limit == {"node": 0}
