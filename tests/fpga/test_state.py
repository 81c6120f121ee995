"""The annotation's state: small at any rate, and the original's own is understood."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import WALL_NS, TurnableClock

from nodescope.base.errors import ParseError
from nodescope.base.text import clean_text
from nodescope.fpga.state import (
    STATE_BYTES,
    derive_buckets,
    is_material,
    parse_state,
    render_state,
)
from nodescope.fpga.tracker import FpgaEvent, FpgaReading, FpgaTracker

NOW_MS = WALL_NS // 1_000_000
# As the original collector writes it, its blobs by Go's encoding/gob: sessions 200, 5 and
# 0.1 s old, loads 200 and 30 s old, and four reports of bitstreams, one of them nameless.
VERSION_1 = {
    "recentUsage": 4542.325197,
    "recentReconfigurationTime": 10020.5,
    "recentBitstreamIdentifiers": {"def": {}, "abc": {}, "": {}},
    "version": 1,
    "UsageState": (
        "Df+DAgEC/4QAAf+AAAAyfwMBAQxVc2FnZVJlcXVlc3QB/4AAAQIBBVVzYWdlAQgAAQlUaW1lc3RhbXAB/4IAAAAQ/4EFAQEE"
        "VGltZQH/ggAAAEn/hAADAfiEnziApsSnQAEPAQAAAA7cTVC4AAAAAAAAAAIPAQAAAA7cTVF7AAAAAAAAAAH9cJdAAQ8BAAAA"
        "DtxNUX81pOkAAAAA"
    ),
    "ReconfigurationState": (
        "Df+HAgEC/4gAAf+GAABL/4UDAQEWUmVjb25maWd1cmF0aW9uUmVxdWVzdAH/hgABAgEJVGltZXN0YW1wAf+CAAETUmVjb25m"
        "aWd1cmF0aW9uVGltZQEIAAAAEP+BBQEBBFRpbWUB/4IAAAAy/4gAAgEPAQAAAA7cTVC4AAAAAAAAAf2Iw0AAAQ8BAAAADtxN"
        "UWIAAAAAAAAB/YA0QAA="
    ),
    "BitstreamState": (
        "Df+LAgEC/4wAAf+KAABP/4kDAQEaQml0c3RyZWFtSWRlbnRpZmllclJlcXVlc3QB/4oAAQIBE0JpdHN0cmVhbUlkZW50aWZp"
        "ZXIBDAABCVRpbWVzdGFtcAH/ggAAABD/gQUBAQRUaW1lAf+CAAAAW/+MAAQBA2RlZgEPAQAAAA7cTVC4AAAAAAAAAAEDYWJj"
        "AQ8BAAAADtxNUWIAAAAAAAAAAQNhYmMBDwEAAAAO3E1RdgAAAAAAAAACDwEAAAAO3E1RfwAAAAAAAAA="
    ),
}
EVENTS = st.lists(
    st.builds(
        FpgaEvent,
        st.integers(NOW_MS - 320_000, NOW_MS + 5_000),
        st.none() | st.floats(0, 1e12),
        st.none() | st.floats(0, 1e12),
        st.text(max_size=256).map(lambda text: clean_text(text.encode("utf-8", "replace").decode())),
    ),
    max_size=60,
)


def read_after(events: list[FpgaEvent]) -> FpgaReading:
    tracker = FpgaTracker(TurnableClock())
    for event in events:
        tracker.accept(event)
    return tracker.read()


def restore(text: str, clock: TurnableClock) -> FpgaTracker:
    tracker = FpgaTracker(clock)
    state = parse_state(text, tracker.now_ms())
    tracker.restore(derive_buckets(state, tracker.now_ms()), state.bitstreams)
    return tracker


@given(EVENTS)
def test_a_state_never_has_more_than_a_kib(events: list[FpgaEvent]) -> None:
    """forall readings: len(render_state(reading).encode()) <= 1024, and no bitstream is uncounted."""
    reading = read_after(events)
    text = render_state(reading)
    assert len(text.encode()) <= STATE_BYTES
    content = json.loads(text)
    shown = content["recentBitstreamIdentifiers"]
    assert len(shown) + content["state"]["more"] == len(reading.bitstreams)


@given(EVENTS)
def test_a_restart_keeps_the_window(events: list[FpgaEvent]) -> None:
    """forall readings: restore(render(reading)) has its sums to six digits and the bitstreams that fit."""
    reading = read_after(events)
    text = render_state(reading)
    again = restore(text, TurnableClock()).read()
    assert again.usage_ms == pytest.approx(reading.usage_ms, rel=1e-5)
    assert again.reconfiguration_ms == pytest.approx(reading.reconfiguration_ms, rel=1e-5)
    assert {one.name for one in again.bitstreams} == set(json.loads(text)["recentBitstreamIdentifiers"])
    assert again.totals.events == 0


def test_the_keys_of_the_original_plugin_are_there() -> None:
    """Its Go types: two floats in milliseconds, and a set as a map of empty objects."""
    reading = read_after(
        [FpgaEvent(NOW_MS, reconfiguration_ms=10_000, bitstream="def"), FpgaEvent(NOW_MS, usage_ms=5)]
    )
    content = json.loads(render_state(reading))
    assert content["recentUsage"] == 5
    assert content["recentReconfigurationTime"] == 10_000
    assert content["recentBitstreamIdentifiers"] == {"def": {}}
    assert (content["version"], content["updatedAt"]) == (2, NOW_MS / 1000)


def test_the_least_recently_used_bitstreams_leave_and_are_counted() -> None:
    events = [FpgaEvent(NOW_MS - 1000 * age, usage_ms=1, bitstream=f"{age:04}" * 8) for age in range(50)]
    content = json.loads(render_state(read_after(events)))
    shown = list(content["recentBitstreamIdentifiers"])
    assert 3 <= len(shown) < 50
    assert shown == [f"{age:04}" * 8 for age in range(len(shown))]
    assert content["state"]["more"] == 50 - len(shown)


def test_what_was_written_long_ago_is_not_recent() -> None:
    """An agent that was down for a minute has lost the oldest minute; after five it starts empty."""
    clock = TurnableClock()
    tracker = FpgaTracker(clock)
    tracker.accept(FpgaEvent(NOW_MS - 270_000, usage_ms=100))
    tracker.accept(FpgaEvent(NOW_MS, usage_ms=300, bitstream="a"))
    text = render_state(tracker.read())
    clock.advance(60_000_000_000)
    assert restore(text, clock).read().usage_ms == pytest.approx(300, rel=2e-3)
    clock.advance(300_000_000_000)
    late = restore(text, clock).read()
    assert (late.usage_ms, late.bitstreams) == (0, ())


def test_the_state_of_the_original_collector_is_taken_over() -> None:
    """Its blobs say when each event was: they leave the window one by one, not evenly."""
    clock = TurnableClock()
    tracker = restore(json.dumps(VERSION_1), clock)
    reading = tracker.read()
    assert reading.usage_ms == pytest.approx(4542.325197)
    assert reading.reconfiguration_ms == pytest.approx(10_020.5)
    assert reading.sessions == 3
    # "def" is in the original's set by its own bug: it was last seen 200 s ago.
    (kept,) = reading.bitstreams
    assert (kept.name, kept.seen_at_ms, kept.reconfiguration_ms) == ("abc", NOW_MS - 10_000, 20.5)
    clock.advance(150_000_000_000)
    assert tracker.read().usage_ms == pytest.approx(1500)
    assert tracker.read().reconfiguration_ms == pytest.approx(20.5)
    assert tracker.read().bitstreams == ()


@pytest.mark.parametrize("blob", ["", "!", "Dv+BAwEC", "Dv+BAwEC/4IAAf+DAQIAAP+EAAH/gwAB", 5, None])
def test_a_blob_that_is_not_understood_leaves_the_sums(blob: object) -> None:
    """Spread evenly, they fade over the window."""
    clock = TurnableClock()
    tracker = restore(json.dumps({**VERSION_1, "UsageState": blob}), clock)
    assert tracker.read().usage_ms == pytest.approx(4542.325197)
    clock.advance(150_000_000_000)
    assert tracker.read().usage_ms == pytest.approx(4542.325197 / 2, rel=0.05)


def test_the_number_of_sessions_survives() -> None:
    reading = read_after([FpgaEvent(NOW_MS - 1000, usage_ms=ms) for ms in (10.0, 20.0, 30.0)])
    assert restore(render_state(reading), TurnableClock()).read().sessions == pytest.approx(3)


def test_a_mean_time_to_load_survives() -> None:
    reading = read_after(
        [FpgaEvent(NOW_MS, reconfiguration_ms=ms, bitstream="a") for ms in (10.0, 20.0)]
        + [FpgaEvent(NOW_MS, usage_ms=1, bitstream="b")]
    )
    means = {
        one.name: one.reconfiguration_ms for one in parse_state(render_state(reading), NOW_MS).bitstreams
    }
    assert means["a"] == 15
    assert math.isnan(means["b"])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not JSON"),
        ("null", "object"),
        ("[" * 100_000, "JSON"),
        ('{"version": 3}', "version"),
        ('{"version": true}', "version"),
        ('{"version": 1, "recentUsage": "much"}', "recentUsage"),
        ('{"version": 1, "recentUsage": NaN}', "recentUsage"),
        ('{"version": 1, "recentBitstreamIdentifiers": 5}', "recentBitstreamIdentifiers"),
        ('{"version": 2}', "updatedAt"),
        ('{"version": 2, "updatedAt": 1}', "state"),
        ('{"version": 2, "updatedAt": 1, "state": {"window": 0}}', "window"),
    ],
)
def test_a_broken_state_says_what_is_wrong_with_it(text: str, word: str) -> None:
    with pytest.raises(ParseError, match=word):
        parse_state(text, NOW_MS)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"version": st.sampled_from([1, 2])},
        optional={
            "recentUsage": PLAIN,
            "recentReconfigurationTime": PLAIN,
            "recentBitstreamIdentifiers": PLAIN,
            "updatedAt": PLAIN | st.just(NOW_MS / 1000),
            "UsageState": st.sampled_from([None, 5, "x", VERSION_1["UsageState"], VERSION_1["UsageState"]]),
            "ReconfigurationState": st.sampled_from(
                [None, 5, "x", VERSION_1["ReconfigurationState"], VERSION_1["UsageState"]]
            ),
            "BitstreamState": st.sampled_from(
                [None, 5, "x", VERSION_1["BitstreamState"], VERSION_1["UsageState"]]
            ),
            "state": PLAIN
            | st.fixed_dictionaries(
                {"window": st.just(300)},
                optional={"usage": PLAIN, "bitstreams": PLAIN, "more": PLAIN, "sessions": PLAIN},
            ),
        },
    )
)
def test_any_state_is_understood_or_refused(content: dict[str, Any]) -> None:
    """forall JSON: a state whose restoring gives finite, non-negative sums, or ParseError."""
    try:
        tracker = restore(json.dumps(content), TurnableClock())
    except ParseError:
        return
    reading = tracker.read()
    assert math.isfinite(reading.usage_ms)
    assert reading.usage_ms >= 0


def test_only_what_a_scheduler_would_notice_is_material() -> None:
    """Five percent of either sum, or another set of bitstreams."""

    def reading(usage_ms: float, bitstream: str = "a") -> FpgaReading:
        return read_after([FpgaEvent(NOW_MS, usage_ms=usage_ms, bitstream=bitstream)])

    assert not is_material(None, read_after([]))
    assert is_material(None, reading(1))
    assert not is_material(reading(1000), reading(1049))
    assert is_material(reading(1000), reading(1100))
    assert is_material(reading(1000), reading(1000, "b"))
    assert is_material(reading(10), reading(0))
