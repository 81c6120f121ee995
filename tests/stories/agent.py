"""
An agent that knows the question, reads `tools/list`, and makes at most two calls.

It takes the tool that the question asks for, and passes only arguments that
the tool declares. Where a question is in words that name no tool, it asks
`find_metrics` first and follows `next`, filling in what it knows from the
question: the container, the node, the span.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.stories.answers import Answer
from tests.use.mcp.asking import Asker, connected, local_fleet

from nodescope.use.mcp.protocol.server import build_server

# A container that nobody named yet is written so in examples.
PLACEHOLDERS = ("<", "...", "NAME", "{")
SPANS = ("from", "to")


def iso(at: float) -> str:
    return datetime.fromtimestamp(round(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Agent:
    """Calls tools through the official client and keeps what was said."""

    asker: Asker
    tools: dict[str, dict[str, Any]]
    heard: list[Answer] = field(default_factory=list)

    def has(self, tool: str) -> bool:
        return tool in self.tools

    def call(self, tool: str, **arguments: Any) -> Answer:
        """A name that Python keeps for itself ends in an underscore."""
        given = {name.rstrip("_"): value for name, value in arguments.items() if value is not None}
        return self._call(tool, given)

    def _call(self, tool: str, given: Mapping[str, Any]) -> Answer:
        declared = self.tools.get(tool, {}).get("properties", {})
        wanted = {name: value for name, value in given.items() if name in declared}
        result = self.asker.raw(tool, wanted)
        text = "\n".join(part.text for part in result.content if getattr(part, "text", None))
        answer = Answer(tool, wanted, bool(result.is_error), text, dict(result.structured_content or {}))
        self.heard.append(answer)
        return answer

    def first(self, *ways: tuple[str, dict[str, Any]]) -> Answer:
        """The first of these tools that there is; the last is one of the documented nine."""
        for tool, arguments in ways[:-1]:
            if self.has(tool):
                return self.call(tool, **arguments)
        tool, arguments = ways[-1]
        return self.call(tool, **arguments)

    def ask(self, question: str, **known: Any) -> Answer:
        """By words: find_metrics, then the call that it names, with what the question itself has."""
        route = self.call("find_metrics", question=question)
        if route.next is None or route.next.get("tool") not in self.tools:
            return route
        return self.follow(route, **known)

    def follow(self, answer: Answer, **known: Any) -> Answer:
        step = answer.next or {}
        tool = str(step.get("tool", ""))
        given = {
            name: value for name, value in (step.get("arguments") or {}).items() if not is_placeholder(value)
        }
        known = {name.rstrip("_"): value for name, value in known.items() if value is not None}
        # What the question says itself is not overruled by an example.
        return self._call(tool, {**given, **known})


def is_placeholder(value: Any) -> bool:
    return isinstance(value, str) and (not value or value.startswith(PLACEHOLDERS))


@contextmanager
def agent_over(folder: Path) -> Iterator[Agent]:
    """The server over these folders and the official client, in one process."""
    with connected(build_server(local_fleet(folder))) as asker:
        listed = asker._portal.call(asker._client.list_tools)
        yield Agent(asker, {tool.name: dict(tool.input_schema) for tool in listed.tools})


def size_of_call(answer: Answer) -> int:
    return len(json.dumps(answer.arguments)) // 4
