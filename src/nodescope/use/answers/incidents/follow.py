"""
What goes on beyond the three hours that were looked at is followed through the whole span.

Without it an incident would end, a loop would stop counting, and a growth would begin
where a part of a long span does.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nodescope.use.answers.incidents.happened import Kill, list_restarts
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.own import grow
from nodescope.use.answers.incidents.table import NodeTable

# So many steps in a row below the middle of its two levels: a single one may be a pause.
STEPS_BELOW = 3


def follow(table: NodeTable, kills: Sequence[Kill], one: Incident) -> Incident:
    """The same incident as the whole table shows it."""
    if one.cause is None:
        return one
    row = next((place for place, row in enumerate(table.rows) if row.name == one.cause.workload), None)
    if row is None:
        return one
    if one.kind == "crash_loop":
        return follow_loop(table, row, one, one.cause)
    if one.kind == "oom_kill":
        return follow_growth(table, kills, row, one)
    end_ms = table.time_of(table.steps)
    if one.is_over or one.kind == "deploy" or one.to_ms >= end_ms - 2 * table.step_ms:
        return one
    to_ms = find_end(table, row, one.cause, one.to_ms)
    causes = tuple(replace(change, to_ms=max(change.to_ms, to_ms)) for change in one.causes)
    return replace(one, causes=causes, to_ms=to_ms, is_over=to_ms < end_ms - 2 * table.step_ms)


def follow_loop(table: NodeTable, row: int, one: Incident, cause: Change) -> Incident:
    """Every restart from its first one to the end; it is over where none came for as long as twice the longest pause."""
    end_ms = table.time_of(table.steps)
    starts = [at for at in list_restarts(table.rows[row].lives) if one.from_ms <= at <= end_ms]
    if len(starts) <= (cause.after or 0):
        return one
    longest_ms = max(after - before for before, after in pairwise(starts))
    is_over = end_ms - starts[-1] > 2 * longest_ms
    to_ms = starts[-1] if is_over else end_ms
    counted = replace(cause, after=float(len(starts)), to_ms=to_ms)
    return replace(one, causes=(counted, *one.causes[1:]), to_ms=to_ms, is_over=is_over)


def follow_growth(table: NodeTable, kills: Sequence[Kill], row: int, one: Incident) -> Incident:
    """From the start of the life that was killed, as far as the table reaches back."""
    kill = next((kill for kill in kills if kill.row == row and kill.at_ms == one.killed_ms), None)
    if kill is None:
        return one
    growth = grow(table, kill)
    if growth.before is None or growth.from_ms >= one.from_ms:
        return one
    return replace(one, causes=(growth, *one.causes[1:]), from_ms=growth.from_ms)


def find_end(table: NodeTable, row: int, cause: Change, from_ms: int) -> int:
    """When it fell back for good to the level before, or was not measured any more; the end where it did not."""
    values = table.signals.get(cause.metric)
    if values is None or cause.after is None:
        return from_ms
    first = (from_ms - table.start_ms) // table.step_ms
    middle = ((cause.before or 0.0) + cause.after) / 2
    is_below = ~(values[row, first:] >= middle)
    runs = np.convolve(is_below, np.ones(STEPS_BELOW, int), "valid") == STEPS_BELOW
    found = np.flatnonzero(runs)
    return table.time_of(first + int(found[0])) if len(found) else table.time_of(table.steps)
