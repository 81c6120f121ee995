"""Workloads by what they used over a range, each with the sentence that every way out says of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import PLAIN, find_plain
from nodescope.base.quantity import is_share
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life
from nodescope.use.answers.levels import Levels, derive_level
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.overview import know_size
from nodescope.use.answers.ranked.outer import keep_outer
from nodescope.use.answers.ranked.span_use import SpanUse, add_up, render_kind, render_use
from nodescope.use.answers.snapshots import NodeFolders, ServedNode, View
from nodescope.use.answers.timeseries import FIGURES_MOST, TimeseriesRequest, read_timeseries
from nodescope.use.answers.workloads import WorkloadLives, group_workloads, name_apart


@dataclass(frozen=True, slots=True)
class RankedWorkload:
    """One workload on one node."""

    group: WorkloadLives
    node: str
    use: SpanUse
    unit: str
    share: float | None
    """Of the node's cores or memory; None where that has no meaning, or is not known."""

    @property
    def sentence(self) -> str:
        workload = self.group.workload
        return render_ranked(
            workload.kind, self.group.full_name, self.node, render_use(self.use, self.unit, self.share)
        )


def render_ranked(kind: str, name: str, node: str, used: str) -> str:
    """`Deployment "shop/catalog" on n1: 1.2 cores over the span, ...`."""
    word = render_kind(kind)
    return f'{word}{" " if word else ""}"{clean_text(name)}" on {clean_text(node)}: {used}'


def render_unranked(metric: str) -> str:
    """Where no workload has the metric."""
    return f"No workload has a sample of {clean_text(metric)} in this span."


def rank_workloads(folders: NodeFolders, view: View, metric: str, span: TimeRange) -> list[RankedWorkload]:
    """Of every node that has it, the largest use over the span first; refused where there is no such metric."""
    there = [node for node in view.nodes if has_metric(node, metric)]
    if not there and find_plain(metric) not in PLAIN:
        resolve(view.nodes, metric)
    rows = [row for node in there for row in rank_node(folders, view, node, metric, span)]
    return sorted(rows, key=lambda row: (-row.use.over_span, row.group.full_name, row.node))


def has_metric(node: ServedNode, metric: str) -> bool:
    try:
        return bool(resolve([node], metric))
    except RequestRejected:
        return False


def add_ranked(rows: Sequence[RankedWorkload]) -> tuple[float | None, float | None]:
    """What all of them used over the span, and its share of their nodes; None for shares of time, which do not add up."""
    if not rows or is_share(rows[0].unit):
        return None, None
    nodes = {row.node for row in rows if row.share is not None}
    adding = [row for node in {row.node for row in rows} for row in choose_adding(rows, node)]
    share = sum(row.share for row in adding if row.share is not None) / len(nodes) if nodes else None
    return sum(row.use.over_span for row in adding), share


def choose_adding(rows: Sequence[RankedWorkload], node: str) -> list[RankedWorkload]:
    """Without the services of a node that are inside others: these have their use in theirs."""
    mine = [(life, row) for row in rows if row.node == node for life in row.group.lives]
    outer = keep_outer(mine, lambda one: one[0].subject)
    return list({id(row): row for _, row in outer}.values())


def rank_node(
    folders: NodeFolders, view: View, node: ServedNode, metric: str, span: TimeRange
) -> list[RankedWorkload]:
    lives = [life for life in view.lives(span) if life.node == node.name]
    levels = read_levels(view, metric, span, lives)
    by_id = {level.id: level for level in levels.rows}
    recorded = levels.recorded(span)
    size = know_size(folders, view, node)
    found = []
    for group in name_apart(group_workloads(lives)):
        if use := add_up(group.lives, by_id, recorded, levels.unit):
            share = size.share(metric, levels.unit, use.over_span)
            found.append(RankedWorkload(group, node.name, use, levels.unit, share))
    return found


def read_levels(view: View, metric: str, span: TimeRange, lives: Sequence[Life]) -> Levels:
    """One exact figure a life, however many there are."""
    unit, rows = "", []
    stretches: tuple[TimeRange, ...] = ()
    for start in range(0, len(lives), FIGURES_MOST):
        some = tuple(lives[start : start + FIGURES_MOST])
        request = TimeseriesRequest(metric, span, 1, "auto", some, limits=False, series_most=FIGURES_MOST)
        answer = read_timeseries(view, request)
        unit, stretches = answer.unit, answer.recorded
        rows += [level for one in answer.series if (level := derive_level(one))]
    return Levels(unit, tuple(rows), stretches)
