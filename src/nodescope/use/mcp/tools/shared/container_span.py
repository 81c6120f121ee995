"""One container in a span: the lives that a call is about, or when it was seen instead."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from nodescope.use.answers.containers import Container, Life
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.argument import Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.tools.shared.container import find_container
from nodescope.use.mcp.tools.shared.time_text import NodeSpan, read_span, render_at

# A crash loop's oldest lives are left out; so many are one request to a viewer.
MOST_LIVES = 16

Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class ContainerSpan(NodeSpan):
    """Lives of one container in a span of its node's data, oldest first."""

    container: Container
    lives: list[Life]

    @property
    def ids(self) -> list[str]:
        """Of the lives that are looked at."""
        return [life.id for life in self.lives[-MOST_LIVES:]]

    def list_left_out(self) -> tuple[str, ...]:
        more = len(self.lives) - MOST_LIVES
        oldest = (f"the {more} oldest of its {len(self.lives)} lives",) if more > 0 else ()
        return (*self.clipped, *oldest)

    def read_events(self, backend: Backend) -> list[ContainerEvent]:
        ids = set(self.ids)
        return [event for event in backend.read_events(self.span) if event.id in ids]


async def ask_container(
    fleet: Fleet, values: Values, question: Callable[[Backend, ContainerSpan], Reply]
) -> Reply:
    """The question put to the node of the container that the call names, about the span it names."""
    container = await find_container(fleet, values["container"], values["node"])

    def ask(backend: Backend) -> Reply:
        data = read_span(backend.read_about(), values["from"], values["to"])
        lives = find_lives(container, data)
        seen = ContainerSpan(data.span, data.newest_ms, data.clipped, container, lives)
        return question(backend, seen)

    return (await fleet.ask_all(container.node, ask)).answers[container.node]


def find_lives(container: Container, data: NodeSpan) -> list[Life]:
    lives = container.within(data.span)
    if not lives:
        raise ToolMisused(
            f'"{container.name}" was not there in {data.render()}; it was seen from '
            f"{render_at(container.first_ms, data.newest_ms)} to {render_at(container.last_ms, data.newest_ms)}"
        )
    return lives
