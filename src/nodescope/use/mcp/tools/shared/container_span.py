"""A container's stay in a span: the lives of it that a question is about, or when it was seen instead."""

from dataclasses import dataclass

from nodescope.base.time_range import TimeRange
from nodescope.use.mcp.nodes.backend import ArchivedLife, Backend, NodeEvent
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.tools.shared.container import Resident
from nodescope.use.mcp.tools.shared.time_text import (
    choose_span,
    newest_of,
    render_at,
    render_span,
    tell_clipped,
)

# A crash loop's oldest lives are left out; so many are one request to a viewer.
MOST_LIVES = 16


@dataclass(frozen=True, slots=True)
class Stay:
    """Lives of one container in a span of its node's data, oldest first."""

    span: TimeRange
    newest_ms: int
    lives: list[ArchivedLife]
    clipped: tuple[str, ...] = ()
    """Where the data is shorter than what was asked for."""

    @property
    def ids(self) -> list[str]:
        """Of the lives that are looked at."""
        return [life.container_id for life in self.lives[-MOST_LIVES:]]

    def tell_span(self) -> str:
        return render_span(self.span, self.newest_ms)

    def tell_left_out(self) -> tuple[str, ...]:
        more = len(self.lives) - MOST_LIVES
        oldest = (f"the {more} oldest of its {len(self.lives)} lives",) if more > 0 else ()
        return (*self.clipped, *oldest)

    def read_events(self, backend: Backend) -> list[NodeEvent]:
        mine = set(self.ids)
        return [event for event in backend.read_events(self.span) if event.container_id in mine]


def read_stay(backend: Backend, resident: Resident, start: str | None, end: str | None) -> Stay:
    about = backend.read_about()
    span, newest_ms = choose_span(about, start, end), newest_of(about)
    lives = resident.within(span)
    if not lives:
        raise ToolMisused(
            f'"{resident.name}" was not there in {render_span(span, newest_ms)}; it was seen from '
            f"{render_at(resident.first_ms, newest_ms)} to {render_at(resident.last_ms, newest_ms)}"
        )
    return Stay(span, newest_ms, lives, tell_clipped(about, "the span", start, end))
