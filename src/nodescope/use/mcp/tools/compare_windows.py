"""What is different between two spans of time, of one container or of a node's containers?"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import erf

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_quantity
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Container, group_lives
from nodescope.use.mcp.nodes.backend import Backend, read_levels, run_study
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import find_container
from nodescope.use.mcp.tools.shared.container_span import MOST_LIVES
from nodescope.use.mcp.tools.shared.level_table import LevelRow, join_levels
from nodescope.use.mcp.tools.shared.merge_lives import merge_figures
from nodescope.use.mcp.tools.shared.time_text import (
    choose_span,
    join_alike,
    list_clipped,
    newest_of,
    read_moment,
    render_iso,
    render_span,
)

METRICS = ("cpu", "memory", "cpu_throttled", "pressure_cpu", "pressure_memory", "pressure_io", "disk_write")
# Less than a tenth is "about the same".
SAME_SHARE = 0.1
# A share of time below this is nothing in both spans, whatever its ratio.
IDLE = {
    "cpu": 0.005,
    "cpu_throttled": 0.01,
    "pressure_cpu": 0.01,
    "pressure_memory": 0.01,
    "pressure_io": 0.01,
}
# From 0 to 3 % of the time is any number of times as much, and little. Half of
# the time is as telling as a value that doubled.
SHARES = ("cpu_throttled", "pressure_cpu", "pressure_memory", "pressure_io")
SHARE_WEIGHT = 2.0
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
    unit: str
    before: dict[str, Fact]
    after: dict[str, Fact]
    restarts: int = 0
    """Between the beginning of the one window and the end of the other."""

    @property
    def change(self) -> float:
        """Relative to the larger of both, signed."""
        first, second = float(self.before["avg"] or 0), float(self.after["avg"] or 0)
        larger = max(abs(first), abs(second))
        if larger <= IDLE.get(self.metric, 0.0):
            return 0.0
        return (second - first) / larger if larger else 0.0

    @property
    def weight(self) -> float:
        """What comes first: a share of time by how much of the time, the rest by how much of itself."""
        if self.metric not in SHARES:
            return abs(self.change)
        return min(1.0, SHARE_WEIGHT * abs(float(self.after["avg"] or 0) - float(self.before["avg"] or 0)))


@dataclass(frozen=True, slots=True)
class Windows:
    """Both windows as a node's data has them."""

    node: str
    first: TimeRange
    second: TimeRange
    newest_ms: int
    metrics: tuple[str, ...]
    """Those of METRICS that the node has."""
    clipped: tuple[str, ...]
    """Where the data is shorter than a window that was given."""

    def render(self, verb: str) -> str:
        first, second = (render_span(span, self.newest_ms) for span in (self.first, self.second))
        return f"a {verb} {first}; b {verb} {second}"


@dataclass(frozen=True, slots=True)
class Compared:
    """What a node answered."""

    windows: Windows
    pairs: list[WindowPair]
    only_first: frozenset[str] = frozenset()
    only_second: frozenset[str] = frozenset()


def read_windows(backend: Backend, values: Values) -> Windows:
    about = backend.read_about()
    newest_ms = newest_of(about)
    given = {one: (values[f"{one}_from"], values[f"{one}_to"]) for one in ("a", "b")}
    for one, (start, end) in given.items():
        if read_moment(f"{one}_from", start, newest_ms) >= read_moment(f"{one}_to", end, newest_ms):
            raise ToolMisused(f'window {one} ends before it begins; swap "{one}_from" and "{one}_to"')
    first, second = (choose_span(about, *moments) for moments in given.values())
    known = {row.name for row in backend.read_metrics()}
    metrics = tuple(name for name in METRICS if name in known)
    clipped = [
        line for one, moments in given.items() for line in list_clipped(about, f"window {one}", *moments)
    ]
    return Windows(about.node, first, second, newest_ms, metrics, tuple(clipped))


def compare_container(backend: Backend, container: Container, values: Values) -> Compared:
    windows = read_windows(backend, values)
    restarts = count_restarts(container, windows)
    pairs = []
    for metric in windows.metrics:
        before, after = (
            merge_figures(run_study(backend, "summary", metric, ids_within(container, span, name), span))
            for name, span in (("a", windows.first), ("b", windows.second))
        )
        if before and after:
            unit = str(after.get("unit") or "")
            pairs.append(WindowPair(container.node, container.name, metric, unit, before, after, restarts))
    return Compared(windows, pairs)


def count_restarts(container: Container, windows: Windows) -> int:
    first, second = windows.first, windows.second
    both = TimeRange(min(first.from_ms, second.from_ms), max(first.to_ms, second.to_ms))
    return max(0, len(container.within(both)) - 1)


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
    only_first: set[str] = set()
    only_second: set[str] = set()
    for metric in windows.metrics:
        try:
            levels = [read_levels(backend, metric, span) for span in (windows.first, windows.second)]
        except RequestRejected:
            continue
        before, after = (
            {row.container.full_name: row for row in join_levels(containers, one.rows, span)}
            for one, span in zip(levels, (windows.first, windows.second), strict=True)
        )
        pairs += pair_rows(windows, metric, levels[0].unit, before, after)
        if metric in PRESENT:
            only_first |= set(before) - set(after)
            only_second |= set(after) - set(before)
    return Compared(windows, pairs, frozenset(only_first), frozenset(only_second))


def pair_rows(windows: Windows, metric: str, unit: str, before: Rows, after: Rows) -> Iterator[WindowPair]:
    """All containers together, where adding them up makes sense; then each that is in both windows."""
    if metric in PRESENT and before and after:
        totals = total(before.values()), total(after.values())
        yield WindowPair(windows.node, None, metric, unit, *totals)
    for name, row in before.items():
        if name in after:
            restarts = count_restarts(row.container, windows)
            figures = facts(row), facts(after[name])
            yield WindowPair(windows.node, row.container.name, metric, unit, *figures, restarts)


def facts(row: LevelRow) -> dict[str, Fact]:
    return {
        "avg": row.mean,
        "min": row.least,
        "max": row.most,
        "samples": row.samples,
        "missing_share": row.missing_share,
    }


def total(rows: Collection[LevelRow]) -> dict[str, Fact]:
    """Of all containers: each counts for as long as it was there."""
    return {
        "avg": sum(row.mean * row.there_share for row in rows),
        "samples": sum(row.samples for row in rows),
        "missing_share": max(row.missing_share for row in rows),
    }


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    if values["container"]:
        entry, container = await find_container(fleet, values["container"], values["node"])
        entries = {entry.node: entry}
        replies = await fleet.ask(entries, lambda backend: compare_container(backend, container, values))
        what = f'"{container.name}" on {entry.node}'
    else:
        entries = fleet.choose(values["node"])
        replies = await fleet.ask(entries, lambda backend: compare_node(backend, values))
        what = f"the containers of {', '.join(list(replies.answers)[:5])}"
    parts = list(replies.need_one().answers.values())
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
        nodes_away={**replies.away, **replies.refused},
        next_call=suggest(changed, windows),
    )


def render_headline(what: str, changed: list[WindowPair], pairs: list[WindowPair], windows: Windows) -> str:
    if not pairs:
        return f"Cannot compare {what}: no metric has samples in both windows."
    if not changed:
        return f"No: {what} did about the same in both windows ({len(pairs)} figures compared, none differs by 10 %)."
    return f"{render_pair(changed[0], windows).sentence} {len(changed)} of {len(pairs)} figures of {what} differ by 10 % or more ({windows.render('is')})."


def render_pair(pair: WindowPair, windows: Windows) -> ToolFinding:
    first, second = float(pair.before["avg"] or 0), float(pair.after["avg"] or 0)
    verb = "rose" if second > first else "fell" if second < first else "stayed"
    ratio = f" ({100 * (second - first) / abs(first):+.0f} %)" if first else ""
    who = f'"{pair.container}"' if pair.container else f"all containers of {pair.node}"
    times = "once" if pair.restarts == 1 else f"{pair.restarts} times"
    restarted = f"; it was restarted {times} meanwhile" if pair.restarts else ""
    return ToolFinding(
        f"{pair.metric} of {who} {verb} from {render_quantity(first, pair.unit)} to {render_quantity(second, pair.unit)}{ratio}{restarted}.",
        "difference",
        node=pair.node,
        container=pair.container,
        metric=pair.metric,
        unit=pair.unit,
        confidence=sureness(pair),
        samples=min(int(pair.before.get("samples") or 0), int(pair.after.get("samples") or 0)),
        missing_share=max(
            float(pair.before.get("missing_share") or 0), float(pair.after.get("missing_share") or 0)
        ),
        start_at=windows.first.from_ms / 1000,
        end_at=windows.second.to_ms / 1000,
        evidence={
            "a_avg": first,
            "b_avg": second,
            "a_max": pair.before.get("max"),
            "b_max": pair.after.get("max"),
            "a_stddev": pair.before.get("stddev"),
            "b_stddev": pair.after.get("stddev"),
            "restarts": pair.restarts or None,
        },
    )


def sureness(pair: WindowPair) -> float | None:
    """
    Of all pairs of one sample of each window, the share that differs in that direction.

    From means and deviations, as if normal: Phi(|difference| / sqrt(var a + var b)).
    """
    first, second = pair.before.get("stddev"), pair.after.get("stddev")
    if first is None or second is None:
        return None
    away = abs(float(pair.after["avg"] or 0) - float(pair.before["avg"] or 0))
    variance = float(first) ** 2 + float(second) ** 2
    return 0.5 * (1 + erf(away / (2 * variance) ** 0.5)) if variance > 0 else 1.0 if away else 0.5


def list_gaps(parts: list[Compared], same: int) -> tuple[str, ...]:
    lines = [
        f"{same} figures that are about the same",
        "when within the windows it changed (analyze_container, changepoint)",
    ]
    for name, only in (
        ("a", [one for part in parts for one in sorted(part.only_first)]),
        ("b", [one for part in parts for one in sorted(part.only_second)]),
    ):
        if only:
            listed = ", ".join(f'"{one}"' for one in only[:MOST_NAMED])
            more = f" and {len(only) - MOST_NAMED} more" if len(only) > MOST_NAMED else ""
            lines.insert(0, f"not compared, because only in window {name}: {listed}{more}")
    return (*join_alike([line for part in parts for line in part.windows.clipped]), *lines)


def suggest(changed: list[WindowPair], windows: Windows) -> NextCall:
    pair = next((one for one in changed if one.container), None)
    if pair is None or pair.container is None:
        return NextCall("top_containers", {"by": "memory"}, "who uses the most now")
    arguments: dict[str, Fact] = {
        "container": pair.container,
        "study": "changepoint",
        "metric": pair.metric,
        "node": pair.node,
        "from": render_iso(min(windows.first.from_ms, windows.second.from_ms)),
        "to": render_iso(max(windows.first.to_ms, windows.second.to_ms)),
    }
    return NextCall("analyze_container", arguments, "when it changed")


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
