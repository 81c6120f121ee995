"""What is different between two spans of time, of one container or of a node's containers?"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from math import erf

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_quantity
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Container, group_lives
from nodescope.use.mcp.nodes.backend import Backend, read_levels, run_study
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import find_container
from nodescope.use.mcp.tools.shared.container_span import MOST_LIVES
from nodescope.use.mcp.tools.shared.level_table import LevelRow, join_levels
from nodescope.use.mcp.tools.shared.merge_lives import Figures, merge_figures
from nodescope.use.mcp.tools.shared.metric_name import SHARES
from nodescope.use.mcp.tools.shared.next_call import suggest_study
from nodescope.use.mcp.tools.shared.time_text import (
    NodeSpan,
    extent_of,
    join_clipped,
    read_moment,
    read_span,
    render_iso,
)

METRICS = ("cpu", "memory", *SHARES, "disk_write")
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
class WindowPair:
    """One metric of one container (or the total of a node) in both spans."""

    node: str
    container: str | None
    metric: str
    before: Figures
    after: Figures
    restarts: int = 0
    """Between the beginning of the one window and the end of the other."""

    @property
    def change(self) -> float:
        """Relative to the larger of both, signed."""
        larger = max(abs(self.before.avg), abs(self.after.avg))
        if larger <= IDLE.get(self.metric, 0.0):
            return 0.0
        return (self.after.avg - self.before.avg) / larger

    @property
    def weight(self) -> float:
        """What comes first: a share of time by how much of the time, the rest by how much of itself."""
        if self.metric not in SHARES:
            return abs(self.change)
        return min(1.0, SHARE_WEIGHT * abs(self.after.avg - self.before.avg))


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

    def render(self, verb: str) -> str:
        return f"a {verb} {self.first.render()}; b {verb} {self.second.render()}"


@dataclass(frozen=True, slots=True)
class Compared:
    """What a node answered."""

    windows: Windows
    pairs: list[WindowPair]
    only: dict[str, set[str]] = field(default_factory=dict)
    """Containers of one window alone, by the window."""


def read_windows(backend: Backend, values: Values) -> Windows:
    about = backend.read_about()
    newest_ms = extent_of(about).to_ms
    given = {one: (values[f"{one}_from"], values[f"{one}_to"]) for one in ("a", "b")}
    for one, (start, end) in given.items():
        if read_moment(f"{one}_from", start, newest_ms) >= read_moment(f"{one}_to", end, newest_ms):
            raise ToolMisused(f'window {one} ends before it begins; swap "{one}_from" and "{one}_to"')
    first, second = (read_span(about, *moments, f"window {one}") for one, moments in given.items())
    known = {row.name for row in backend.read_metrics()}
    return Windows(about.node, first, second, tuple(name for name in METRICS if name in known))


def compare_container(backend: Backend, container: Container, values: Values) -> Compared:
    windows = read_windows(backend, values)
    restarts = count_restarts(container, windows)
    pairs = []
    for metric in windows.metrics:
        before, after = (
            merge_figures(run_study(backend, "summary", metric, ids_within(container, span, name), span))
            for name, span in (("a", windows.first.span), ("b", windows.second.span))
        )
        if before and after:
            pairs.append(WindowPair(container.node, container.name, metric, before, after, restarts))
    return Compared(windows, pairs)


def count_restarts(container: Container, windows: Windows) -> int:
    return max(0, len(container.within(windows.both)) - 1)


def ids_within(container: Container, span: TimeRange, window_name: str) -> list[str]:
    lives = container.within(span)
    if not lives:
        raise ToolMisused(
            f'"{container.name}" was not there in window {window_name}; it was seen from '
            f"{render_moment(container.first_ms)} to {render_moment(container.last_ms)}"
        )
    return [life.id for life in lives[-MOST_LIVES:]]


Rows = dict[str, LevelRow]


def compare_node(backend: Backend, values: Values) -> Compared:
    windows = read_windows(backend, values)
    containers = group_lives(backend.read_lives(None))
    pairs: list[WindowPair] = []
    only: dict[str, set[str]] = {"a": set(), "b": set()}
    spans = windows.first.span, windows.second.span
    for metric in windows.metrics:
        try:
            levels = [read_levels(backend, metric, span) for span in spans]
        except RequestRejected:
            continue
        before, after = (
            {row.container.full_name: row for row in join_levels(containers, one.rows, span)}
            for one, span in zip(levels, spans, strict=True)
        )
        pairs += pair_rows(windows, metric, levels[0].unit, before, after)
        if metric in PRESENT:
            only["a"] |= set(before) - set(after)
            only["b"] |= set(after) - set(before)
    return Compared(windows, pairs, only)


def pair_rows(windows: Windows, metric: str, unit: str, before: Rows, after: Rows) -> Iterator[WindowPair]:
    """All containers together, where adding them up makes sense; then each that is in both windows."""
    if metric in PRESENT and before and after:
        totals = total(before.values(), unit), total(after.values(), unit)
        yield WindowPair(windows.node, None, metric, *totals)
    for name, row in before.items():
        if name in after:
            restarts = count_restarts(row.container, windows)
            figures = figures_of(row, unit), figures_of(after[name], unit)
            yield WindowPair(windows.node, row.container.name, metric, *figures, restarts)


def figures_of(row: LevelRow, unit: str) -> Figures:
    level = row.level
    return Figures(level.mean, level.samples, row.missing_share, unit, max=level.most, min=level.least)


def total(rows: Collection[LevelRow], unit: str) -> Figures:
    """Of all containers: each counts for as long as it was there."""
    mean = sum(row.level.mean * row.there_share for row in rows)
    samples = sum(row.level.samples for row in rows)
    return Figures(mean, samples, max(row.missing_share for row in rows), unit)


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    if values["container"]:
        one = await find_container(fleet, values["container"], values["node"])
        replies = await fleet.ask_all(one.node, lambda backend: compare_container(backend, one, values))
        what = f'"{one.name}" on {one.node}'
    else:
        replies = await fleet.ask_all(values["node"], lambda backend: compare_node(backend, values))
        what = f"the containers of {', '.join(list(replies.answers)[:5])}"
    parts = list(replies.answers.values())
    pairs = sorted((pair for part in parts for pair in part.pairs), key=lambda pair: -pair.weight)
    changed = [pair for pair in pairs if abs(pair.change) >= SAME_SHARE]
    shown = changed or pairs[:3]
    windows = parts[0].windows
    return ToolAnswer(
        headline=render_headline(what, changed, pairs, windows),
        status="found" if changed else "none" if pairs else "not_enough_data",
        findings=tuple(render_pair(pair, windows) for pair in shown[:MOST_FINDINGS]),
        left_out=max(0, len(shown) - MOST_FINDINGS),
        looked_at=f"{what}: {windows.render('=')}",
        not_looked_at=list_gaps(parts, len(pairs) - len(changed)),
        nodes_away=replies.missing,
        next_call=suggest(changed, windows),
    )


def render_headline(what: str, changed: list[WindowPair], pairs: list[WindowPair], windows: Windows) -> str:
    if not pairs:
        return f"Cannot compare {what}: no metric has samples in both windows."
    if not changed:
        return f"No: {what} did about the same in both windows ({len(pairs)} figures compared, none differs by 10 %)."
    return f"{render_pair(changed[0], windows).sentence} {len(changed)} of {len(pairs)} figures of {what} differ by 10 % or more ({windows.render('is')})."


def render_pair(pair: WindowPair, windows: Windows) -> ToolFinding:
    before, after = pair.before, pair.after
    first, second, unit = before.avg, after.avg, after.unit
    figures = {
        f"{window}_{name}": getattr(one, name)
        for name in ("avg", "max", "stddev")
        for window, one in (("a", before), ("b", after))
    }
    verb = "rose" if second > first else "fell" if second < first else "stayed"
    ratio = f" ({100 * (second - first) / abs(first):+.0f} %)" if first else ""
    who = f'"{pair.container}"' if pair.container else f"all containers of {pair.node}"
    times = "once" if pair.restarts == 1 else f"{pair.restarts} times"
    restarted = f"; it was restarted {times} meanwhile" if pair.restarts else ""
    return ToolFinding(
        f"{pair.metric} of {who} {verb} from {render_quantity(first, unit)} to {render_quantity(second, unit)}{ratio}{restarted}.",
        "difference",
        node=pair.node,
        container=pair.container,
        metric=pair.metric,
        unit=unit,
        confidence=sureness(pair),
        samples=min(before.samples, after.samples),
        missing_share=max(before.missing_share, after.missing_share),
        start_at=windows.first.span.from_ms / 1000,
        end_at=windows.second.span.to_ms / 1000,
        evidence={**figures, "restarts": pair.restarts or None},
    )


def sureness(pair: WindowPair) -> float | None:
    """
    Of all pairs of one sample of each window, the share that differs in that direction.

    From means and deviations, as if normal: Phi(|difference| / sqrt(var a + var b)).
    """
    first, second = pair.before.stddev, pair.after.stddev
    if first is None or second is None:
        return None
    away = abs(pair.after.avg - pair.before.avg)
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
    if pair is None:
        return NextCall("top_containers", {"by": "memory"}, "who uses the most now")
    span = {"from": render_iso(windows.both.from_ms), "to": render_iso(windows.both.to_ms)}
    return suggest_study(pair.container, "changepoint", pair.metric, pair.node, "when it changed", **span)


def window(name: str, what: str) -> Argument:
    return Argument(name, f"{what}: ISO 8601 or relative (-2h)", "moment", required=True)


TOOL = Tool(
    "compare_windows",
    "Compare two windows",
    "What differs between window a and window b, of one container or of all containers of a node.",
    (
        Argument("container", "pod/container, a name or an id; without it all containers"),
        NODE,
        window("a_from", "start of window a"),
        window("a_to", "end of window a"),
        window("b_from", "start of window b"),
        window("b_to", "end of window b"),
    ),
    run,
)
