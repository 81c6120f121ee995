"""Answers of pcm-sensor-server: whole numbers, the same account."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.hardware import make_pcm, value

from nodescope.base.errors import ParseError, SourceFailed
from nodescope.collect.sources.pcm.sensor_server import Reading, read_server


def basic(instructions: int, cycles: int) -> dict[str, Any]:
    return {
        "Core Counters": {
            "Instructions Retired Any": instructions,
            "Clock Unhalted Thread": cycles,
            "Clock Unhalted Ref": cycles // 2,
            "L3 Cache Misses": 30,
            "L3 Cache Hits": 70,
            "L2 Cache Misses": 100,
            "Invariant TSC": 2_400_000_000,
            "L3 Cache Occupancy": 512,
        },
        "Energy Counters": {"Thermal Headroom": 56, "CStateResidency[0]": 0.25, "CStateResidency[1]": 0.75},
    }


def make_answer(instructions: int = 1_234_567, changes: dict[str, Any] | None = None) -> str:
    uncore = {
        "Uncore Counters": {
            "DRAM Reads": 1_800_000_000,
            "DRAM Writes": 200_000_000,
            "Package Joules Consumed": 18.5,
            "DRAM Joules Consumed": 2.5,
        }
    }
    threads = [{"Thread ID": 0, "OS ID": number, **basic(instructions, 1_000_000)} for number in (1, 0)]
    socket = {
        "Socket ID": 0,
        "Cores": [{"Threads": [thread]} for thread in threads],
        "Uncore": uncore,
        "Core Aggregate": basic(2 * instructions, 2_000_000),
    }
    content = {
        "Interval us": 1_000_000,
        "Object": "SystemRoot",
        "Sockets": [socket],
        "Core Aggregate": basic(2 * instructions, 2_000_000),
        "Uncore Aggregate": uncore,
        **(changes or {}),
    }
    return json.dumps(content)


def test_the_account_is_exact_to_the_unit() -> None:
    """No rounding to hundredths of a million."""
    source = make_pcm()
    source.parse({"server": make_answer(1)}, 0)
    system, socket, core = source.parse({"server": make_answer()}, 1)
    assert value(system, "pcm.instructions") == 2 * 1_234_567
    assert value(system, "pcm.cache.missed") / value(system, "pcm.cache.lookups") == 0.3
    assert value(system, "pcm.memory") == 2_000_000_000
    assert value(socket, "pcm.socket.energy") == 18.5
    assert value(core, "pcm.core.instructions") == 1_234_567
    assert value(core, "pcm.core.c1.in_state") == 0.75
    assert value(system, "pcm.frequency.hertz_seconds") / value(
        system, "pcm.frequency.seconds"
    ) == pytest.approx(4.8e9)
    assert [entity.ids for entity in core.entities] == [("core", "0"), ("core", "1")]


def test_one_sample_is_counted_once() -> None:
    """The server samples by itself: two questions may get one answer."""
    source = make_pcm()
    source.parse({"server": make_answer(1)}, 0)
    source.parse({"server": make_answer()}, 1)
    assert source.parse({"server": make_answer()}, 2) == ()
    assert source._totals.dropped["duplicate"] == 1


def test_disturbed_counters_are_missing_here_too() -> None:
    bad = {"Uncore Counters": {"DRAM Reads": 2**64 - 5, "DRAM Writes": 1}}
    reading = Reading(make_answer(changes={"Uncore Aggregate": bad}))
    assert reading.missing == {"wrapped": 1}


@pytest.mark.parametrize("text", ["", "<html>", "{}", "[]", "null", '{"Interval us": 1, "Sockets": [{}]}'])
def test_another_servers_answer_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="pcm-sensor-server"):
        Reading(text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["Interval us", "Sockets", "Cores", "Threads", "OS ID", "Socket ID", "Core Counters"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_reading_or_refused(content: Any) -> None:
    """forall JSON: a Reading or ParseError."""
    try:
        Reading(json.dumps(content))
    except ParseError:
        pass


def test_a_server_that_is_not_there_says_what_to_look_at() -> None:
    with pytest.raises(SourceFailed, match="is pcm-sensor-server running"):
        read_server("http://127.0.0.1:9")
    with pytest.raises(SourceFailed, match="accepted: http"):
        read_server("localhost:9738")
