"""
The values of an answer from one-minute rollups: the forms of read/query/derive.py on whole minutes.

A gauge's minimum, mean and maximum are its own; a counter's rate has the
lowest, mean and highest second of the minute. Where two inputs meet (a limit,
the page cache that may go) the second is its mean, or its last value for a
limit: exact for the mean, and within a minute's change of the second for the
extremes.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.metric import Metric
from nodescope.base.metric_names import Form
from nodescope.keep.label_columns import IDENTITY, Identity
from nodescope.read.files.rollups import Rollup
from nodescope.read.files.row_groups import METRIC, read_row_groups
from nodescope.read.query.bucket import Points
from nodescope.read.query.derive import COMBINE, derive_part, derive_share, values_at
from nodescope.read.query.fetch import (
    Columns,
    Fetched,
    SeriesNames,
    Wanted,
    cut_series,
    identity_columns,
)
from nodescope.read.query.metric_rows import CONTAINER, SCOPE, find_stretch, read_groups
from nodescope.read.query.row_reader import read_ahead

VALUE = ("min", "mean", "max")
RATE = ("rate_min", "rate_mean", "rate_max")
# Usage of the cores granted is a rate; so is everything made of counters.
RATE_FORMS = ("rate", "rates", "rate_share", "part")


def list_numbers(form: Form, place: int) -> tuple[str, ...]:
    """The columns of a rollup that a form needs of its input at this place; the others are not read."""
    if place == 0 or form == "rates":
        return ("count", *(RATE if form in RATE_FORMS else VALUE))
    if form == "part":
        return ("rate_mean",)
    return ("mean",) if form == "left" else ("last",)


def fetch_minutes(
    rollups: Sequence[Rollup], scopes: set[str], wanted: Wanted, numbers: Sequence[str]
) -> Fetched:
    """By series; the scopes say which columns to read. ArchiveRefused where one cannot be read."""
    names = name_columns(scopes)
    found: Fetched = {}
    for pieces in read_ahead(lambda rollup: fetch_rollup(rollup, names, wanted, numbers), rollups):
        for identity, piece in pieces:
            found.setdefault(identity, []).append(piece)
    return found


def name_columns(scopes: set[str]) -> SeriesNames:
    """A rollup's rows name their series themselves."""
    columns = {*identity_columns(scopes), "l_scope"} if scopes else IDENTITY
    return SeriesNames([name for name in IDENTITY if name in columns], {})


def fetch_rollup(
    rollup: Rollup, names: SeriesNames, wanted: Wanted, numbers: Sequence[str]
) -> list[tuple[Identity, Columns]]:
    """Of each series that is wanted its minutes in the range, where it has some."""
    known = enumerate(read_row_groups(rollup.path, 0, rollup.mtime_ns))
    groups = [number for number, one in known if one.may_have(wanted.metric, wanted.containers)]
    if not groups:
        return []
    table = read_groups(rollup.path, groups, numbers, [METRIC, *names.columns])
    table = table.slice(*find_stretch(table.column(METRIC), wanted.metric))
    pieces: Fetched = {}
    cut_series(pieces, table, names, numbers, "time", wanted.containers)
    is_inside = wanted.from_ms <= rollup.from_ms and rollup.to_ms <= wanted.to_ms
    chosen = (
        (identity, piece if is_inside else cut_piece(piece, wanted))
        for identity, (piece, *_) in pieces.items()
        if wanted.scope in ("", identity[SCOPE] or "container")
        and (wanted.containers is None or identity[CONTAINER] in wanted.containers)
    )
    return [(identity, piece) for identity, piece in chosen if len(piece["time_ms"])]


def cut_piece(piece: Columns, wanted: Wanted) -> Columns:
    inside = (piece["time_ms"] >= wanted.from_ms) & (piece["time_ms"] <= wanted.to_ms)
    return {name: one[inside] for name, one in piece.items()}


def join_pieces(pieces: Sequence[Columns]) -> Columns:
    """One series from several rollups, in order of time."""
    if len(pieces) == 1:
        return pieces[0]
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    if all(one["time_ms"][-1] <= other["time_ms"][0] for one, other in pairwise(pieces)):
        return joined
    order = np.argsort(joined["time_ms"], kind="stable")
    return {name: column[order] for name, column in joined.items()}


def derive_together(
    form: Form, metrics: tuple[Metric, ...], factor: float, series: Mapping[Identity, Columns]
) -> dict[Identity, Points]:
    """Of one input: all series as one column, and then cut; a hundred small steps take longer than one large one."""
    if not series:
        return {}
    every = list(series.values())
    column = {name: np.concatenate([one[name] for one in every]) for name in every[0]}
    whole = derive_minutes(form, metrics, factor, column, ())
    ends = np.cumsum([0, *(len(one["time_ms"]) for one in every)]).tolist()
    return {
        identity: cut_points(whole, start, end)
        for identity, (start, end) in zip(series, pairwise(ends), strict=True)
    }


def cut_points(whole: Points, start: int, end: int) -> Points:
    rows = slice(start, end)
    low, mean, high = whole.minimum[rows], whole.mean[rows], whole.maximum[rows]
    return Points(whole.time_ms[rows], low, mean, high, whole.count[rows])


def derive_minutes(
    form: Form, metrics: tuple[Metric, ...], factor: float, first: Columns, others: Sequence[Columns | None]
) -> Points:
    """One series; an input that it does not have is missing in every minute."""
    columns = RATE if form in RATE_FORMS else VALUE
    low, mean, high = (first[name] * metrics[0].scale for name in columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        if form == "rates":
            for metric, other in zip(metrics[1:], others):
                more = (at_minutes(first, other, name) * metric.scale for name in columns)
                low, mean, high = (one + much for one, much in zip((low, mean, high), more))
        elif form == "rate_share":
            granted = at_minutes(first, others[0], "last") / at_minutes(first, others[1], "last")
            low, mean, high = (derive_share(one, granted) for one in (low, mean, high))
        elif form == "part":
            mean = derive_part(mean, at_minutes(first, others[0], "rate_mean"))
            low = high = mean
        elif form in COMBINE:
            column = "mean" if form == "left" else "last"
            second = at_minutes(first, others[0], column) * metrics[1].scale
            low, mean, high = (COMBINE[form](one, second) for one in (low, mean, high))
            # 1 - x turns the order around.
            low, high = np.minimum(low, high), np.maximum(low, high)
        count = first["count"].astype(np.int64)
        return Points(first["time_ms"], low * factor, mean * factor, high * factor, count)


def at_minutes(first: Columns, other: Columns | None, name: str) -> Floats:
    """Another input's column at the first one's minutes; NaN where it has none."""
    if other is None:
        return np.full(len(first["time_ms"]), np.nan)
    return values_at(first["time_ms"], other["time_ms"], other[name])
