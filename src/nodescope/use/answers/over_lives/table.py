"""The list of containers with one row for all lives of each."""

from collections.abc import Mapping, Sequence

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.container_table import (
    NO_METRIC,
    ContainerRow,
    ContainerTable,
    Filter,
    check_sort,
    sort_key,
    state_of,
    unit_of,
)
from nodescope.use.answers.containers import Container, Life, group_lives, render_present
from nodescope.use.answers.events import ends_by_id
from nodescope.use.answers.limits import read_limits
from nodescope.use.answers.over_lives.join import LIVES_MOST, Wholes, join_figures, list_wholes
from nodescope.use.answers.over_lives.search import filter_lives, place_of_match
from nodescope.use.answers.ranked.ranking import Figure, Order, rank
from nodescope.use.answers.snapshots import View


def list_whole_containers(
    view: View, metric: str, span: TimeRange, wanted: Filter, sort: str, limit: int
) -> ContainerTable:
    """As many rows as were asked for, and how many containers there would be."""
    check_sort(sort)
    fallback = "" if metric == NO_METRIC else unit_of(view.nodes, metric)
    there = filter_lives(view.lives(span), wanted)
    order = Order("", span, {}, {}) if metric == NO_METRIC else rank(view, there, metric, span)
    groups = group_lives(there)
    figures = {
        one.newest.id: join_figures(one.lives, order.figures, order.recorded_of(one.node)) for one in groups
    }
    groups.sort(key=lambda one: place_row(one, figures[one.newest.id], wanted.search, sort))
    shown = groups[:limit]
    limits = find_limits(view, metric, order, shown)
    rows = make_rows(view, span, shown, figures, limits)
    newest_ms = {node.name: node.to_ms or view.snapshot.now_ms for node in view.nodes}
    sentence = render_present(groups, newest_ms)
    unit = order.unit or fallback
    return ContainerTable(tuple(rows), len(groups), metric, unit, order.span, sentence, order.longest.seconds)


def place_row(
    one: Container, figure: Figure | None, text: str, sort: str
) -> tuple[int, tuple[bool, float, str]]:
    """Names whose words begin with the text come first."""
    return (place_of_match(one.newest, text) if text else 0), sort_key(one.newest, figure, sort)


def find_limits(view: View, metric: str, order: Order, shown: Sequence[Container]) -> dict[str, float]:
    """By the id of the row: the limit of the newest life that was measured."""
    newest: dict[str, Life] = {}
    for one in shown:
        measured = [life for life in one.lives if life.scope == "container" and life.id in order.figures]
        if measured:
            newest[one.newest.id] = measured[-1]
    ends_ms = {(life.node, life.id): order.ends_ms[life.id] for life in newest.values()}
    found = read_limits(view, metric, order.span, ends_ms)
    return {row: found[life.id] for row, life in newest.items() if life.id in found}


def make_rows(
    view: View,
    span: TimeRange,
    shown: Sequence[Container],
    figures: Mapping[str, Figure | None],
    limits: Mapping[str, float],
) -> list[ContainerRow]:
    wholes, ends = list_wholes(view), ends_by_id(view.nodes)
    newest_ms = {node.name: node.to_ms or view.snapshot.now_ms for node in view.nodes}
    rows = []
    for one in shown:
        life, row = name_newest(wholes, one), one.newest.id
        ids = tuple(other.id for other in one.lives[-LIVES_MOST:])
        state = state_of(life, ends, newest_ms[life.node])
        restarts, kills = count_restarts(wholes, one, span), sum(ends.get(its_id) == "oom" for its_id in ids)
        rows.append(ContainerRow(life, state, figures[row], limits.get(row), ids, restarts, kills))
    return rows


def name_newest(wholes: Wholes, one: Container) -> Life:
    """The newest of all its lives, also where that one began after the range."""
    whole = wholes.by_id.get(one.newest.id)
    return whole.newest if whole else one.newest


def count_restarts(wholes: Wholes, one: Container, span: TimeRange) -> int:
    """Lives that began in the range after another of the same container."""
    whole = wholes.by_id.get(one.newest.id, one)
    return sum(1 for life in whole.lives[1:] if span.from_ms <= life.first_ms <= span.to_ms)
