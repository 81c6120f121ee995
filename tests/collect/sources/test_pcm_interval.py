"""How long a PCM interval was."""

from hypothesis import given
from hypothesis import strategies as st

from nodescope.collect.sources.pcm.interval import IntervalClock

DAY = "2025-07-19"


def measure_all(times: list[str], ticks: float = 0.0) -> list[float | str]:
    clock = IntervalClock()
    return [clock.measure(DAY, time, ticks) for time in times]


def test_the_first_row_covers_nobody_knows_what() -> None:
    assert measure_all(["18:27:08.085"]) == ["first"]


def test_an_interval_is_the_difference_of_the_time_stamps() -> None:
    """Milliseconds count: the original parsed none and fell back to the time of parsing."""
    assert measure_all(["18:27:08.085", "18:27:13.086"]) == ["first", 5.001]


def test_midnight_is_no_step() -> None:
    clock = IntervalClock()
    clock.measure("2025-12-31", "23:59:59.500", 0.0)
    assert clock.measure("2026-01-01", "00:00:00.500", 0.0) == 1.0


def test_a_row_of_the_same_time_is_dropped() -> None:
    assert measure_all(["18:27:08.000", "18:27:08.000"])[1] == "repeated"


def test_a_clock_that_went_back_is_not_a_negative_interval() -> None:
    """The hour that summer's end repeats: one row is lost, the next is measured again."""
    found = measure_all(["02:59:58.000", "02:59:59.000", "02:00:00.000", "02:00:01.000"])
    assert found == ["first", 1.0, "backwards", 1.0]


def learned_clock() -> IntervalClock:
    """Six rows of a second each: 2,400 million ticks a second are known. The last at 02:59:06."""
    clock = IntervalClock()
    for second in range(7):
        clock.measure(DAY, f"02:59:{second:02d}.000", 2400.0)
    return clock


def test_ticks_measure_where_the_clock_stepped() -> None:
    """With TIME(ticks) summer's end costs nothing."""
    clock = learned_clock()
    assert [clock.measure(DAY, time, 2400.0) for time in ("02:00:00.000", "02:00:01.000")] == [1.0, 1.0]


def test_a_gap_without_ticks_is_not_believed() -> None:
    """Another writer's rows lie minutes apart from ours, and cover a second each."""
    found = measure_all(["10:00:00.000", "10:00:01.000", "10:07:00.000", "10:07:01.000"])
    assert found == ["first", 1.0, "gap", 1.0]


def test_a_stall_with_ticks_is_believed() -> None:
    assert learned_clock().measure(DAY, "02:59:16.000", 24000.0) == 10.0


def test_another_process_starts_anew_but_the_ticks_are_known() -> None:
    clock = learned_clock()
    clock.restart()
    assert clock.measure(DAY, "10:00:09.000", 2400.0) == 1.0


def test_a_late_time_stamp_does_not_spoil_the_ticks_for_ever() -> None:
    """A busy machine prints late now and then; the sum of all intervals is still the time that went by."""
    clock = IntervalClock()
    clock.measure(DAY, "10:00:00.000", 2400.0)
    lates = [0.4 if second % 5 == 1 else 0.0 for second in range(1, 59)]
    found = [
        clock.measure(DAY, f"10:00:{second + late:06.3f}", 2400.0) for second, late in enumerate(lates, 1)
    ]
    assert all(isinstance(one, float) for one in found)
    assert abs(sum(one for one in found if isinstance(one, float)) - 58) < 1


@given(st.lists(st.tuples(st.integers(0, 86_399_999), st.floats(0, 1e6)), max_size=40))
def test_an_interval_is_positive_or_a_reason(rows: list[tuple[int, float]]) -> None:
    """forall times, ticks: measure(...) > 0, or one of the reasons."""
    clock = IntervalClock()
    for millis, ticks in rows:
        seconds, rest = divmod(millis, 1000)
        text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:03d}"
        found = clock.measure(DAY, text, ticks)
        assert found in ("first", "repeated", "backwards", "gap") if isinstance(found, str) else found > 0
