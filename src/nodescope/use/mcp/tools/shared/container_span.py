"""One container in a span: the lives that a call is about, or when it was seen instead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from nodescope.use.answers.containers import Container, Life
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.overview import About
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.argument import Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.tools.shared.container import find_container
from nodescope.use.mcp.tools.shared.time_text import USUAL_MS, NodeSpan, join_clipped, read_span, render_at

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
) -> list[Reply]:
    """The question put to the nodes of what the call names, about the span it names; of each node about its own lives."""

    def ask(backend: Backend, container: Container) -> Reply | None:
        seen = see_container(backend.read_about(), container, values)
        return question(backend, seen) if seen else None

    return await ask_nodes(fleet, values, ask)


def see_container(
    about: About, container: Container, values: Values, usual_ms: int = USUAL_MS
) -> ContainerSpan | None:
    """A node's lives of it in the span that the call names, else in its newest data of that length; None without any."""
    data = read_span(about, values["from"], values["to"], usual_ms=usual_ms)
    lives = [life for life in container.within(data.span) if life.node == about.node]
    return ContainerSpan(data.span, data.newest_ms, data.clipped, container, lives) if lives else None


async def ask_nodes(
    fleet: Fleet, values: Values, question: Callable[[Backend, Container], Reply | None]
) -> list[Reply]:
    """The answers of the nodes that have something to say; the node that has the newest life of it answers last."""
    container = await find_container(fleet, values["container"], values["node"])

    def ask(backend: Backend) -> Reply | None:
        return question(backend, container)

    entries = fleet.choose(None)
    asked = [name for name in order_nodes(container) if name in entries]
    replies = (await fleet.ask({name: entries[name] for name in asked}, ask)).need_one()
    found = [reply for name in asked if (reply := replies.answers.get(name)) is not None]
    if not found:
        raise ToolMisused(await render_absent(fleet, container, values))
    return found


def order_nodes(container: Container) -> list[str]:
    """Its nodes; the one where it was last seen at the end."""
    last_ms = {
        name: max(life.last_ms for life in container.lives if life.node == name) for name in container.nodes
    }
    return sorted(last_ms, key=lambda name: (last_ms[name], name))


async def render_absent(fleet: Fleet, container: Container, values: Values) -> str:
    replies = await fleet.ask_all(
        container.node, lambda backend: read_span(backend.read_about(), values["from"], values["to"])
    )
    data = replies.answers[container.node]
    return (
        f'"{container.name}" was not there in {data.render()}; it was seen from '
        f"{render_at(container.first_ms, data.newest_ms)} to {render_at(container.last_ms, data.newest_ms)}"
    )


def join_spans(spans: Sequence[ContainerSpan]) -> ContainerSpan:
    """Of several nodes as one: all lives, oldest first."""
    lives = sorted((life for one in spans for life in one.lives), key=lambda life: life.first_ms)
    return replace(spans[-1], lives=lives, clipped=join_clipped(spans))
