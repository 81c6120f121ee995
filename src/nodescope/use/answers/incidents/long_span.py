"""
A span of many hours: its minutes are looked at three hours at a time, then the seconds around what was found.

Each part is compared with what came before it in the same span, and what goes on
beyond its end is followed (follow.py). What the
minutes show is told only where the seconds show it, too; kills and restarts
are events and have their times already.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.incidents.explain import MOST_INCIDENTS, find_incidents, first_of_each
from nodescope.use.answers.incidents.follow import follow
from nodescope.use.answers.incidents.happened import Kill
from nodescope.use.answers.incidents.incident import Incident
from nodescope.use.answers.incidents.scene import History
from nodescope.use.answers.incidents.table import Floats, NodeTable, WorkloadRow

PART_MS, LEAD_MS = 3 * 3_600_000, 1_800_000
# A closer look costs as much as a question about half an hour.
MOST_LOOKS = 5
# Of what lasts longer, so much is looked at closely, with so much around it.
CLOSE_MS, AROUND_MS = 1_800_000, 900_000
# Told by events, which have their exact times.
EVENTS = ("oom_kill", "crash_loop")

Look = Callable[[TimeRange], Sequence[Incident]]


def glimpse(
    table: NodeTable,
    kills: Sequence[Kill],
    focus: int | None,
    check: Callable[[], None],
    most: int = MOST_INCIDENTS,
) -> tuple[list[Incident], list[str]]:
    """What the minutes show, the weightiest first, one for each cause; and what was there before as well."""
    found: list[Incident] = []
    background: dict[str, None] = {}
    for first in range(table.begin, max(table.steps, table.begin + 1), PART_MS // table.step_ms):
        check()
        part = cut_table(table, first)
        end_ms = part.time_of(part.steps)
        earlier = [one for one in kills if one.at_ms <= end_ms]
        some, lines = find_incidents(part, earlier, recall(table, part), focus, most)
        found += [follow(table, kills, one) for one in some]
        background |= dict.fromkeys(lines)
    return first_of_each(sorted(found, key=lambda one: -(one.weight or 0.0))), list(background)


def cut_table(table: NodeTable, first: int) -> NodeTable:
    """Three hours from a step on, with half an hour before them."""
    start = max(0, first - LEAD_MS // table.step_ms)
    where = slice(start, min(table.steps, first + PART_MS // table.step_ms))
    end_ms = table.time_of(where.stop)
    part = cut_steps(table, where, first)
    return replace(part, rows=[row_until(row, end_ms) for row in table.rows])


def cut_steps(table: NodeTable, where: slice, begin: int) -> NodeTable:
    """These steps alone; the span that is asked about begins at step `begin` of the whole."""
    return replace(
        table,
        start_ms=table.time_of(where.start),
        begin=begin - where.start,
        signals={name: values[:, where] for name, values in table.signals.items()},
        bandwidth=cut(table.bandwidth, where),
        available=cut(table.available, where),
        io_wait=cut(table.io_wait, where),
        run_queue=cut(table.run_queue, where),
    )


def row_until(row: WorkloadRow, end_ms: int) -> WorkloadRow:
    """What came later is not known yet."""
    return WorkloadRow(row.name, [life for life in row.lives if life.first_ms <= end_ms] or row.lives[:1])


def cut(values: Floats | None, where: slice) -> Floats | None:
    return None if values is None else values[where]


def recall(table: NodeTable, part: NodeTable) -> History:
    """What the same span had before the part."""
    known = (part.start_ms - table.start_ms) // table.step_ms

    def read(row: int, signal: str) -> Floats | None:
        values = table.signals.get(signal)
        return values[row, :known] if values is not None and known else None

    return read


# -- closer ---------------------------------------------------------------------------------


def confirm(glimpsed: Sequence[Incident], look: Look, most: int = MOST_INCIDENTS) -> list[Incident]:
    """At most so many, the weightiest first."""
    found = [sure for one in glimpsed[: max(most, MOST_LOOKS)] if (sure := confirm_one(one, look))]
    return first_of_each(sorted(found, key=lambda one: -(one.weight or 0.0)))[:most]


def confirm_one(one: Incident, look: Look) -> Incident | None:
    """None where the seconds do not show it."""
    if one.kind in EVENTS:
        return one
    span = TimeRange(one.from_ms - AROUND_MS, min(one.to_ms, one.from_ms + CLOSE_MS) + AROUND_MS)
    same = next((other for other in look(span) if name_cause(other) == name_cause(one)), None)
    if same is None or same.is_over:
        return same
    # It went on beyond the closer look.
    return replace(same, to_ms=max(one.to_ms, same.to_ms), is_over=one.is_over)


def name_cause(one: Incident) -> str:
    """The workload; of what has no cause, what was lacking."""
    return f"workload {one.cause.workload}" if one.cause else f"unexplained {one.resource}"
