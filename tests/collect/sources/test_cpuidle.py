"""Idle states: time asleep, spread over the time that went by."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.hardware import make_context, value, write_files

from nodescope.base.errors import SourceAbsent
from nodescope.collect.sources.cpuidle import CpuidleSource, Sleep


def write_states(folder: Path, core: int, times: dict[str, int]) -> None:
    base = f"sys/devices/system/cpu/cpu{core}/cpuidle"
    for number, (name, microseconds) in enumerate(times.items()):
        write_files(folder, {f"{base}/state{number}/name": name, f"{base}/state{number}/time": microseconds})


def open_source(folder: Path) -> CpuidleSource:
    return CpuidleSource(make_context(folder))


def test_time_asleep_is_every_state_but_poll(tmp_path: Path) -> None:
    write_states(tmp_path, 0, {"POLL": 100, "C1": 1_000_000, "C6": 2_000_000})
    source = open_source(tmp_path)
    source.parse(source.read(), 0)
    write_states(tmp_path, 0, {"POLL": 900_100, "C1": 1_200_000, "C6": 2_300_000})
    (block,) = source.parse(source.read(), 1_000_000_000)
    assert value(block, "cpuidle.asleep") == pytest.approx(0.5)
    assert value(block, "cpuidle.seconds") == pytest.approx(1.0)
    assert value(block, "cpuidle.C6.time") == 2_300_000


def test_a_long_sleep_that_arrives_late_is_spread(tmp_path: Path) -> None:
    """The kernel adds a stay when the core wakes: 3 s at once, in an interval of 1 s."""
    write_states(tmp_path, 0, {"C1": 0})
    source = open_source(tmp_path)
    source.parse(source.read(), 0)
    write_states(tmp_path, 0, {"C1": 3_000_000})
    asleep = [
        value(source.parse(source.read(), n * 1_000_000_000)[0], "cpuidle.asleep") for n in (1, 2, 3, 4)
    ]
    assert asleep == pytest.approx([1.0, 2.0, 3.0, 3.0])


@given(st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(1, 3_000_000_000)), max_size=20))
def test_nobody_sleeps_longer_than_the_time_that_went_by(steps: list[tuple[int, int]]) -> None:
    """forall stays, intervals: 0 <= growth(asleep) <= growth(seconds), and asleep <= sum of stays."""
    sleep = Sleep(0.0)
    stays = at_ns = 0
    before = sleep.add({"C1": 0}, 0)
    for stay, elapsed_ns in steps:
        stays, at_ns = stays + stay, at_ns + elapsed_ns
        after = sleep.add({"C1": stays}, at_ns / 1e9)
        assert -1e-9 <= after[0] - before[0] <= after[1] - before[1] + 1e-9
        assert after[0] <= stays / 1e6 + 1e-9
        before = after


def test_states_of_one_name_are_told_apart(tmp_path: Path) -> None:
    base = "sys/devices/system/cpu/cpu0/cpuidle"
    write_files(
        tmp_path,
        {f"{base}/state{n}/{file}": text for n in (0, 1) for file, text in (("name", "C1"), ("time", 5))},
    )
    (block,) = open_source(tmp_path).parse({"0": {"C1": 5, "C1 state1": 5}}, 0)
    assert {"cpuidle.C1.time", "cpuidle.C1 state1.time"} <= set(block.table.columns)


def test_no_driver_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="idle driver"):
        CpuidleSource(make_context(tmp_path))


def test_files_stay_open_and_a_core_that_went_is_missing_until_it_is_back(tmp_path: Path) -> None:
    """An unreadable time is missing, not zero; nothing stays open at the end."""
    write_states(tmp_path, 0, {"C1": 7})
    write_states(tmp_path, 1, {"C1": 8})
    context = make_context(tmp_path)
    source = CpuidleSource(context)
    assert source.read() == {"0": {"C1": 7}, "1": {"C1": 8}}
    assert context.descriptors.kept["cpuidle"] == 2
    time_file = tmp_path / "sys/devices/system/cpu/cpu1/cpuidle/state0/time"
    os.close(source._kept[str(time_file.relative_to(tmp_path))])
    source._kept[str(time_file.relative_to(tmp_path))] = os.open(tmp_path, os.O_RDONLY)
    assert source.read()["1"] == {"C1": None}
    assert source.read()["1"] == {"C1": 8}
    source.close()
    assert context.descriptors.kept["cpuidle"] == 0


def test_over_the_limit_of_descriptors_files_are_opened_each_time(tmp_path: Path) -> None:
    write_states(tmp_path, 0, {"C1": 7, "C6": 9})
    context = make_context(tmp_path)
    context.descriptors.limit = 1
    source = CpuidleSource(context)
    for _ in range(2):
        assert source.read() == {"0": {"C1": 7, "C6": 9}}
    assert (context.descriptors.pinned, context.descriptors.reopened["cpuidle"]) == (1, 0)
