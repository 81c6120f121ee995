"""
What was asked, from one-minute rollups: the forms of read/query/derive.py on whole minutes.

A gauge's minimum, mean and maximum are its own; a counter's rate has the
lowest, mean and highest second of the minute. Where two inputs meet (a limit,
the page cache that may go) the second is its mean, or its last value for a
limit: exact for the mean, and within a minute's change of the second for the
extremes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.base.metric import Metric
from nodescope.base.metric_names import Form
from nodescope.read.query.derive import COMBINE, derive_part, derive_share
from nodescope.read.query.fetch import MINUTE_COLUMNS, SeriesCut

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
VALUE = ("min", "mean", "max")
RATE = ("rate_min", "rate_mean", "rate_max")
# Usage of the cores granted is a rate; so is everything made of counters.
RATE_FORMS = ("rate", "rates", "rate_share", "part")


@dataclass(frozen=True, slots=True)
class Minutes:
    """Summaries of one series; each stands for `count` samples."""

    time_ms: Integers
    minimum: Floats
    mean: Floats
    maximum: Floats
    count: Integers


def join_cuts(cuts: list[SeriesCut]) -> SeriesCut:
    """Pieces of one series from several rollups, in order of time."""
    if len(cuts) == 1:
        return cuts[0]
    time_ms = np.concatenate([cut.time_ms for cut in cuts])
    order = np.argsort(time_ms, kind="stable")
    columns = {name: np.concatenate([cut.columns[name] for cut in cuts])[order] for name in MINUTE_COLUMNS}
    return SeriesCut(time_ms[order], columns)


def derive_minutes(
    form: Form, metrics: tuple[Metric, ...], factor: float, first: SeriesCut, others: list[SeriesCut | None]
) -> Minutes:
    """One series; an input that it does not have is missing in every minute."""
    cuts = [first, *others]
    columns = RATE if form in RATE_FORMS else VALUE
    low, mean, high = (first.columns[name] * metrics[0].scale for name in columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        if form == "rates":
            for place in range(1, len(cuts)):
                more = (at_minutes(first, cuts[place], name) * metrics[place].scale for name in columns)
                low, mean, high = (one + other for one, other in zip((low, mean, high), more))
        elif form == "rate_share":
            granted = at_minutes(first, cuts[1], "last") / at_minutes(first, cuts[2], "last")
            low, mean, high = (derive_share(one, granted) for one in (low, mean, high))
        elif form == "part":
            mean = derive_part(mean, at_minutes(first, cuts[1], "rate_mean"))
            low = high = mean
        elif form in COMBINE:
            column = "mean" if form == "left" else "last"
            other = at_minutes(first, cuts[1], column) * metrics[1].scale
            low, mean, high = (COMBINE[form](one, other) for one in (low, mean, high))
            # 1 - x turns the order around.
            low, high = np.minimum(low, high), np.maximum(low, high)
        return Minutes(
            first.time_ms, low * factor, mean * factor, high * factor, first.columns["count"].astype(np.int64)
        )


def at_minutes(first: SeriesCut, other: SeriesCut | None, name: str) -> Floats:
    """Another input's column at the first one's minutes; NaN where it has none."""
    found = np.full(len(first.time_ms), np.nan)
    if other is None:
        return found
    places = np.searchsorted(other.time_ms, first.time_ms)
    inside = places < len(other.time_ms)
    hit = inside.copy()
    hit[inside] = other.time_ms[places[inside]] == first.time_ms[inside]
    found[hit] = other.columns[name][places[hit]]
    return found
