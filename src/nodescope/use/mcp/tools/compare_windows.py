"""What is different between two spans of time, of one container or of a node's containers?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erf

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_quantity
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.mcp.nodes.backend import About, Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import Resident, find_resident, gather_residents
from nodescope.use.mcp.tools.shared.container_span import MOST_LIVES
from nodescope.use.mcp.tools.shared.level_table import LevelRow, join_levels
from nodescope.use.mcp.tools.shared.merge_lives import merge_figures
from nodescope.use.mcp.tools.shared.time_text import (
    choose_span,
    newest_of,
    read_moment,
    render_iso,
    render_span,
    tell_alike,
    tell_clipped,
)

METRICS = ("cpu", "memory", "cpu_throttled", "pressure_cpu", "pressure_memory", "pressure_io", "disk_write")
# Less than a tenth is told as "about the same".
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
        """What is told first: a share of time by how much of the time, the rest by how much of itself."""
        if self.metric not in SHARES:
            return abs(self.change)
        return min(1.0, SHARE_WEIGHT * abs(float(self.after["avg"] or 0) - float(self.before["avg"] or 0)))


@dataclass(frozen=True, slots=True)
class Compared:
    """What a node answered."""

    first: TimeRange
    second: TimeRange
    newest_ms: int
    pairs: list[WindowPair]
    only_first: frozenset[str] = frozenset()
    only_second: frozenset[str] = frozenset()
    clipped: tuple[str, ...] = ()
    """Where the data is shorter than a window that was asked for."""


def choose_spans(about: About, values: Values) -> tuple[TimeRange, TimeRange]:
    newest_ms = newest_of(about)
    for one in ("a", "b"):
        start = read_moment(f"{one}_from", values[f"{one}_from"], newest_ms)
        end = read_moment(f"{one}_to", values[f"{one}_to"], newest_ms)
        if start >= end:
            raise ToolMisused(f'window {one} ends before it begins; swap "{one}_from" and "{one}_to"')
    first = choose_span(about, values["a_from"], values["a_to"])
    return first, choose_span(about, values["b_from"], values["b_to"])


def tell_shorter(about: About, values: Values) -> tuple[str, ...]:
    return tuple(
        line
        for one in ("a", "b")
        for line in tell_clipped(about, f"window {one}", values[f"{one}_from"], values[f"{one}_to"])
    )


def ask_container(resident: Resident, values: Values) -> Callable[[Backend], Compared]:
    def question(backend: Backend) -> Compared:
        about = backend.read_about()
        first, second = choose_spans(about, values)
        known = {row.name for row in backend.read_metrics()}
        pairs = []
        for metric in METRICS:
            if metric not in known:
                continue
            before, after = (
                merge_figures(backend.study("summary", metric, lives_of(resident, span, name), span))
                for name, span in (("a", first), ("b", second))
            )
            if before and after:
                pairs.append(
                    WindowPair(
                        resident.node,
                        resident.name,
                        metric,
                        str(after.get("unit") or ""),
                        before,
                        after,
                        count_restarts(resident, first, second),
                    )
                )
        clipped = tell_shorter(about, values)
        return Compared(first, second, newest_of(about), pairs, clipped=clipped)

    return question


def count_restarts(resident: Resident, first: TimeRange, second: TimeRange) -> int:
    both = TimeRange(min(first.from_ms, second.from_ms), max(first.to_ms, second.to_ms))
    return max(0, len(resident.within(both)) - 1)


def lives_of(resident: Resident, span: TimeRange, window_name: str) -> list[str]:
    lives = resident.within(span)
    if not lives:
        raise ToolMisused(
            f'"{resident.name}" was not there in window {window_name}; it was seen from '
            f"{render_moment(resident.first_ms)} to {render_moment(resident.last_ms)}"
        )
    return [life.container_id for life in lives[-MOST_LIVES:]]


def ask_node(values: Values) -> Callable[[Backend], Compared]:
    def question(backend: Backend) -> Compared:
        about = backend.read_about()
        first, second = choose_spans(about, values)
        residents = gather_residents(backend.read_lives(None))
        pairs: list[WindowPair] = []
        only_first: set[str] = set()
        only_second: set[str] = set()
        known = {row.name for row in backend.read_metrics()}
        for metric in (name for name in METRICS if name in known):
            try:
                levels = [backend.read_levels(metric, span, None) for span in (first, second)]
            except RequestRejected:
                continue
            before, after = (
                {row.resident.full_name: row for row in join_levels(residents, one.rows, span)}
                for one, span in zip(levels, (first, second), strict=True)
            )
            if metric in PRESENT:
                only_first |= set(before) - set(after)
                only_second |= set(after) - set(before)
            unit = levels[0].unit
            if metric in ("cpu", "memory") and before and after:
                pairs.append(
                    WindowPair(
                        about.node,
                        None,
                        metric,
                        unit,
                        total(list(before.values())),
                        total(list(after.values())),
                    )
                )
            pairs += [
                WindowPair(
                    about.node,
                    before[name].resident.name,
                    metric,
                    unit,
                    facts(before[name]),
                    facts(after[name]),
                    count_restarts(before[name].resident, first, second),
                )
                for name in before
                if name in after
            ]
        return Compared(
            first,
            second,
            newest_of(about),
            pairs,
            frozenset(only_first),
            frozenset(only_second),
            tell_shorter(about, values),
        )

    return question


def facts(row: LevelRow) -> dict[str, Fact]:
    return {
        "avg": row.mean,
        "min": row.least,
        "max": row.most,
        "samples": row.samples,
        "missing_share": row.missing_share,
    }


def total(rows: Sequence[LevelRow]) -> dict[str, Fact]:
    """Of all containers: each counts for as long as it was there."""
    return {
        "avg": sum(row.mean * row.there_share for row in rows),
        "samples": sum(row.samples for row in rows),
        "missing_share": max(row.missing_share for row in rows),
    }


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    if values["container"]:
        seat, resident = await find_resident(fleet, values["container"], values["node"])
        replies = (await fleet.ask({seat.node: seat}, ask_container(resident, values))).need_one()
        what = f'"{resident.name}" on {seat.node}'
    else:
        replies = (await fleet.ask(fleet.choose(values["node"]), ask_node(values))).need_one()
        what = f"the containers of {', '.join(list(replies.answers)[:5])}"
    parts = list(replies.answers.values())
    pairs = sorted((pair for part in parts for pair in part.pairs), key=lambda pair: -pair.weight)
    changed = [pair for pair in pairs if abs(pair.change) >= SAME_SHARE]
    shown = changed or pairs[:3]
    first = parts[0]
    return ToolAnswer(
        headline=tell_headline(what, changed, pairs, first),
        status="found" if changed else "none" if pairs else "not_enough_data",
        findings=tuple(tell(pair, first) for pair in shown[:MOST_FINDINGS]),
        left_out=max(0, len(shown) - MOST_FINDINGS),
        looked_at=f"{what}: a = {render_span(first.first, first.newest_ms)}; b = {render_span(first.second, first.newest_ms)}",
        not_looked_at=tell_gaps(parts, len(pairs) - len(changed)),
        nodes_away={**replies.away, **replies.refused},
        next_call=suggest(changed, first),
    )


def tell_headline(what: str, changed: list[WindowPair], pairs: list[WindowPair], part: Compared) -> str:
    if not pairs:
        return f"Cannot compare {what}: no metric has samples in both windows."
    if not changed:
        return f"No: {what} did about the same in both windows ({len(pairs)} figures compared, none differs by 10 %)."
    windows = (
        f"a is {render_span(part.first, part.newest_ms)}; b is {render_span(part.second, part.newest_ms)}"
    )
    return f"{tell(changed[0], part).sentence} {len(changed)} of {len(pairs)} figures of {what} differ by 10 % or more ({windows})."


def tell(pair: WindowPair, part: Compared) -> ToolFinding:
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
        start_at=part.first.from_ms / 1000,
        end_at=part.second.to_ms / 1000,
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
    Of all pairs of one sample of each window, the share that differs in the told direction.

    From means and deviations, as if normal: Phi(|difference| / sqrt(var a + var b)).
    """
    first, second = pair.before.get("stddev"), pair.after.get("stddev")
    if first is None or second is None:
        return None
    away = abs(float(pair.after["avg"] or 0) - float(pair.before["avg"] or 0))
    variance = float(first) ** 2 + float(second) ** 2
    return 0.5 * (1 + erf(away / (2 * variance) ** 0.5)) if variance > 0 else 1.0 if away else 0.5


def tell_gaps(parts: list[Compared], same: int) -> tuple[str, ...]:
    told = [
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
            told.insert(0, f"not compared, because only in window {name}: {listed}{more}")
    return (*tell_alike([line for part in parts for line in part.clipped]), *told)


def suggest(changed: list[WindowPair], part: Compared) -> NextCall:
    pair = next((one for one in changed if one.container), None)
    if pair is None or pair.container is None:
        return NextCall("top_containers", {"by": "memory"}, "who uses the most now")
    arguments: dict[str, Fact] = {
        "container": pair.container,
        "study": "changepoint",
        "metric": pair.metric,
        "node": pair.node,
        "from": render_iso(min(part.first.from_ms, part.second.from_ms)),
        "to": render_iso(max(part.first.to_ms, part.second.to_ms)),
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
