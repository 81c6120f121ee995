"""nodescope ask: the question's tool is called, and its answer printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.use.mcp.asking import Asker

from nodescope.cli import main

Demo = tuple[Path, dict[str, Any]]
# A busy machine may take longer than people wait.
PATIENT = ("--deadline", "120s")


def test_the_answer_is_the_one_that_mcp_gives(
    asker: Asker, demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same sentence on the command line and over MCP."""
    assert main(["ask", "who uses the most memory?", str(demo[0]), *PATIENT]) == 0
    printed = capsys.readouterr().out
    headline = asker.ask("top_containers", by="memory")["headline"]
    assert printed.splitlines()[0] == headline


def test_what_is_wrong_is_asked_as_such(asker: Asker, demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    """By whoever types it and by whoever asks which tool to call; of one node where one is named."""
    assert main(["ask", "what is wrong on demo-2?", str(demo[0]), "--json", *PATIENT]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["call"] == {"tool": "what_is_wrong", "arguments": {"node": "demo-2"}}
    assert said["answer"]["headline"] == asker.ask("what_is_wrong", node="demo-2")["headline"]
    assert asker.ask("find_metrics", question="what is wrong?")["next"]["tool"] == "what_is_wrong"


def test_a_container_and_a_node_are_taken_from_the_question(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "does the cache on demo-2 leak?", str(demo[0]), "--json", *PATIENT]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["call"]["tool"] == "analyze_container"
    assert said["call"]["arguments"]["container"].startswith("cache")
    assert said["call"]["arguments"]["node"] == "demo-2"
    assert said["answer"]["headline"]


def test_a_node_that_is_not_there_is_named_and_no_other_is_answered_about(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "what happened on demo-7?", str(demo[0]), *PATIENT]) == 1
    printed = capsys.readouterr()
    assert not printed.out
    assert 'no node "demo-7"' in printed.err
    assert "there are: demo-1, demo-2" in printed.err


def test_a_node_alone_is_summarized(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "how is demo-2?", str(demo[0]), "--json", *PATIENT]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["call"] == {"tool": "summarize_node", "arguments": {"node": "demo-2"}}


def test_a_name_that_was_mistyped_is_said_beside_the_answer(
    asker: Asker, demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the command line, and by the tool that tells which call to make."""
    assert main(["ask", "does the chache leak?", str(demo[0]), "--json", *PATIENT]) == 0
    printed = capsys.readouterr()
    assert 'no container is called "chache"; "cache" was taken' in printed.err
    assert json.loads(printed.out)["call"]["arguments"]["container"] == "cache"
    answer = asker.ask("find_metrics", question="does the chache leak?")
    assert answer["next"]["arguments"]["container"] == "cache"
    assert answer["not_looked_at"][0].startswith('"chache": no container is called so')


def test_what_is_no_question_is_one_clear_line(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "xyzzy", str(demo[0]), *PATIENT]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert '"xyzzy" is no question that is known; one can ask about: what is wrong, who uses the most' in line


def test_a_question_about_a_tool_that_is_not_there_says_so(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever tools there are: the line names the one that is missing, and there is an answer all the same."""
    from nodescope.use.mcp.tools import TOOLS

    assert main(["ask", "is the node full?", str(demo[0]), *PATIENT]) == 0
    printed = capsys.readouterr()
    assert ("summarize_node would answer this" in printed.err) is ("summarize_node" not in TOOLS)
    assert printed.out.strip()
