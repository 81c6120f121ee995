"""The official client over real transports, in both eras; and who is let in."""

import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from tests.mcp.calls import CALLS
from tests.mcp.servers import nodescope
from tests.use.mcp.asking import connected

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mcp")]


def fetch(
    address: str, headers: dict[str, str] | None = None, body: bytes | None = None, tls: Any = None
) -> tuple[int, Any]:
    request = urllib.request.Request(address, body, headers or {})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60, context=tls) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        content = error.read()
        try:
            return error.code, json.loads(content)
        except ValueError:
            return error.code, content.decode()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_answers_over_streamable_http(server: str, mode: str) -> None:
    """One endpoint, the revision of 2026 and the one before it."""
    with connected(server, mode) as asker:
        assert asker._client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
        for tool, arguments in CALLS.items():
            assert asker.ask(tool, **arguments)["headline"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_answers_over_stdio(archive: Path, mode: str) -> None:
    arguments = ["-m", "nodescope", "mcp", str(archive), "--stdio", "--deadline", "2m"]
    with connected(StdioServerParameters(command=sys.executable, args=arguments), mode) as asker:
        for tool, given in CALLS.items():
            assert asker.ask(tool, **given)["headline"]


def test_nothing_but_the_protocol_is_on_stdout(archive: Path) -> None:
    """A line that is no JSON would end a client's session."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    done = subprocess.run(
        [sys.executable, "-m", "nodescope", "mcp", archive, "--stdio"],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == [1]
    assert "Order of calls" in lines[0]["result"]["instructions"]
    assert done.stderr == ""
    assert done.returncode == 0


def test_probes_tell_the_truth(server: str) -> None:
    base = server.removesuffix("/mcp")
    assert fetch(f"{base}/healthz")[0] == 200
    status, ready = fetch(f"{base}/readyz")
    assert (status, ready["ready"], ready["nodes_ready"]) == (200, True, 2)
    status, missing = fetch(f"{base}/.well-known/oauth-protected-resource")
    assert status == 404
    assert "/mcp" in missing["detail"]


def test_a_server_without_data_is_alive_and_not_ready(tmp_path: Path) -> None:
    with nodescope("mcp", tmp_path, "--port", "0") as (address, process):
        base = address.removesuffix("/mcp")
        assert fetch(f"{base}/healthz")[0] == 200
        status, ready = fetch(f"{base}/readyz")
        assert (status, ready["ready"]) == (503, False)
        assert "no node to ask" in ready["reason"]
        with connected(address) as asker:
            assert "there is no data in" in asker.error("list_nodes")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("content", "named", "said", "code"),
    [
        (None, "", "there is no data in", 0),
        (b"no Parquet", "", "no data that can be read", 0),
        # A file that is named will not become one; what is in a folder changes.
        (b"no Parquet", "notes.parquet", "is not a Parquet file", 1),
    ],
    ids=["empty", "stranger", "file"],
)
def test_a_folder_without_data_is_said_at_the_start(
    tmp_path: Path, content: bytes | None, named: str, said: str, code: int
) -> None:
    """One line for the person who starts it; the agent is told by every tool."""
    if content:
        (tmp_path / "notes.parquet").write_bytes(content)
    path = tmp_path / named
    done = subprocess.run(
        [sys.executable, "-m", "nodescope", "mcp", path, "--stdio"],
        input="",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("nodescope mcp: ")
    assert said in line
    assert str(path) in line
    assert done.returncode == code


def test_a_name_that_was_not_allowed_is_refused(server: str) -> None:
    """DNS rebinding: a page in a browser that made its name point here."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    status, told = fetch(server, {**headers, "Host": "evil.example"}, body)
    assert (status, told["hint"]) == (421, "start it with --allow-host NAME")
    assert fetch(server, {**headers, "Origin": "http://evil.example"}, body)[0] == 403


def test_an_oversized_body_is_refused(server: str) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert fetch(server, headers, b" " * 300_000)[0] == 413


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    (folder / "token").write_text("s3cret\n")
    return folder


def test_token_and_tls_guard_everything_but_the_probes(archive: Path, keys: Path) -> None:
    files = {"--token-file": "token", "--tls-cert": "tls.crt", "--tls-key": "tls.key"}
    guards = [word for flag, name in files.items() for word in (flag, str(keys / name))]
    with nodescope("mcp", archive, "--port", "0", "--allow-host", "mcp.example", *guards) as (address, _):
        assert address.startswith("https://")
        tls = ssl.create_default_context(cafile=str(keys / "tls.crt"))
        assert fetch(address.replace("/mcp", "/readyz"), tls=tls)[0] == 200
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        status, refusal = fetch(address, headers, body, tls)
        assert (status, refusal["error"]) == (401, "token required")
        assert fetch(address, {**headers, "Authorization": "Bearer wrong"}, body, tls)[0] == 401
        right = {**headers, "Authorization": "Bearer s3cret", "Host": "mcp.example"}
        assert fetch(address, right, body, tls)[0] == 200
