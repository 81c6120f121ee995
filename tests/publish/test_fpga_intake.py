"""The FPGA intake: the real sender's fields, and every way of getting them wrong."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import NODES, WALL_NS, TurnableClock, build_parts_at

from nodescope.base.errors import RequestRejected
from nodescope.fpga.tracker import FpgaEvent
from nodescope.publish.fpga_intake import FIELDS, parse_event
from nodescope.wiring import Parts, build_agent_app

NOW_MS = WALL_NS // 1_000_000
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def parts() -> Iterator[Parts]:
    made = build_parts_at(NODES / "bare" / "t0", TurnableClock())
    yield made
    made.sampler.stop()


def post(parts: Parts, path: str = "/", method: str = "POST", **given: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=build_agent_app(parts))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **given)

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ["/", "/fpga/events"])
def test_the_line_of_the_seed_is_answered_ok(parts: Parts, path: str) -> None:
    """Curl's three --data, with a timestamp of now, count at once."""
    body = {"timestamp_ms": str(NOW_MS), "reconfiguration_ms": "10000", "bitstream_identifier": "def"}
    answer = post(parts, path, data=body)
    assert (answer.status_code, answer.text) == (200, "ok")
    reading = parts.agent.fpga.read()
    assert (reading.reconfiguration_ms, reading.bitstreams[0].name) == (10_000, "def")


def test_the_literal_line_of_2023_counts_in_the_totals_only(parts: Parts) -> None:
    answer = post(parts, data={"timestamp_ms": "1589181419598", "reconfiguration_ms": "10000"})
    reading = parts.agent.fpga.read()
    assert (answer.text, reading.reconfiguration_ms, reading.totals.reconfigurations) == ("ok", 0, 1)


def test_a_session_of_the_real_sender_counts(parts: Parts) -> None:
    """std::to_string writes six decimals; the bitstream may be empty."""
    body = f"timestamp_ms={NOW_MS}&duration_ms=3042.325197&bitstream_identifier="
    answer = post(parts, content=body, headers={"Content-Type": FORM})
    assert (answer.status_code, parts.agent.fpga.read().usage_ms) == (200, 3042.325197)


def test_json_says_the_same(parts: Parts) -> None:
    body = {"timestamp_ms": NOW_MS, "duration_ms": 12.5, "bitstream_identifiers": ["a", "b"]}
    assert post(parts, "/fpga/events", json=body).status_code == 200
    assert [one.name for one in parts.agent.fpga.read().bitstreams] == ["a", "b"]


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("timestamp_ms", {"duration_ms": "1"}),
        ("timestamp_ms", {"timestamp_ms": "", "duration_ms": "1"}),
        ("timestamp_ms", {"timestamp_ms": "soon", "duration_ms": "1"}),
        ("timestamp_ms", {"timestamp_ms": "1.5", "duration_ms": "1"}),
        ("timestamp_ms", {"timestamp_ms": "9" * 400, "duration_ms": "1"}),
        ("duration_ms", {"timestamp_ms": "1", "duration_ms": "long"}),
        ("duration_ms", {"timestamp_ms": "1", "duration_ms": "-1"}),
        ("duration_ms", {"timestamp_ms": "1", "duration_ms": "nan"}),
        ("reconfiguration_ms", {"timestamp_ms": "1", "reconfiguration_ms": "inf"}),
        ("reconfiguration_ms", {"timestamp_ms": "1", "reconfiguration_ms": "1e300"}),
        ("reconfiguration_ms", {"timestamp_ms": "1"}),
        ("bitstream_identifier", {"timestamp_ms": "1", "bitstream_identifier": "x" * 300}),
        ("bitstream_identifiers", {"timestamp_ms": "1", "bitstream_identifiers": "x" * 300}),
    ],
)
def test_a_refusal_names_the_field(parts: Parts, field: str, body: dict[str, str]) -> None:
    """400, what was given, what is accepted; and nothing is counted."""
    answer = post(parts, data=body)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(f"{field}:")
    assert parts.agent.fpga.read().totals.events == 0


@pytest.mark.parametrize(
    ("body", "word"), [("{", "not JSON"), ("[1]", "object"), ("[" * 60_000, "JSON"), ("\xff", "JSON")]
)
def test_what_is_no_json_object_is_refused(parts: Parts, body: str, word: str) -> None:
    answer = post(parts, content=body.encode("latin-1"), headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert word in answer.json()["detail"]


def test_other_methods_are_told_what_is_accepted(parts: Parts) -> None:
    answer = post(parts, "/fpga/events", "GET")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    answer = post(parts, "/", "PUT")
    assert (answer.status_code, "GET" in answer.text, "POST" in answer.text) == (405, True, True)


def test_a_body_over_64_kib_is_refused_whether_it_says_so_or_not(parts: Parts) -> None:
    """By its declared length before a byte is read, or as soon as it runs over."""

    async def trickle() -> AsyncIterator[bytes]:
        for _ in range(70):
            yield b"x" * 1024

    assert post(parts, content=b"x" * 65_537, headers={"Content-Type": FORM}).status_code == 413
    assert post(parts, content=trickle(), headers={"Content-Type": FORM}).status_code == 413


def test_a_picture_is_neither_form_nor_json(parts: Parts) -> None:
    assert post(parts, content=b"x", headers={"Content-Type": "image/png"}).status_code == 415


def test_with_a_token_configured_events_need_it(tmp_path: Path) -> None:
    """Without it nothing is counted."""
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    parts = build_parts_at(NODES / "bare" / "t0", TurnableClock(), token_file=str(secret))
    body = {"timestamp_ms": str(NOW_MS), "duration_ms": "1"}
    assert post(parts, data=body).status_code == 401
    assert post(parts, data=body, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert post(parts, data=body, headers={"Authorization": "Bearer s3cret"}).status_code == 200
    assert parts.agent.fpga.read().totals.events == 1


@given(st.binary(max_size=200), st.sampled_from([FORM, "application/json", "", "text/plain; x"]))
def test_any_bytes_are_an_event_or_a_refusal(body: bytes, media_type: str) -> None:
    """forall bytes: an FpgaEvent or RequestRejected, nothing else."""
    with contextlib.suppress(RequestRejected):
        assert isinstance(parse_event(body, media_type), FpgaEvent)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.text(max_size=5))
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_any_json_value_is_an_event_or_a_refusal(content: dict[str, Any]) -> None:
    """forall JSON objects of our fields: accepted numbers are finite and not negative."""
    try:
        event = parse_event(json.dumps(content).encode(), "application/json")
    except RequestRejected:
        return
    assert all(0 <= ms <= 1e12 for ms in (event.usage_ms, event.reconfiguration_ms) if ms is not None)
