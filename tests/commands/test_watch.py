"""`nodescope watch` says what is wrong, or that nothing is, from an agent or a data folder."""

import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from nodescope.cli import main
from nodescope.commands.findings.watch import fit, render
from nodescope.watch.finding_store import FILE_NAME, FindingStore
from nodescope.watch.sighting import FindingSubject, Sighting

LEAK = Sighting(
    "memory_leak",
    "kill",
    FindingSubject("shop", "cata\x1b[31mlog", container="app"),
    900.0,
    "shop/catalog reaches its limit in 50 min.",
    is_sure=True,
    advice="nodescope study trend",
    time_to_limit_seconds=3000.0,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = FindingStore("node-a", tmp_path / FILE_NAME)
    store.see(LEAK, 1000.0)
    store.see(replace(LEAK, kind="disk_full", is_sure=False), 1000.0)
    store.save(1000.0)
    return tmp_path


def test_a_folder_tells_what_its_agent_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence first; no control character of a name reaches the terminal."""
    assert main(["watch", str(folder), "--once"]) == 0
    text = capsys.readouterr().out
    first, *lines = text.splitlines()
    assert first.startswith("1 thing is wrong on node-a: shop/catalog reaches its limit")
    assert any(line.startswith("kill     memory_leak") and "limit in 50" in line for line in lines)
    assert text.index("memory_leak") < text.index("suspected") < text.index("disk_full")
    assert "\x1b" not in text


def test_a_narrow_terminal_breaks_no_word_and_a_low_one_keeps_the_first_lines(folder: Path) -> None:
    content = json.loads((folder / FILE_NAME).read_text())
    rows = [
        {**one, "sentence": "shop/catalog reaches its limit in 50 min and is killed then."}
        for one in content["findings"]
    ]
    lines = render({"sentence": "1 thing is wrong on node-a.", "findings": rows}, 30)
    assert "         its limit in 50 min" in lines
    assert lines[-1]
    assert fit(lines, 99) == lines
    assert fit(["a", "b", "c", "d"], 3) == ["a", "b", "... 2 more lines; --once shows all"]


def test_json_is_for_scripts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["watch", str(folder), "--json"])
    content = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in content["findings"]] == ["memory_leak", "disk_full"]


def test_a_folder_without_findings_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(tmp_path), "--once"]) != 0
    assert "has no findings.json; accepted: a data folder" in capsys.readouterr().err


class Agent(BaseHTTPRequestHandler):
    """Answers with what the test says, and keeps what was posted."""

    status, body = 200, b"{}"
    posted: ClassVar[list[bytes]] = []

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def do_POST(self) -> None:
        self.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.do_GET()

    def log_message(self, *words: object) -> None:
        del words


@pytest.fixture
def agent() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b'{"detail": "the watcher is turned off: watch = false"}', "the watcher is turned off"),
        (200, b"[" * 100_000, "no JSON"),
        (200, b"[]", "no object"),
    ],
)
def test_an_agent_that_refuses_is_quoted(
    agent: str, capsys: pytest.CaptureFixture[str], status: int, body: bytes, said: str
) -> None:
    Agent.status, Agent.body = status, body
    assert main(["watch", agent, "--once"]) != 0
    assert said in capsys.readouterr().err


def test_a_verdict_is_sent_to_the_agent(agent: str, capsys: pytest.CaptureFixture[str]) -> None:
    store = FindingStore("node-a")
    seen = store.see(replace(LEAK, subject=FindingSubject("shop", "catalog")), 1.0)
    assert seen is not None
    Agent.status, Agent.body = 200, json.dumps(seen.to_json()).encode()
    assert main(["watch", agent, "--not-a-problem", seen.id]) == 0
    assert json.loads(Agent.posted[-1]) == {"id": seen.id, "verdict": "not_a_problem"}
    assert capsys.readouterr().out == "kept: not a problem, memory_leak of shop/catalog\n"


def test_a_silence_is_asked_for_listed_and_ended(agent: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By labels and with an end; what is missing is said before anybody is asked."""
    silence = {"id": "7d0c11aa", "labels": {"workload": "catalog"}, "until": 7200.0, "comment": "load test"}
    Agent.status, Agent.body = 200, json.dumps(silence).encode()
    line = "7d0c11aa  workload=catalog  until 1970-01-01 02:00:00 UTC  (load test)\n"
    asked = ["watch", "silence", "workload=catalog", "kind=memory_leak", "--agent", agent]
    assert main([*asked, "--for", "2h", "--comment", "load test"]) == 0
    assert capsys.readouterr().out == line
    assert json.loads(Agent.posted[-1]) == {
        "silence": {
            "labels": {"workload": "catalog", "kind": "memory_leak"},
            "seconds": 7200.0,
            "comment": "load test",
        }
    }
    assert main(["watch", "end-silence", "7d0c11aa", "--agent", agent]) == 0
    assert capsys.readouterr().out == f"ended: {line}"
    Agent.body = json.dumps({"silences": [silence]}).encode()
    assert main(["watch", "silences", "--agent", agent]) == 0
    assert capsys.readouterr().out == line
    for words, said in (
        (asked, "--for 2h"),
        ([*asked, "--for", "soon"], "accepted: 90m, 2h, 3d"),
        (["watch", "silence", "catalog", "--for", "2h"], "LABEL=VALUE"),
        (["watch", "end-silence"], "the id of one silence"),
        (["watch", "/a", "/b"], "one agent or data folder"),
    ):
        assert main(words) != 0
        assert said in capsys.readouterr().err
