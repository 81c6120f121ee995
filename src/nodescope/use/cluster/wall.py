"""
The wall: a row a node with the cells of one measure, the worst node first, each with its reason.

It is drawn from what the gatherer has now. Nodes that are still being asked
are in it without cells; who looks again gets more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import parse_seconds, render_count
from nodescope.base.text import clean_text, render_unknown
from nodescope.base.time_range import TimeRange, parse_moment
from nodescope.use.answers.axis import Floats
from nodescope.use.answers.minutes.node_minutes import CELLS_MOST, STEPS_MS, CellRequest, cover
from nodescope.use.cluster.asked_node import list_names
from nodescope.use.cluster.gatherer import LIVE_MS, AskedState, Gatherer
from nodescope.use.cluster.harm import Harm, judge_node, judge_silence
from nodescope.use.cluster.measure import MEASURES, Drawn, Level, Measure, measure_levels

DEFAULT_SECONDS = 3 * 3600.0
# Columns of a wide screen.
COLUMNS_MOST = 360
SPANS_FROM_MS = 5 * 60_000


@dataclass(frozen=True, slots=True)
class WallRow:
    """One node."""

    node: str
    state: str
    reason: str
    harm: Harm
    drawn: Drawn
    answered_ns: int
    means: dict[str, float | None]
    mosts: dict[str, float | None]
    cells: Floats
    restarts: int
    kills: int
    findings: int


@dataclass(frozen=True, slots=True)
class Wall:
    """All of them, over one range."""

    measure: Measure
    span: TimeRange
    step_ms: int
    """Of one column."""
    columns: int
    is_live: bool
    newest_ms: int
    first_ms: int
    rows: tuple[WallRow, ...]
    asking: int
    trouble: str

    @property
    def sentence(self) -> str:
        return describe_wall(self)


@dataclass(frozen=True, slots=True)
class ClusterTime:
    """What `now` means on a page of many nodes."""

    newest_ms: int
    first_ms: int
    is_live: bool
    end_ms: int

    @classmethod
    def of(cls, states: Sequence[AskedState], clock: Clock) -> "ClusterTime":
        wall_ms = clock.wall_ns() // 1_000_000
        # A clock that runs ahead must not move everybody's page into the future.
        known = [min(one.cells.newest_ms, wall_ms) for one in states if one.cells.newest_ms]
        firsts = [one.cells.first_ms for one in states if one.cells.first_ms]
        newest_ms = max(known, default=0)
        is_live = bool(newest_ms) and wall_ms - newest_ms < LIVE_MS
        return cls(newest_ms, min(firsts, default=0), is_live, wall_ms if is_live else newest_ms)


def parse_span(time: ClusterTime, start: str, end: str, whole: str) -> TimeRange:
    """`from` and `to`, or `range`, or the last three hours."""
    if whole and (start or end):
        raise RequestRejected("range stands alone; give it, or from and to")
    to_ms = parse_moment(end, time.end_ms) if end else time.end_ms
    if start:
        from_ms = parse_moment(start, time.end_ms)
    elif whole == "all":
        from_ms = time.first_ms
    else:
        from_ms = to_ms - round(parse_length(whole) * 1000)
    if from_ms > to_ms:
        raise RequestRejected(f"the range ends ({to_ms / 1000:g}) before it begins ({from_ms / 1000:g})")
    from_ms = min(from_ms, to_ms - SPANS_FROM_MS)
    return TimeRange(max(from_ms, to_ms - STEPS_MS[-1] * (CELLS_MOST - 2)), to_ms)


def parse_length(text: str) -> float:
    if not text:
        return DEFAULT_SECONDS
    try:
        return parse_seconds(text)
    except (ValueError, OverflowError):
        shown = clean_text(text, 40)
        raise RequestRejected(
            f"range={shown!r} is not accepted; accepted: 15m, 1h, 6h, 1d, 1w, all"
        ) from None


def choose_cells(span: TimeRange) -> CellRequest:
    """The finest cells of which there are not too many: minutes of a day, ten minutes of a week, then hours."""
    fitting = (one for one in STEPS_MS if (span.to_ms - span.from_ms) // one <= CELLS_MOST * 0.78)
    return cover(span, next(fitting, STEPS_MS[-1]))


def find_measure(name: str) -> Measure:
    if name not in MEASURES:
        raise RequestRejected(render_unknown("measure", name, list(MEASURES)))
    return MEASURES[name]


def draw_wall(
    gatherer: Gatherer, clock: Clock, measure: Measure, when: tuple[str, str, str], columns: int
) -> Wall:
    """What is known of the range; nodes that lack some of it are being asked when this returns."""
    time = ClusterTime.of(list(gatherer.states().values()), clock)
    if not time.newest_ms:
        length = parse_length(when[2]) if when[2] and when[2] != "all" else DEFAULT_SECONDS
        step_ms = choose_cells(TimeRange(0, round(length * 1000))).step_ms
        gatherer.want_newest(step_ms, min(length, CELLS_MOST * step_ms / 1000 * 0.9))
        # Folders of this machine, and executors of tests, may have answered already.
        time = ClusterTime.of(list(gatherer.states().values()), clock)
    if not time.newest_ms:
        end_ms = clock.wall_ns() // 1_000_000
        time = ClusterTime(0, end_ms, False, end_ms)
    span = parse_span(time, *when)
    cells = choose_cells(span)
    asking = gatherer.want_cells(cells) if time.newest_ms else 1
    states = gatherer.states()
    # A few columns more than asked for are better than half as many.
    group = max(1, -(-cells.number * 10 // (max(1, min(columns, COLUMNS_MOST)) * 11)))
    rows = draw_rows(gatherer, states, cells, measure, group)
    return Wall(
        measure,
        span,
        cells.step_ms * group,
        -(-cells.number // group),
        time.is_live,
        time.newest_ms,
        time.first_ms,
        tuple(sorted(rows, key=lambda row: (-row.harm.weight, row.node))),
        min(asking, sum(1 for one in states.values() if one.asking_ns)),
        gatherer.trouble(),
    )


def draw_rows(
    gatherer: Gatherer, states: dict[str, AskedState], cells: CellRequest, measure: Measure, group: int
) -> list[WallRow]:
    windows = {name: one.cells.window(cells.step_ms).cut(cells) for name, one in states.items()}
    largest = max(
        (float(np.nanmax(one[0])) for one in windows.values() if np.isfinite(one[0]).any()), default=0.0
    )
    drawn = [Drawn(one.cells, cells, windows[name], largest) for name, one in states.items()]
    values, levels = measure_levels(drawn)
    place = list(MEASURES).index(measure.id)
    return [
        draw_row(name, one, gatherer.describe(one), *parts)
        for (name, one), *parts in zip(
            states.items(), drawn, levels, reduce_cells(values[:, place], group) if len(values) else []
        )
    ]


def draw_row(
    name: str,
    state: AskedState,
    described: tuple[str, str],
    drawn: Drawn,
    levels: Mapping[str, Level],
    shown: Floats,
) -> WallRow:
    span = drawn.cells.span
    word, reason = described
    events = [one.kind for one in state.cells.events_in(span)]
    if word == "away":
        harm = judge_silence(reason, state.cells.newest_ms)
    elif word == "asking":
        harm = Harm(0.0, "Being asked ...")
    else:
        harm = judge_node(drawn, levels)
    known = {key: levels[key] for key in MEASURES if levels[key].measured}
    return WallRow(
        name,
        word,
        reason,
        harm,
        drawn,
        state.answered_ns,
        {key: known[key].mean if key in known else None for key in MEASURES},
        {key: known[key].most if key in known else None for key in MEASURES},
        shown,
        events.count("restart"),
        events.count("oom"),
        len([one for one in state.cells.findings_in(span) if one.severity in ("kill", "hurt")]),
    )


def reduce_cells(values: Floats, group: int) -> Floats:
    """The worst of each group, of one node or of many: a minute that hurt survives a week's view."""
    if group == 1:
        return values
    *nodes, cells = values.shape
    padded = np.full((*nodes, cells + -cells % group), np.nan)
    padded[..., :cells] = values
    found: Floats = np.fmax.reduce(padded.reshape(*nodes, -1, group), axis=-1)
    return found


def describe_wall(wall: Wall) -> str:
    """How the cluster is, in two sentences."""
    silent = [row.node for row in wall.rows if row.state == "away"]
    answered = [row for row in wall.rows if row.state == "ok"]
    hurt = [row for row in answered if row.harm.is_hurt]
    if not wall.rows:
        return "There is no node yet."
    if not answered and not silent:
        return f"{render_count(len(wall.rows), 'node')} being asked."
    away = f" {render_count(len(silent), 'node')} not answering: {list_names(silent, 3)}." if silent else ""
    if not hurt:
        return f"{len(answered)} of {render_count(len(wall.rows), 'node')} answered and none is hurt.{away}"
    worst = f"{clean_text(hurt[0].node, 60)}: {hurt[0].harm.sentence}"
    many = f"{len(hurt)} of {render_count(len(wall.rows), 'node')} {'is' if len(hurt) == 1 else 'are'} hurt."
    return f"{many} Worst is {worst}{away}"
