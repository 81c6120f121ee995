"""Malformed input over both real transports: every request has an answer, and the server goes on."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.use.mcp.test_message import REFUSED

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mcp")]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": "last", "method": "ping"}


def call(its_id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": its_id, "method": "tools/call", "params": params}


def converse(archive: Path, lines: Sequence[bytes | dict[str, Any]]) -> list[dict[str, Any]]:
    """All lines at once, then the end of the input; what was answered."""
    sent = b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )
    done = subprocess.run(
        [sys.executable, "-m", "nodescope", "mcp", archive, "--stdio", "--deadline", "60s"],
        input=sent,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_malformed_line_is_answered_on_stdio(archive: Path) -> None:
    malformed = [(text, code, its_id) for text, code, its_id in REFUSED if text]
    answers = converse(archive, [HELLO, READY, *(text for text, _, _ in malformed), PING])
    refused = [(one["error"]["code"], one["id"]) for one in answers if "error" in one]
    assert refused == [(code, its_id) for _, code, its_id in malformed]
    assert {one["id"] for one in answers if "result" in one} == {1, "last"}


def test_a_line_that_is_too_long_is_refused_and_the_next_one_read(archive: Path) -> None:
    answers = converse(archive, [HELLO, READY, b"x" * 700_000, PING])
    assert [(one["id"], one.get("error", {}).get("code")) for one in answers] == [
        (1, None),
        (None, -32600),
        ("last", None),
    ]


def test_what_was_asked_before_the_input_ended_is_answered(archive: Path) -> None:
    """A script that pipes its questions in closes the pipe behind them."""
    ask = [call(2, "list_nodes"), call(3, "top_containers", by="memory"), call(4, "nothing")]
    answers = {one["id"]: one for one in converse(archive, [HELLO, READY, *ask])}
    assert set(answers) == {1, 2, 3, 4}
    assert answers[3]["result"]["structuredContent"]["headline"]
    assert answers[4]["error"]["code"] == -32602


def test_a_cancelled_call_is_not_answered_and_does_not_hold_the_end(archive: Path) -> None:
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    slow = call(2, "explain_incident", at="-6m", minutes=10)
    answers = converse(archive, [HELLO, READY, slow, cancelled, PING])
    assert {one["id"] for one in answers} == {1, "last"}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_malformed_body_is_answered_over_http(server: str, revision: str) -> None:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
    }
    for text, code, its_id in REFUSED:
        request = urllib.request.Request(server, text, headers)  # noqa: S310
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)  # noqa: S310
        with refused.value as answer:
            assert answer.code == 400
            content = json.loads(answer.read())
        assert (content["error"]["code"], content["id"]) == (code, its_id), text[:60]
