"""A server over a demo archive, asked through the official client in memory; every answer is checked."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.server import Server

from nodescope.base.clock import SystemClock
from nodescope.keep.demo.archive import render_truth, write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.nodes.local import LocalFolders
from nodescope.use.mcp.protocol.answer import ANSWER_SCHEMA, LIMIT_BYTES
from nodescope.use.mcp.protocol.server import build_server

END_MS = 1_772_366_400_000
MOST_NUMBERS = 12


def write_demo(
    folder: Path, seed: int, nodes: int = 3, hours: float = 0.7, containers: int = 8
) -> dict[str, Any]:
    """A demo archive as the command writes it, and its truth."""
    planted: list[dict[str, Any]] = []
    most: list[dict[str, Any]] = []
    for number in range(nodes):
        name = f"demo-{number + 1}"
        request = DemoRequest(folder / name, hours, containers, seed, END_MS, name)
        made = write_node(request, "0", lambda _: None)
        planted += [{"node": name, **one} for one in made.truth]
        most.append({"node": name, **made.most})
    (folder / "truth.json").write_bytes(render_truth(request, planted, most))
    truth: dict[str, Any] = json.loads((folder / "truth.json").read_text())
    return truth


# A busy machine makes a second of work a minute: what is asked here is the answer, not its speed.
PATIENT_SECONDS = 600.0


def local_fleet(folder: Path, deadline_seconds: float = PATIENT_SECONDS) -> Fleet:
    return Fleet(LocalFolders([folder], SystemClock()), SystemClock(), deadline_seconds)


class Asker:
    """Calls tools and refuses an answer that breaks a promise all answers make."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self._client = client
        self._portal = portal

    def raw(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        return self._portal.call(self._client.call_tool, tool, dict(arguments))

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured part of an answer that is no error."""
        given = {name.rstrip("_"): value for name, value in arguments.items()}
        result = self.raw(tool, given)
        assert not result.is_error, result.content[0].text
        check_result(result)
        content: dict[str, Any] = result.structured_content
        return content

    def error(self, tool: str, **arguments: Any) -> str:
        given = {name.rstrip("_"): value for name, value in arguments.items()}
        result = self.raw(tool, given)
        assert result.is_error, result.content[0].text
        check_result(result)
        text: str = result.content[0].text
        return text


@contextmanager
def connected(server: Server[Any] | str | StdioServerParameters, mode: str = "auto") -> Iterator[Asker]:
    """The official client, in memory or by address, from a test that is not asynchronous."""
    with start_blocking_portal() as portal:
        client = Client(server, mode=mode)
        with portal.wrap_async_context_manager(client) as session:
            yield Asker(session, portal)


@contextmanager
def asking(folder: Path) -> Iterator[Asker]:
    with connected(build_server(local_fleet(folder))) as asker:
        yield asker


def check_result(result: Any) -> None:
    """Within the byte limit, as its schema says, and never a list of more than twelve numbers."""
    wire = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert len(json.dumps(wire, ensure_ascii=False, separators=(",", ":")).encode()) <= LIMIT_BYTES
    text = result.content[0].text
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    if result.is_error:
        return
    jsonschema.validate(result.structured_content, ANSWER_SCHEMA)
    for numbers in find_numbers(result.structured_content):
        assert numbers <= MOST_NUMBERS
    for word in find_text(result.structured_content):
        assert all(letter.isprintable() for letter in word), word


def find_numbers(content: Any) -> Iterator[int]:
    """For every list: how many numbers it holds, and how many rows that hold one."""
    if isinstance(content, dict):
        for value in content.values():
            yield from find_numbers(value)
    if isinstance(content, list):
        yield sum(isinstance(one, int | float) for one in content)
        yield sum(isinstance(one, dict) and has_number(one) for one in content)
        for value in content:
            yield from find_numbers(value)


def has_number(content: Any) -> bool:
    if isinstance(content, dict):
        return any(has_number(value) for value in content.values())
    return isinstance(content, int | float) and not isinstance(content, bool)


def find_text(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield name
            yield from find_text(value)
    elif isinstance(content, list):
        for value in content:
            yield from find_text(value)
    elif isinstance(content, str):
        yield content
