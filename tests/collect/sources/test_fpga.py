"""FPGA: reports become totals and windows, at any rate, in any order."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import NODES, WALL_NS, TurnableClock, build_parts_at

from nodescope.collect.run.call_runner import CallRunner
from nodescope.collect.sources.fpga import FpgaSource
from nodescope.fpga.tracker import BITSTREAMS, SLOTS, FpgaEvent, FpgaTracker

NOW_MS = WALL_NS // 1_000_000
SECOND = 1_000_000_000


@pytest.fixture
def clock() -> TurnableClock:
    return TurnableClock()


@pytest.fixture
def tracker(clock: TurnableClock) -> FpgaTracker:
    return FpgaTracker(clock)


def used(seconds_ago: float, ms: float = 100.0, bitstream: str = "") -> FpgaEvent:
    return FpgaEvent(NOW_MS - round(seconds_ago * 1000), usage_ms=ms, bitstream=bitstream)


def loaded(seconds_ago: float, ms: float, bitstream: str) -> FpgaEvent:
    return FpgaEvent(NOW_MS - round(seconds_ago * 1000), reconfiguration_ms=ms, bitstream=bitstream)


def test_before_the_first_report_the_source_is_absent_with_the_remedy() -> None:
    """A node without FPGAs shows no zeroes."""
    parts = build_parts_at(NODES / "bare" / "t0", TurnableClock())
    caller = next(one for one in parts.sampler._callers if one.name == "fpga")
    caller.ask()
    outcome = caller.take().outcome
    assert (outcome.state, "no event yet" in outcome.reason) == ("absent", True)


def test_the_first_report_is_seen_by_the_next_tick() -> None:
    """The contract's names, in seconds; the bitstream as an info metric."""
    parts = build_parts_at(NODES / "bare" / "t0", TurnableClock())
    parts.agent.fpga.accept(loaded(1, 10_000, "def"))
    parts.agent.fpga.accept(used(1, 3042.325197))
    for caller in parts.sampler._callers:
        caller.ask()
    parts.sampler.tick()
    text = parts.scrape.render(("fpga",), openmetrics=False)
    assert "fpga_usage_seconds_total 3.042325197" in text
    assert "fpga_reconfiguration_seconds_total 10\n" in text
    assert "fpga_reconfigurations_total 1\n" in text
    assert "fpga_recent_usage_seconds 3.042325197" in text
    assert "fpga_recent_reconfiguration_seconds 10\n" in text
    assert 'fpga_bitstream_info{bitstream="def"} 1\n' in text
    assert 'fpga_bitstream_reconfiguration_seconds{bitstream="def"} 10\n' in text
    assert 'fpga_events_total{timestamp="window"} 2\n' in text


def test_an_old_report_counts_in_the_totals_only(tracker: FpgaTracker) -> None:
    """The seed's literal line is of 2023: answered, counted, not recent."""
    tracker.accept(FpgaEvent(1_000_000_000, reconfiguration_ms=10_000, bitstream="def"))
    reading = tracker.read()
    assert (reading.reconfiguration_ms, reading.bitstreams) == (0, ())
    assert (reading.totals.reconfiguration_ms, reading.totals.late) == (10_000, 1)


def test_a_report_from_the_future_is_of_now_and_leaves_like_any_other(
    tracker: FpgaTracker, clock: TurnableClock
) -> None:
    """The original keeps such an event for ever."""
    tracker.accept(FpgaEvent(NOW_MS + 10**9, usage_ms=50, bitstream="x"))
    assert (tracker.read().usage_ms, tracker.read().totals.future) == (50, 1)
    clock.advance(301 * SECOND)
    assert (tracker.read().usage_ms, tracker.read().bitstreams) == (0, ())


def test_usage_is_recent_for_five_minutes_and_a_bitstream_for_one(
    tracker: FpgaTracker, clock: TurnableClock
) -> None:
    """Each leaves at its own time, to the second."""
    tracker.accept(used(0, 100, "abc"))
    clock.advance(59 * SECOND)
    assert [one.name for one in tracker.read().bitstreams] == ["abc"]
    clock.advance(2 * SECOND)
    assert tracker.read().bitstreams == ()
    clock.advance(237 * SECOND)
    assert tracker.read().usage_ms == 100
    clock.advance(3 * SECOND)
    assert tracker.read().usage_ms == 0


def test_a_bitstream_stays_while_a_newer_report_names_it(tracker: FpgaTracker, clock: TurnableClock) -> None:
    """The original forgets it when its oldest report expires; a late old one must not age it either."""
    tracker.accept(used(0, 1, "abc"))
    clock.advance(50 * SECOND)
    tracker.accept(FpgaEvent(NOW_MS + 50_000, usage_ms=1, bitstream="abc"))
    tracker.accept(FpgaEvent(NOW_MS, usage_ms=1, bitstream="abc"))
    clock.advance(30 * SECOND)
    assert [one.name for one in tracker.read().bitstreams] == ["abc"]


def test_a_clock_that_steps_back_freezes_nothing(tracker: FpgaTracker, clock: TurnableClock) -> None:
    """What was of now before the step is of now after it, and leaves in time."""
    tracker.accept(used(0, 100, "abc"))
    clock.now_wall_ns -= 3600 * SECOND
    assert tracker.read().usage_ms == 100
    clock.advance(301 * SECOND)
    assert (tracker.read().usage_ms, tracker.read().bitstreams) == (0, ())


def test_a_set_by_hand_holds_until_it_is_lifted(tracker: FpgaTracker, clock: TurnableClock) -> None:
    tracker.accept(FpgaEvent(NOW_MS, override=("a", "b")))
    clock.advance(3600 * SECOND)
    tracker.accept(FpgaEvent(NOW_MS + 3_600_000, usage_ms=1, bitstream="c"))
    assert [one.name for one in tracker.read().bitstreams] == ["a", "b"]
    tracker.accept(FpgaEvent(NOW_MS, override=()))
    assert [one.name for one in tracker.read().bitstreams] == ["c"]


def test_memory_does_not_grow_with_the_rate(tracker: FpgaTracker) -> None:
    """A hundred thousand reports of two thousand bitstreams: all counted, buckets and names bounded."""
    for number in range(100_000):
        tracker.accept(used(number % 400, 1.0, f"b{number % 2000}"))
    reading = tracker.read()
    assert reading.totals.events == 100_000
    assert reading.usage_ms == 100_000 * SLOTS / 400
    assert len(tracker._buckets) <= SLOTS
    assert len(reading.bitstreams) == BITSTREAMS or reading.bitstreams_left == 0


@given(
    st.lists(
        st.tuples(st.integers(-400_000, 400_000), st.floats(0, 1e6), st.integers(0, 60_000)),
        max_size=60,
    )
)
def test_a_window_is_the_sum_of_what_is_young_enough(events: list[tuple[int, float, int]]) -> None:
    """
    forall events in any order, now moving on between them:
    sum(age <= window - bucket) <= window sum <= sum(age <= window + bucket)
    """
    clock = TurnableClock()
    tracker = FpgaTracker(clock)
    arrived: list[tuple[int, float]] = []
    for offset_ms, usage_ms, wait_ms in events:
        now_ms = clock.now_wall_ns // 1_000_000
        tracker.accept(FpgaEvent(now_ms + offset_ms, usage_ms=usage_ms))
        arrived.append((min(now_ms + offset_ms, now_ms), usage_ms))
        clock.advance(wait_ms * 1_000_000)
    now_ms = clock.now_wall_ns // 1_000_000
    bounds = [
        sum(usage_ms for at_ms, usage_ms in arrived if now_ms - at_ms <= edge) for edge in (298_999, 301_000)
    ]
    found = tracker.read()
    assert bounds[0] - 1e-3 <= found.usage_ms <= bounds[1] + 1e-3
    assert found.totals.events == len(events)


def test_the_set_of_entities_is_the_same_object_while_unchanged(tmp_path: Path) -> None:
    """What is derived from labels is computed once."""
    clock = TurnableClock()
    parts = build_parts_at(NODES / "bare" / "t0", clock)
    caller = CallRunner(FpgaSource, parts.context, clock)
    parts.agent.fpga.accept(used(1, 5, "a"))
    caller.ask()
    first = caller.take().blocks[1].entities
    parts.agent.fpga.accept(used(0, 5, "a"))
    caller.ask()
    assert caller.take().blocks[1].entities is first
