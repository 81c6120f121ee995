"""
Does a path grow, will it go on, and when does it touch its limit?

Falls come first: a collector's teeth are looked at by their crests, and after a
restart only the newest life counts. Then what repeats is taken out, equal steps
become the line below them, and the rest is explained (evidence.py) and carried
on (first_passage.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.studies.forecast import collector, first_passage
from nodescope.use.studies.forecast.evidence import Explanation, explain, explain_points
from nodescope.use.studies.forecast.noise import GRIDS
from nodescope.use.studies.forecast.pages import Staircase, SteadyPages, find_staircase, steady_pages
from nodescope.use.studies.forecast.season import DAY_SECONDS, Season, WorkWeek, find_season, find_work_week
from nodescope.use.studies.forecast.steps import COLLECTOR_FALLS, find_falls
from nodescope.use.studies.forecast.uneven_pages import uneven_passages
from nodescope.use.studies.forecast.wave import BLOCKS, Wave, block_places, find_wave, fit, without_line
from nodescope.use.studies.maths.robust import mad_deviation
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

BOUNDS = (0.05, 0.5, 0.95)

# What may come before an interval of nine tenths: a twentieth at most, and less where that makes it
# shorter. The shortest of several looks shorter than it is; a hundredth more of the draws makes up for it.
EARLY_TAILS = np.linspace(0.02, 0.05, 7)
HELD = 0.91

# Moments per cycle of a season at which its crest is looked for.
CREST_MOMENTS = 24
MOST_MOMENTS = 4000

# A sample farther from the median of its bucket than this many deviations is an outlier.
FAR_DEVIATIONS = 3.5

# A fold that leaves less than this share of what a wave leaves is the better of both.
FOLD_IS_BETTER = 0.6

# A cycle is a day's if its length is one within this share.
SAME_DAY = 0.03

# Falls of the crests themselves are looked for in so many of them.
FEWEST_TEETH = 24

# What the crests cover, at least, as a share of a tooth.
LEAST_RANGE = 0.001

# How uncertain a season is: its swing, and how far its cycles drift over the span, in cycles.
SEASON_SIZE = 0.012
SEASON_DRIFT = 0.008


@dataclass(frozen=True)
class Repetition:
    """What the path repeats: one of both, or none."""

    season: Season | None
    wave: Wave | None

    def length(self, futures: first_passage.Futures, samples: int) -> float | None:
        """Samples of a cycle; of a wave, where most of what explains the path has it."""
        if self.season is not None:
            return self.season.length
        waves = futures.swings.any(axis=1).mean() if self.wave is not None else 0.0
        return samples / self.wave.turns if self.wave is not None and waves >= 0.5 else None


@dataclass(frozen=True)
class Passage:
    """Samples from the newest one until the limit: early, likely, late; infinite where it may never be."""

    early: float
    likely: float
    late: float
    reaches: float
    """Share of the futures that touch the limit at all, within ten spans."""


@dataclass(frozen=True)
class GrowthForecast:
    """What is known of a path's growth; slopes are per sample."""

    rises: float
    """Share of the explanations by which it rises at its end; of falls, 1 - rises is looked at."""
    falls: float
    ends: float
    """Among those: the share by which it levels off, or turns with the day."""
    slope: float
    slope_low: float
    slope_high: float
    passage: Passage | None
    """Of growth that goes on; None without a limit above the path."""
    level_off_passage: Passage | None
    """Of growth that gets slower."""
    samples: int
    start: int = 0
    """The first sample that counts: after the newest restart."""
    former_peak: float | None = None
    """The highest value before it."""
    begins: int = 0
    """Samples after `start` at which the growth began."""
    crests: bool = False
    season: float | None = None
    """Samples of one cycle."""
    cleared: bool = False
    """The crests are those before a collector cleared more than usual."""


def forecast_growth(
    values: FloatArray, interval_seconds: float, limit: float | None, started_at: float | None = None
) -> GrowthForecast:
    """started_at is the time of the first sample; without it, a week has no weekend."""
    falls = find_falls(values)
    if len(falls) >= COLLECTOR_FALLS:
        return of_collector(values, falls, limit)
    start = int(falls[-1]) if len(falls) and len(values) - falls[-1] >= GRIDS[0] else 0
    former = float(values[:start].max()) if start else None
    begun_at = None if started_at is None else started_at + start * interval_seconds
    newest = of_life(values[start:], interval_seconds, limit, begun_at)
    return replace(newest, start=start, former_peak=former)


def of_life(
    values: FloatArray, interval_seconds: float, limit: float | None, started_at: float | None
) -> GrowthForecast:
    """Of a path without falls."""
    staircase = find_staircase(values)
    if staircase is not None and staircase.is_even:
        return of_staircase(staircase, limit)
    if staircase is not None:
        whole = None if limit is None else staircase.whole_pages(limit)
        made = of_path(values, interval_seconds, whole, Repetition(None, None))
        return with_uneven_pages(made, staircase, limit)
    season, wave = seasons_of(values)
    week = week_of(values, interval_seconds, started_at, season, wave)
    season, wave = (week, None) if week is not None else (season, wave)
    path = values - season.at(np.arange(len(values), dtype=np.float64)) if season else values
    return of_path(path, interval_seconds, limit, Repetition(season, wave))


def with_uneven_pages(made: GrowthForecast, staircase: Staircase, limit: float | None) -> GrowthForecast:
    """Where more pages of the same kind are to come, that is known better than by the path."""
    drawn = None if limit is None else uneven_passages(staircase, staircase.pages_to(limit))
    return made if drawn is None or made.passage is None else replace(made, passage=passage_of(drawn))


def seasons_of(values: FloatArray) -> tuple[Season | None, Wave | None]:
    """
    What repeats, as a fold or as a wave: one of them, or none.

    A wave is fitted with the growth; a fold, which is taken out before, is for what has edges or many cycles.
    """
    if len(values) < BLOCKS[0]:
        return None, None
    blocks = bucket_heights(values, max(count for count in BLOCKS if count <= len(values)))
    season, wave = find_season(values), find_wave(blocks)
    if season is None or wave is None:
        return season, wave
    middles = block_places(len(blocks)) * len(values) - 0.5
    left_by_fold = left_by(season, blocks, middles)
    left_by_wave = fit(blocks, wave.turns, wave.harmonics).left
    return (season, None) if left_by_fold < FOLD_IS_BETTER * left_by_wave else (None, wave)


def week_of(
    values: FloatArray,
    interval_seconds: float,
    started_at: float | None,
    season: Season | None,
    wave: Wave | None,
) -> WorkWeek | None:
    """Where there is a daily cycle and weekends differ from working days."""
    cycle = season.length if season else len(values) / wave.turns if wave else 0.0
    if started_at is None or abs(cycle * interval_seconds / DAY_SECONDS - 1) > SAME_DAY:
        return None
    week = find_work_week(values, interval_seconds, started_at)
    if week is None:
        return None
    blocks = bucket_heights(values, max(count for count in BLOCKS if count <= len(values)))
    middles = block_places(len(blocks)) * len(values) - 0.5
    left_by_day = float("inf")
    if season is not None:
        left_by_day = left_by(season, blocks, middles)
    elif wave is not None:
        left_by_day = fit(blocks, wave.turns, wave.harmonics).left
    return week if left_by(week, blocks, middles) < FOLD_IS_BETTER * left_by_day else None


def left_by(season: Season, blocks: FloatArray, middles: FloatArray) -> float:
    return float(np.sum(without_line(blocks - season.at(middles)) ** 2))


def of_path(
    path: FloatArray, interval_seconds: float, limit: float | None, repeats: Repetition
) -> GrowthForecast:
    heights = bucket_heights(path, max(count for count in GRIDS if count <= len(path)))
    scale = Scale.of(heights)
    explanations = explain(scale.down(heights), len(path) * interval_seconds, repeats.wave)
    futures = first_passage.draw_futures(explanations, scale.down(heights), repeats.wave)

    def passages(kept: first_passage.Futures, limit: float) -> FloatArray:
        if repeats.season is not None:
            kept = with_season(kept, repeats.season, len(path), scale.size)
        return first_passage.passages(kept, limit)

    made = forecast_of(PathFutures(futures, len(path), scale, passages), limit)
    begins = round(begin_of(explanations) * len(path))
    return replace(made, season=repeats.length(futures, len(path)), begins=begins)


def begin_of(explanations: list[Explanation]) -> float:
    """The share of the span before the growth began; 0 unless most of what explains the path is flat before it."""
    bends = sorted(
        (one.shape.start, one.weight)
        for one in explanations
        if one.shape.kind == "bend" and len(one.shape.columns) == 1
    )
    weights = np.cumsum([weight for _, weight in bends])
    if not bends or weights[-1] < 0.5 * sum(one.weight for one in explanations):
        return 0.0
    return bends[int(np.searchsorted(weights, weights[-1] / 2))][0]


def of_collector(values: FloatArray, falls: IntArray, limit: float | None) -> GrowthForecast:
    """
    By the crests; of a collector that clears the young often and the old rarely, by the crests of its crests.

    Where the old was cleared three times at most, it is seen since then only, as after a restart.
    """
    heights = collector.crest_heights(values, falls)
    deeper = find_falls(heights) if len(heights) >= FEWEST_TEETH else falls[:0]
    if len(deeper) >= COLLECTOR_FALLS:
        return slower_by(of_crests(heights, deeper, limit), float(falls[-1]) / len(falls), len(values))
    start = int(falls[deeper[-1] - 1]) if len(deeper) else 0
    later = falls[falls > start] - start
    if start == 0 or len(later) < COLLECTOR_FALLS:
        return of_crests(values, falls, limit)
    made = of_crests(values[start:], later, limit)
    return replace(made, start=start, former_peak=float(heights[: deeper[-1]].max()))


def slower_by(made: GrowthForecast, factor: float, samples: int) -> GrowthForecast:
    """What is known in teeth, in samples."""

    def passage(one: Passage | None) -> Passage | None:
        if one is None:
            return None
        return replace(one, early=one.early * factor, likely=one.likely * factor, late=one.late * factor)

    return replace(
        made,
        slope=made.slope / factor,
        slope_low=made.slope_low / factor,
        slope_high=made.slope_high / factor,
        passage=passage(made.passage),
        level_off_passage=passage(made.level_off_passage),
        samples=samples,
        begins=round(made.begins * factor),
        cleared=True,
    )


def of_crests(values: FloatArray, falls: IntArray, limit: float | None) -> GrowthForecast:
    crests = collector.find_crests(values, falls)
    # Floors that are all alike have no range of their own.
    scale = Scale.of(crests.heights, LEAST_RANGE * crests.fall)
    heights = scale.down(crests.heights)
    futures = first_passage.draw_futures(explain_points(crests.places, heights), heights)

    def passages(kept: first_passage.Futures, limit: float) -> FloatArray:
        return collector.passages(kept, crests, scale.size, limit)

    return replace(forecast_of(PathFutures(futures, len(values), scale, passages), limit), crests=True)


def of_staircase(staircase: Staircase, limit: float | None) -> GrowthForecast:
    """Of the line through the corners of a staircase of pages."""
    whole = None if limit is None else staircase.whole_pages(limit)
    steady = steady_pages(staircase)
    if steady is not None:
        return of_steady_pages(steady, staircase, limit)
    places, heights = staircase.corners()
    scale = Scale.of(heights)
    futures = first_passage.draw_futures(explain_points(places, scale.down(heights)), scale.down(heights))
    made = forecast_of(PathFutures(futures, staircase.samples, scale, first_passage.passages), whole)
    return with_uneven_pages(made, staircase, limit)


def of_steady_pages(steady: SteadyPages, staircase: Staircase, limit: float | None) -> GrowthForecast:
    slopes = staircase.page / steady.gaps
    low, likely, high = np.quantile(slopes, BOUNDS)
    ahead = None if limit is None else staircase.pages_to(limit)
    passage = None if ahead is None else passage_of(steady.passages(ahead))
    return GrowthForecast(
        rises=1.0,
        falls=0.0,
        ends=0.0,
        slope=float(likely),
        slope_low=float(low),
        slope_high=float(high),
        passage=passage,
        level_off_passage=None,
        samples=staircase.samples,
    )


@dataclass(frozen=True)
class Scale:
    """Heights are explained around 0, over a range of 1."""

    middle: float
    size: float

    @classmethod
    def of(cls, heights: FloatArray, least: float = 0.0) -> "Scale":
        return cls(float(np.median(heights)), max(float(np.ptp(heights)), least) or 1.0)

    def down(self, heights: FloatArray) -> FloatArray:
        return (heights - self.middle) / self.size


@dataclass(frozen=True)
class PathFutures:
    """Futures of one way to see a path, and how some of them touch a limit, in spans."""

    futures: first_passage.Futures
    samples: int
    scale: Scale
    passages: Callable[[first_passage.Futures, float], FloatArray]

    def touch(self, kept: BoolArray, limit: float | None) -> Passage | None:
        if limit is None or not kept.any():
            return None
        limit = (limit - self.scale.middle) / self.scale.size
        return passage_of(self.samples * self.passages(first_passage.only(self.futures, kept), limit))


def forecast_of(path: PathFutures, limit: float | None) -> GrowthForecast:
    futures = path.futures
    up, down = futures.slopes > 0, futures.slopes < 0
    kept = up if up.sum() >= down.sum() else down
    slopes = futures.slopes[kept & ~futures.ends] if (kept & ~futures.ends).any() else futures.slopes[kept]
    low, likely, high = np.quantile(slopes, BOUNDS) if len(slopes) else (0.0, 0.0, 0.0)
    per_sample = path.scale.size / path.samples
    return GrowthForecast(
        rises=float(up.mean()),
        falls=float(down.mean()),
        ends=float(futures.ends[kept].mean()) if kept.any() else 0.0,
        slope=float(likely) * per_sample,
        slope_low=float(low) * per_sample,
        slope_high=float(high) * per_sample,
        passage=path.touch(up & ~futures.ends, limit),
        level_off_passage=path.touch(up & futures.ends, limit),
        samples=path.samples,
    )


def passage_of(times: FloatArray) -> Passage:
    """
    Of times from the end of the span on, which is half a sample after the newest one.

    What is touched between two samples is seen with the next: the bounds are those of whole samples.
    """
    seen = np.sort(np.where(times > 0, np.ceil(times + 0.5), 0.0))
    early, late = shortest_interval(seen)
    likely = float(np.quantile(seen, 0.5, method="nearest"))
    return Passage(early=early, likely=likely, late=late, reaches=float(np.isfinite(times).mean()))


def shortest_interval(ordered: FloatArray) -> tuple[float, float]:
    """
    The shortest that holds nine tenths of the times, and begins no later than their twentieth part.

    What slows down takes much longer, what speeds up only a little less: with the same tails on both sides,
    most of the interval would be for the few futures that are very late.
    """
    last = len(ordered) - 1
    starts = np.rint(last * EARLY_TAILS).astype(np.int64)
    ends = np.minimum(starts + round(HELD * last), last)
    has_end = np.isfinite(ordered[ends])
    lengths = np.full(len(starts), np.inf)
    lengths[has_end] = ordered[ends[has_end]] - ordered[starts[has_end]]
    # Of equal ones the latest: where none has an end, it begins with the twentieth part.
    best = len(starts) - 1 - int(np.argmin(lengths[::-1]))
    return float(ordered[starts[best]]), float(ordered[ends[best]])


def with_season(
    futures: first_passage.Futures, season: Season, samples: int, scale: float
) -> first_passage.Futures:
    """The same futures with the season's cycles on them, at moments close enough to see each crest."""
    cycles = futures.ahead[-1] * samples / season.length
    count = int(min(MOST_MOMENTS, max(len(futures.ahead), CREST_MOMENTS * cycles)))
    ahead = np.linspace(0.0, float(futures.ahead[-1]), count)
    heights = np.stack([np.interp(ahead, futures.ahead, row) for row in futures.heights])
    random = np.random.default_rng(first_passage.SEED)
    rate = 1.0 + SEASON_DRIFT * season.length / samples * random.standard_normal((len(heights), 1))
    size = 1.0 + SEASON_SIZE * random.standard_normal((len(heights), 1))
    heights += size * season.at((1.0 + ahead) * samples * rate) / scale
    return replace(futures, ahead=ahead, heights=heights, roughness=np.zeros_like(futures.roughness))


def bucket_heights(path: FloatArray, buckets: int) -> FloatArray:
    """Means without outliers: a median would be a quarter less exact."""
    bounds = np.linspace(0, len(path), buckets + 1)
    whole = bounds.astype(np.int64)
    counts = np.diff(whole)
    middles = np.empty(buckets)
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        middles[alike] = np.median(path[whole[alike, None] + np.arange(count)], axis=1)
    around = np.repeat(middles, counts)
    near = np.abs(path - around) <= FAR_DEVIATIONS * mad_deviation(path - around)
    # From sums over time, because the bounds of a bucket lie within samples.
    total, count = (
        np.concatenate(([0.0], np.cumsum(part))) for part in (np.where(near, path - path[0], 0.0), near)
    )
    sums, counted = (np.diff(np.interp(bounds, np.arange(len(one)), one)) for one in (total, count))
    return np.asarray(np.where(counted > 0, path[0] + sums / np.maximum(counted, 1e-9), middles))
