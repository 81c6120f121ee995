"""A generated night as its two looks see it: minutes of the whole, seconds around what they show."""

from dataclasses import replace

from tools.incidents.direct import make_table
from tools.incidents.machine import Floats
from tools.incidents.stories import Generated

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.incidents.explain import find_incidents
from nodescope.use.answers.incidents.incident import Incident
from nodescope.use.answers.incidents.long_span import confirm, cut_steps, glimpse
from nodescope.use.answers.incidents.shift import average_steps
from nodescope.use.answers.incidents.table import NodeTable

# As the archive's own look has before a span of less than an hour.
LEAD_MS = 600_000
MINUTE_MS = 60_000


def explain_night(node: Generated) -> list[Incident]:
    """As `explain_node` does with an archive, without a day before it."""
    table, kills = make_table(node)

    def look(span: TimeRange) -> list[Incident]:
        part = cut_span(table, span)
        there = [one for one in kills if part.start_ms <= one.at_ms <= part.time_of(part.steps)]
        return find_incidents(part, there, lambda row, signal: None)[0]  # noqa: ARG005 - no history

    glimpsed, _ = glimpse(coarsen(table, MINUTE_MS // table.step_ms), kills, None, lambda: None)
    return confirm(glimpsed, look)


def coarsen(table: NodeTable, together: int) -> NodeTable:
    """Means of so many steps, as rates over a minute are."""

    def average(values: Floats | None) -> Floats | None:
        return None if values is None else average_steps(values[None, :], together)[0]

    return replace(
        table,
        step_ms=table.step_ms * together,
        begin=table.begin // together,
        signals={name: average_steps(values, together) for name, values in table.signals.items()},
        bandwidth=average(table.bandwidth),
        available=average(table.available),
        io_wait=average(table.io_wait),
        run_queue=average(table.run_queue),
    )


def cut_span(table: NodeTable, span: TimeRange) -> NodeTable:
    start = max(0, (span.from_ms - LEAD_MS - table.start_ms) // table.step_ms)
    begin = max(start, (span.from_ms - table.start_ms) // table.step_ms)
    where = slice(start, min(table.steps, (span.to_ms - table.start_ms) // table.step_ms))
    return cut_steps(table, where, begin)
