"""Curves and figures of a container's lives as one: they follow one another and share no sample."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.use.answers.containers import Container, Life, group_lives, there_share
from nodescope.use.answers.ranked.ranking import Figure, rank_roughly
from nodescope.use.answers.ranked.recorded import Recorded
from nodescope.use.answers.snapshots import View

# Of one container; of a crash loop of days the newest.
LIVES_MOST = 200


@dataclass(frozen=True, slots=True)
class Wholes:
    """Every container of a view, by the id of any of its lives."""

    by_id: Mapping[str, Container]

    def of(self, life_id: str) -> str:
        """The id that stands for the whole: its newest life's."""
        found = self.by_id.get(life_id)
        return found.newest.id if found else life_id

    def expand(self, lives: Iterable[Life], span: TimeRange) -> tuple[Life, ...]:
        """With every life the others of its container that were there in the span; itself where none was."""
        found: dict[str, Life] = {}
        for life in lives:
            whole = self.by_id.get(life.id)
            mine = whole.within(span)[-LIVES_MOST:] if whole else []
            found.update((one.id, one) for one in mine or [life])
        return tuple(found.values())


def list_wholes(view: View) -> Wholes:
    return Wholes({life.id: one for one in group_lives(view.lives()) for life in one.lives})


def choose_busiest_wholes(
    view: View, lives: Sequence[Life], metric: str, span: TimeRange, most: int
) -> tuple[Life, ...]:
    """Lives of the containers that used the most over the span, all their lives together."""
    figures = rank_roughly(view, lives, metric, span).figures
    wholes = group_lives(life for life in lives if life.id in figures)
    wholes.sort(key=lambda one: (-sum(figures[life.id].over_span for life in one.lives), one.newest.id))
    return tuple(life for one in wholes[:most] for life in one.lives[-LIVES_MOST:])


def join_points(parts: Sequence[Points]) -> Points:
    """Samples in the order of time; where two have the same bucket, both by their samples."""
    if len(parts) == 1:
        return parts[0]
    columns = ("time_ms", "minimum", "mean", "maximum", "count")
    whole = Points(*(np.concatenate([getattr(one, name) for one in parts]) for name in columns))
    time_ms, places = np.unique(whole.time_ms, return_inverse=True)
    good = (whole.count > 0) & ~np.isnan(whole.mean)
    where, weight = places[good], whole.count[good]
    count = np.bincount(where, weight, len(time_ms)).astype(np.int64)
    total = np.bincount(where, whole.mean[good] * weight, len(time_ms))
    low, high = np.full(len(time_ms), np.inf), np.full(len(time_ms), -np.inf)
    np.minimum.at(low, where, whole.minimum[good])
    np.maximum.at(high, where, whole.maximum[good])
    there = count > 0
    mean = np.divide(total, count, out=np.full(len(time_ms), np.nan), where=there)
    return Points(time_ms, np.where(there, low, np.nan), mean, np.where(there, high, np.nan), count)


def join_figures(lives: Sequence[Life], figures: Mapping[str, Figure], recorded: Recorded) -> Figure | None:
    """One figure of all lives that were measured; None where none was."""
    found = [figures[life.id] for life in lives if life.id in figures]
    if len(found) < 2:
        return found[0] if found else None
    over_span = sum(one.over_span for one in found)
    there = there_share([life for life in lives if life.id in figures], recorded)
    return replace(
        found[-1],
        value=over_span / there if there else found[-1].value,
        most=max(one.most for one in found),
        spark=join_sparks(found),
        over_span=over_span,
    )


def join_sparks(found: Sequence[Figure]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """By the samples of each piece; of a range of a minute, where each has moments of its own, the newest life's."""
    if len({len(one.spark) for one in found}) > 1 or any(len(one.counts) != len(one.spark) for one in found):
        return found[-1].spark
    count = np.sum([one.counts for one in found], axis=0)
    total = np.sum(
        [np.where(one.counts > 0, np.nan_to_num(one.spark), 0) * one.counts for one in found], axis=0
    )
    joined: np.ndarray[tuple[int], np.dtype[np.float64]] = np.divide(
        total, count, out=np.full(len(count), np.nan), where=count > 0
    )
    return joined
