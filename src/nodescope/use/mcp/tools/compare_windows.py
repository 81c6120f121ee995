"""What is different between two spans of time, of one container or of a node's containers?"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import erf
from typing import NamedTuple

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import is_share, render_count, render_quantity
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.read.query.row_reader import ask_pairwise
from nodescope.use.answers.containers import Container, Life
from nodescope.use.answers.deploys import RUNS, find_takeovers
from nodescope.use.answers.levels import Levels, MetricLevel
from nodescope.use.answers.ranked.recorded import record_whole
from nodescope.use.answers.ranked.span_use import add_up
from nodescope.use.mcp.nodes.backend import Backend, read_levels, run_study
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import find_container
from nodescope.use.mcp.tools.shared.container_span import MOST_LIVES, order_nodes
from nodescope.use.mcp.tools.shared.gpu_level import BY_PROCESS, read_gpu_levels
from nodescope.use.mcp.tools.shared.level_table import LevelRow, group_by, join_levels
from nodescope.use.mcp.tools.shared.merge_lives import Figures, measure, merge_figures
from nodescope.use.mcp.tools.shared.metric_name import SHARES
from nodescope.use.mcp.tools.shared.next_call import keep_span, suggest_study
from nodescope.use.mcp.tools.shared.time_text import (
    NodeSpan,
    extent_of,
    join_clipped,
    read_moment,
    read_span,
    render_iso,
)
from nodescope.use.studies import StudyAnswer
from nodescope.use.studies.summary import FIGURES

METRICS = ("cpu", "memory", *SHARES, "disk_write", "cpu_limit", "memory_limit")
HOUR_MS = 3_600_000
# A deploy so near to either end of the data leaves too little to compare.
SHORTEST_MS = 120_000
NAMES = ("a_from", "a_to", "b_from", "b_to")
# Less than a tenth is "about the same".
SAME_SHARE = 0.1
# From 0 to 3 % of the time is any number of times as much, and little. Half of
# the time is as telling as a value that doubled.
SHARE_WEIGHT = 2.0
# A share of time below this is nothing in both spans, whatever its ratio.
IDLE = {"cpu": 0.005, **dict.fromkeys(SHARES, 0.01)}
# Measured of every container that is there: who lacks them in a window was not there.
PRESENT = ("cpu", "memory")
# Containers of one window alone that are named.
MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """One metric in one window."""

    each: Figures
    """Of one pod, while it was there."""
    in_sum: float
    """Of all its pods."""
    pods: int
    is_run: bool = False
    """Of Jobs: both are what all of them used over the window."""


@dataclass(frozen=True, slots=True)
class WindowPair:
    """One metric of one container (or the total of a node) in both spans."""

    node: str
    container: str | None
    metric: str
    before: WindowFigures
    after: WindowFigures
    restarts: int = 0
    """Between the beginning of the one window and the end of the other."""
    title: str = ""
    """What a sentence calls it; empty where that is `container`."""
    cause: str = ""
    """What came with it: `with a new image, web:2 instead of web:1 at ...`."""

    @property
    def change(self) -> float:
        """Of one pod or of all, whichever changed more; relative to the larger of both, signed."""
        per_pod = relate(self.before.each.avg, self.after.each.avg, IDLE.get(self.metric, 0.0))
        in_sum = relate(self.before.in_sum, self.after.in_sum, IDLE.get(self.metric, 0.0))
        return max(per_pod, in_sum, key=abs) if self.metric in PRESENT else per_pod

    @property
    def weight(self) -> float:
        """What comes first: a share of time by how much of the time, the rest by how much of itself."""
        if self.metric not in SHARES:
            return abs(self.change)
        return min(1.0, SHARE_WEIGHT * abs(self.after.each.avg - self.before.each.avg))


def relate(first: float, second: float, idle: float) -> float:
    """The difference as a share of the larger."""
    larger = max(abs(first), abs(second))
    return (second - first) / larger if larger > idle else 0.0


@dataclass(frozen=True, slots=True)
class Windows:
    """Both windows as a node's data has them."""

    node: str
    first: NodeSpan
    second: NodeSpan
    metrics: tuple[str, ...]
    """Those of METRICS that the node has."""

    @property
    def both(self) -> TimeRange:
        """From the beginning of the one to the end of the other."""
        first, second = self.first.span, self.second.span
        return TimeRange(min(first.from_ms, second.from_ms), max(first.to_ms, second.to_ms))

    def named(self) -> tuple[tuple[str, TimeRange], ...]:
        return (("a", self.first.span), ("b", self.second.span))

    def render(self, verb: str) -> str:
        return f"a {verb} {self.first.render()}; b {verb} {self.second.render()}"


@dataclass(frozen=True, slots=True)
class Compared:
    """What a node answered."""

    windows: Windows
    pairs: list[WindowPair]
    only: dict[str, set[str]] = field(default_factory=dict)
    """Workloads of one window alone, by the window."""


def read_windows(backend: Backend, values: Values, lives: Sequence[Life]) -> Windows:
    """As given; without any, the hour before and the hour after the newest deploy of these lives, else of the last two hours."""
    about = backend.read_about()
    newest_ms = extent_of(about).to_ms
    if not any(values[name] for name in NAMES):
        values = {**values, **usual_windows(extent_of(about), lives)}
    elif values["a_to"] or values["b_from"]:
        values = {**values, **around_moment(extent_of(about), values)}
    missing = [name for name in NAMES if not values[name]]
    if missing:
        raise ToolMisused(
            f"{', '.join(missing)} is missing; give all four of {', '.join(NAMES)}, none, or only b_from: "
            "the hours before and after it"
        )
    given = {one: (values[f"{one}_from"], values[f"{one}_to"]) for one in ("a", "b")}
    for one, (start, end) in given.items():
        if read_moment(f"{one}_from", start, newest_ms) >= read_moment(f"{one}_to", end, newest_ms):
            raise ToolMisused(f'window {one} ends before it begins; swap "{one}_from" and "{one}_to"')
    first, second = (read_span(about, *moments, f"window {one}") for one, moments in given.items())
    known = {row.name for row in backend.read_metrics()}
    return Windows(about.node, first, second, tuple(name for name in METRICS if name in known))


def around_moment(there: TimeRange, values: Values) -> dict[str, str]:
    """What was left out: the windows touch each other, and each is an hour long."""
    a_to, b_from = values["a_to"] or values["b_from"], values["b_from"] or values["a_to"]
    end_ms, start_ms = (
        read_moment(name, text, there.to_ms) for name, text in (("a_to", a_to), ("b_from", b_from))
    )
    found = {
        "a_from": values["a_from"] or render_iso(max(there.from_ms, end_ms - HOUR_MS)),
        "b_to": values["b_to"] or render_iso(min(there.to_ms, start_ms + HOUR_MS)),
    }
    return {**found, "a_to": a_to, "b_from": b_from}


def usual_windows(there: TimeRange, lives: Sequence[Life]) -> dict[str, str]:
    deploy = find_deploy(there, lives)
    return windows_around(there, deploy.at_ms if deploy else None)


def windows_around(there: TimeRange, at_ms: int | None) -> dict[str, str]:
    """An hour before and an hour after a moment; without one the halves of the last two hours."""
    since = TimeRange(max(there.from_ms, there.to_ms - 2 * HOUR_MS), there.to_ms)
    at_ms = at_ms or (since.from_ms + since.to_ms) // 2
    moments = (max(there.from_ms, at_ms - HOUR_MS), at_ms, at_ms, min(there.to_ms, at_ms + HOUR_MS))
    return {name: render_iso(moment) for name, moment in zip(NAMES, moments, strict=True)}


class FoundDeploy(NamedTuple):
    """In the order of what is asked about: those with a new image last, of these the newest last."""

    has_new_image: bool
    at_ms: int


def find_deploy(there: TimeRange, lives: Sequence[Life]) -> FoundDeploy | None:
    """The newest moment at which pods of a workload were replaced by those of another image, else by others at all."""
    day = TimeRange(max(there.from_ms, there.to_ms - 24 * HOUR_MS), there.to_ms)
    found = [
        FoundDeploy(one.has_new_image, one.at_ms)
        for group in group_by(lives, "workload")
        for one in find_takeovers(group.workload.kind, group.lives, day)
        if one.kind != "restart" and there.from_ms + SHORTEST_MS <= one.at_ms <= there.to_ms - SHORTEST_MS
    ]
    return max(found, default=None)


async def choose_windows(fleet: Fleet, values: Values) -> Values:
    """Of several nodes: those around the newest deploy of all of them. Each by its own would be other hours under one name."""
    if any(values[name] for name in NAMES) or len(fleet.choose(values["node"])) == 1:
        return values

    def look(backend: Backend) -> tuple[TimeRange, FoundDeploy | None]:
        there = extent_of(backend.read_about())
        return there, find_deploy(there, backend.read_lives(None))

    found = (await fleet.ask_all(values["node"], look)).answers.values()
    newest = max((deploy for _, deploy in found if deploy), default=None)
    there = TimeRange(min(one.from_ms for one, _ in found), max(one.to_ms for one, _ in found))
    return {**values, **windows_around(there, newest.at_ms if newest else None)}


# -- one workload or container ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowPart:
    """What one node has of a workload in both windows, by metric and window."""

    windows: Windows
    summaries: dict[tuple[str, str], list[StudyAnswer]] = field(default_factory=dict)
    """One for each life."""
    gpus: dict[tuple[str, str], Levels] = field(default_factory=dict)


def summarize_windows(backend: Backend, container: Container, values: Values) -> WindowPart:
    """Of the lives that this node has."""
    part = WindowPart(read_windows(backend, values, container.lives))
    known = {row.name for row in backend.read_metrics()}
    for name, span in part.windows.named():
        lives = [life for life in container.within(span) if life.node == part.windows.node][-MOST_LIVES:]
        if not lives:
            continue
        ids = [life.id for life in lives]
        for metric in part.windows.metrics:
            part.summaries[metric, name] = run_study(backend, FIGURES, metric, ids, span)
        for metric in (one for one, raw in BY_PROCESS.items() if raw in known):
            part.gpus[metric, name] = read_gpu_levels(backend, metric, span, lives)
    return part


def compare_container(container: Container, parts: Sequence[WindowPart]) -> Compared:
    """Of all its nodes; a pod that took another's place is the same workload."""
    windows = parts[-1].windows
    for name, span in windows.named():
        if not container.within(span):
            raise ToolMisused(
                f'"{container.name}" was not there in window {name}; it was seen from '
                f"{render_moment(container.first_ms)} to {render_moment(container.last_ms)}"
            )
    cause = find_cause(container, windows)
    restarts = count_restarts(container.by_pod(container.within(windows.both)))
    pairs = []
    for metric in (*windows.metrics, *BY_PROCESS):
        before, after = (merge_window(container, parts, metric, name, span) for name, span in windows.named())
        if before and after:
            pairs.append(
                WindowPair(container.node, container.name, metric, before, after, restarts, cause=cause)
            )
    return Compared(windows, pairs)


def merge_window(
    container: Container, parts: Sequence[WindowPart], metric: str, name: str, span: TimeRange
) -> WindowFigures | None:
    """Per pod, and all of them together."""
    if metric in BY_PROCESS:
        return merge_gpus(container, [part.gpus.get((metric, name)) for part in parts], span)
    answers = [one for part in parts for one in part.summaries.get((metric, name), ())]
    figures = merge_figures(answers)
    if figures is None:
        return None
    levels = {level.id: level for level in map(level_of, answers) if level}
    mine = [life for life in container.within(span) if life.id in levels]
    use = add_up(mine, levels, record_whole(span), figures.unit)
    return WindowFigures(figures, use.mean if use else figures.avg, use.pods if use else 1)


def merge_gpus(container: Container, parts: Sequence[Levels | None], span: TimeRange) -> WindowFigures | None:
    """None where no process of it was on a GPU."""
    levels = {row.id: row for part in parts if part for row in part.rows}
    unit = next((part.unit for part in parts if part), "")
    mine = [life for life in container.within(span) if life.id in levels]
    use = add_up(mine, levels, record_whole(span), unit)
    if use is None:
        return None
    figures = Figures(use.per_pod, use.samples, 0.0, unit, max=use.most, min=use.least)
    return WindowFigures(figures, use.mean, use.pods)


def level_of(answer: StudyAnswer) -> MetricLevel | None:
    if answer.status != "found" or not answer.findings:
        return None
    row = answer.findings[0]
    least, most = measure(row, "min"), measure(row, "max")
    return MetricLevel(str(answer.series["id"]), measure(row, "average"), least, most, answer.samples)


def find_cause(container: Container, windows: Windows) -> str:
    """What took the place of what between the windows: a new image first, else the newest."""
    kind = container.newest.workload.kind
    takeovers = find_takeovers(kind, container.lives, windows.both)
    told = [one for one in takeovers if one.kind != "restart" or one.new_nodes]
    best = next((one for one in reversed(told) if one.has_new_image), told[-1] if told else None)
    return f"{best.render()} at {render_moment(best.at_ms)}" if best else ""


def count_restarts(by_pod: Iterable[Sequence[Life]]) -> int:
    return sum(max(0, len(lives) - 1) for lives in by_pod)


# -- all of a node ---------------------------------------------------------------------

Rows = dict[str, LevelRow]


def compare_node(backend: Backend, values: Values) -> Compared:
    lives = backend.read_lives(None)
    windows = read_windows(backend, values, lives)
    groups = group_by(lives, "workload")
    pairs: list[WindowPair] = []
    only: dict[str, set[str]] = {"a": set(), "b": set()}
    spans = windows.first.span, windows.second.span
    # Found once for all metrics: looking through every life of a day takes some ms.
    there = [[life.id for life in lives if life.is_within(span)] for span in spans]
    causes = {
        group.full_name: cause for group in groups if (cause := find_cause(Container(group.lives), windows))
    }

    def read(metric: str) -> list[Levels] | None:
        try:
            return [read_levels(backend, metric, span, ids) for span, ids in zip(spans, there, strict=True)]
        except RequestRejected:
            return None

    for metric, levels in zip(windows.metrics, ask_pairwise(read, windows.metrics), strict=True):
        if levels is None:
            continue
        before, after = (
            {row.group.full_name: row for row in join_levels(groups, one, span)}
            for one, span in zip(levels, spans, strict=True)
        )
        pairs += pair_rows(windows, metric, levels[0].unit, before, after, causes)
        if metric in PRESENT:
            only["a"] |= name_lone(before, after)
            only["b"] |= name_lone(after, before)
    return Compared(windows, pairs, only)


def name_lone(there: Rows, other: Rows) -> set[str]:
    """Of those that the other window does not have; a single pod by its own name."""
    return {row.group.name_single().full_name for name, row in there.items() if name not in other}


def pair_rows(
    windows: Windows, metric: str, unit: str, before: Rows, after: Rows, causes: Mapping[str, str]
) -> Iterator[WindowPair]:
    """All workloads together, where adding them up makes sense; then each that is in both windows."""
    if metric in PRESENT and before and after:
        totals = total(before.values(), unit), total(after.values(), unit)
        yield WindowPair(windows.node, None, metric, *totals)
    for name, row in before.items():
        if name in after:
            restarts = sum(max(0, len(one.within(windows.both)) - 1) for one in row.group.containers)
            figures = figures_of(row, unit), figures_of(after[name], unit)
            single, cause = row.group.name_single().name, causes.get(name, "")
            yield WindowPair(windows.node, single, metric, *figures, restarts, row.group.name, cause)


def figures_of(row: LevelRow, unit: str) -> WindowFigures:
    """Per pod while it was there; of Jobs, which come and go, what all of them used over the window."""
    use = row.use
    is_run = row.group.workload.kind in RUNS and not is_share(unit)
    level = use.over_span if is_run else use.per_pod
    figures = Figures(level, use.samples, row.missing_share, unit, max=use.most, min=use.least)
    return WindowFigures(figures, use.over_span if is_run else use.mean, use.pods, is_run)


def total(rows: Collection[LevelRow], unit: str) -> WindowFigures:
    """Of all workloads: each counts for as long as it was there."""
    over_span = sum(row.use.over_span for row in rows)
    samples = sum(row.use.samples for row in rows)
    figures = Figures(over_span, samples, max(row.missing_share for row in rows), unit)
    return WindowFigures(figures, over_span, 1)


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    if values["container"]:
        one = await find_container(fleet, values["container"], values["node"])
        entries = fleet.choose(None)
        chosen = {name: entries[name] for name in order_nodes(one) if name in entries}
        asked = (await fleet.ask(chosen, lambda backend: summarize_windows(backend, one, values))).need_one()
        parts = [compare_container(one, [asked.answers[name] for name in chosen if name in asked.answers])]
        missing = asked.missing
        what = f'"{one.name}" on {", ".join(one.nodes[:5])}'
    else:
        around = await choose_windows(fleet, values)
        replies = await fleet.ask_all(values["node"], lambda backend: compare_node(backend, around))
        what = f"the workloads of {', '.join(list(replies.answers)[:5])}"
        parts, missing = list(replies.answers.values()), replies.missing
    # Who names no windows asks about the newest deploy: what came with one goes first.
    is_usual = not any(values[name] for name in NAMES)
    pairs = sorted(
        (pair for part in parts for pair in part.pairs),
        key=lambda pair: (is_usual and not pair.cause, -pair.weight),
    )
    changed = [pair for pair in pairs if abs(pair.change) >= SAME_SHARE]
    shown = changed or pairs[:3]
    windows = parts[0].windows
    return ToolAnswer(
        headline=render_headline(what, changed, pairs, windows),
        status="found" if changed else "none" if pairs else "not_enough_data",
        findings=tuple(render_pair(pair, windows) for pair in shown[:MOST_FINDINGS]),
        left_out=max(0, len(shown) - MOST_FINDINGS),
        rest="container= compares one of them",
        looked_at=f"{what}: {windows.render('=')}",
        not_looked_at=list_gaps(parts, len(pairs) - len(changed)),
        nodes_away=missing,
        next_call=suggest(changed, windows),
    )


def render_headline(what: str, changed: list[WindowPair], pairs: list[WindowPair], windows: Windows) -> str:
    if not pairs:
        return f"Cannot compare {what}: no metric has samples in both windows."
    if not changed:
        return f"No: {what} did about the same in both windows ({len(pairs)} figures compared, none differs by 10 %)."
    return f"{render_pair(changed[0], windows).sentence} {len(changed)} of {len(pairs)} figures of {what} differ by 10 % or more ({windows.render('is')})."


def render_pair(pair: WindowPair, windows: Windows) -> ToolFinding:
    before, after = pair.before.each, pair.after.each
    figures = {
        f"{window}_{name}": getattr(one, name)
        for name in ("avg", "max", "stddev")
        for window, one in (("a", before), ("b", after))
    }
    sums = {
        "a_sum": pair.before.in_sum,
        "b_sum": pair.after.in_sum,
        "a_pods": pair.before.pods,
        "b_pods": pair.after.pods,
    }
    return ToolFinding(
        render_sentence(pair),
        "difference",
        node=pair.node,
        container=pair.container,
        metric=pair.metric,
        unit=after.unit,
        confidence=sureness(pair),
        samples=min(before.samples, after.samples),
        missing_share=max(before.missing_share, after.missing_share),
        start_at=windows.first.span.from_ms / 1000,
        end_at=windows.second.span.to_ms / 1000,
        evidence={
            **figures,
            "before": before.avg,
            "after": after.avg,
            **(sums if has_pods(pair) else {}),
            "restarts": pair.restarts or None,
            "came_with": pair.cause or None,
        },
    )


def has_pods(pair: WindowPair) -> bool:
    return max(pair.before.pods, pair.after.pods) > 1 and not pair.after.is_run


def render_sentence(pair: WindowPair) -> str:
    first, second, unit = pair.before.each.avg, pair.after.each.avg, pair.after.each.unit
    verb = "rose" if second > first else "fell" if second < first else "stayed"
    ratio = f" ({100 * (second - first) / abs(first):+.0f} %)" if first else ""
    who = f'"{pair.title or pair.container}"' if pair.container else f"all workloads of {pair.node}"
    per = " per pod" if has_pods(pair) else ""
    times = "once" if pair.restarts == 1 else f"{pair.restarts} times"
    restarted = f"; it was restarted {times} meanwhile" if pair.restarts else ""
    return (
        f"{pair.metric} of {who}{per} {verb} from {render_quantity(first, unit)} to "
        f"{render_quantity(second, unit)}{ratio}{render_sums(pair, unit)}"
        f"{f', {pair.cause}' if pair.cause else ''}{restarted}."
    )


def render_sums(pair: WindowPair, unit: str) -> str:
    """Of all its pods, where their number changed."""
    if is_share(unit) or pair.before.pods == pair.after.pods or not has_pods(pair):
        return ""
    first, second = (render_quantity(one.in_sum, unit) for one in (pair.before, pair.after))
    pods = f"{pair.before.pods} and {render_count(pair.after.pods, 'pod')}"
    return f", in sum from {first} to {second} ({pods})"


def sureness(pair: WindowPair) -> float | None:
    """
    Of all pairs of one sample of each window, the share that differs in that direction.

    From means and deviations, as if normal: Phi(|difference| / sqrt(var a + var b)).
    """
    first, second = pair.before.each.stddev, pair.after.each.stddev
    if first is None or second is None:
        return None
    away = abs(pair.after.each.avg - pair.before.each.avg)
    variance = first**2 + second**2
    return 0.5 * (1 + erf(away / (2 * variance) ** 0.5)) if variance > 0 else 1.0 if away else 0.5


def list_gaps(parts: list[Compared], same: int) -> tuple[str, ...]:
    lines = [
        f"{same} figures that are about the same",
        "when within the windows it changed (analyze_container, changepoint)",
    ]
    for name in ("a", "b"):
        only = [one for part in parts for one in sorted(part.only.get(name, ()))]
        if only:
            listed = ", ".join(f'"{one}"' for one in only[:MOST_NAMED])
            more = f" and {len(only) - MOST_NAMED} more" if len(only) > MOST_NAMED else ""
            lines.insert(0, f"not compared, because only in window {name}: {listed}{more}")
    spans = (span for part in parts for span in (part.windows.first, part.windows.second))
    return (*join_clipped(spans), *lines)


def suggest(changed: list[WindowPair], windows: Windows) -> NextCall:
    pair = next((one for one in changed if one.container), None)
    span = keep_span(windows.both)
    if pair is None:
        by = changed[0].metric if changed else "cpu"
        return NextCall("top_containers", {"by": by, "node": windows.node, **span}, "who used the most then")
    return suggest_study(pair.container, "changepoint", pair.metric, pair.node, "when it changed", **span)


def window(name: str, what: str) -> Argument:
    return Argument(name, what, "moment")


TOOL = Tool(
    "compare_windows",
    "Compare two windows",
    "What differs between window a and window b, of one workload or container or of all of a node; a deploy is told with what came with it.",
    (
        Argument("container", "only this one"),
        NODE,
        window("a_from", "start of a; without any, before and after the last deploy"),
        window("a_to", "end of a"),
        window("b_from", "start of b; alone: the hours before and after it"),
        window("b_to", "end of b"),
    ),
    run,
)
