"""
Does a path grow, will it go on, and when does it touch its limit?

Falls come first: a collector's teeth are looked at by their crests, and after a
restart only the newest life counts. Then what repeats is taken out, equal steps
become the line below them, and the rest is explained (evidence.py) and carried
on (first_passage.py).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nodescope.use.studies.forecast import collector, first_passage
from nodescope.use.studies.forecast.evidence import explain
from nodescope.use.studies.forecast.noise import GRIDS
from nodescope.use.studies.forecast.season import Season, find_season
from nodescope.use.studies.forecast.steps import COLLECTOR_FALLS, find_falls, find_jumps, page_size, plateaus
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

BOUNDS = (0.05, 0.5, 0.95)

# Moments per cycle of a season at which its crest is looked for.
CREST_MOMENTS = 24
MOST_MOMENTS = 4000

# How uncertain a season is: its swing, and how far its cycles drift over the span, in cycles.
SEASON_SIZE = 0.012
SEASON_DRIFT = 0.008


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
    start: int
    """The first sample that counts: after the newest restart."""
    former_peak: float | None
    """The highest value before it."""
    crests: bool = False
    season: float | None = None
    """Samples of one cycle."""


def forecast_growth(values: FloatArray, interval_seconds: float, limit: float | None) -> GrowthForecast:
    jumps = find_jumps(values)
    falls = find_falls(values, jumps)
    if len(falls) >= COLLECTOR_FALLS:
        return of_crests(values, falls, limit)
    start = int(falls[-1]) if len(falls) and len(values) - falls[-1] >= GRIDS[0] else 0
    former = float(values[:start].max()) if start else None
    newest = values[start:]
    page = page_size(newest, find_jumps(newest))
    season = find_season(newest) if page is None else None
    path = newest - season.at(np.arange(len(newest), dtype=np.float64)) if season else newest
    if page is not None:
        path, limit = corner_line(newest), whole_pages(newest, page, limit)
    return of_path(path, interval_seconds, limit, season, start, former)


def of_path(
    path: FloatArray,
    interval_seconds: float,
    limit: float | None,
    season: Season | None,
    start: int,
    former: float | None,
) -> GrowthForecast:
    buckets = max(count for count in GRIDS if count <= len(path))
    heights = bucket_heights(path, buckets)
    middle, scale = float(np.median(heights)), float(np.ptp(heights)) or 1.0
    futures = first_passage.draw_futures(
        explain((heights - middle) / scale, len(path) * interval_seconds),
        (heights - middle) / scale,
    )
    moving = futures.slopes != 0
    up, down = moving & (futures.slopes > 0), moving & (futures.slopes < 0)
    kept = up if up.sum() >= down.sum() else down
    slopes = futures.slopes[kept & ~futures.ends] if (kept & ~futures.ends).any() else futures.slopes[kept]
    low, likely, high = np.quantile(slopes, BOUNDS) if len(slopes) else (0.0, 0.0, 0.0)
    per_sample = scale / len(path)
    measured = Touch(futures, len(path), middle, scale, season, limit)
    return GrowthForecast(
        rises=float(up.mean()),
        falls=float(down.mean()),
        ends=float(futures.ends[kept].mean()) if kept.any() else 0.0,
        slope=float(likely) * per_sample,
        slope_low=float(low) * per_sample,
        slope_high=float(high) * per_sample,
        passage=measured.of(up & ~futures.ends),
        level_off_passage=measured.of(up & futures.ends),
        samples=len(path),
        start=start,
        former_peak=former,
        season=season.length if season else None,
    )


@dataclass(frozen=True)
class Touch:
    """When futures touch the limit, in samples."""

    futures: first_passage.Futures
    samples: int
    middle: float
    scale: float
    season: Season | None
    limit: float | None

    def of(self, kept: BoolArray) -> Passage | None:
        if self.limit is None or not kept.any():
            return None
        futures = first_passage.only(self.futures, kept)
        if self.season is not None:
            futures = with_season(futures, self.season, self.samples, self.scale)
        times = self.samples * first_passage.passages(futures, (self.limit - self.middle) / self.scale)
        return passage_of(times)


def passage_of(times: FloatArray) -> Passage:
    # Between two samples nothing is known.
    early, likely, late = np.quantile(times, BOUNDS, method="nearest")
    return Passage(
        max(0.0, float(early) - 1.0), float(likely), float(late) + 1.0, float(np.isfinite(times).mean())
    )


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
    return first_passage.Futures(
        ahead, heights, futures.slopes, np.zeros_like(futures.roughness), futures.ends
    )


def bucket_heights(path: FloatArray, buckets: int) -> FloatArray:
    bounds = np.linspace(0, len(path), buckets + 1).astype(np.int64)
    return np.array([float(np.median(path[start:end])) for start, end in pairwise(bounds)])


def corner_line(values: FloatArray) -> FloatArray:
    """Through the first sample after each rise: the growth of which a staircase of pages shows whole pages."""
    jumps = find_jumps(values)
    places = jumps.places.astype(np.float64)
    heights = plateaus(values, jumps)[1:]
    slope = (heights[-1] - heights[0]) / max(places[-1] - places[0], 1.0)
    inside = np.arange(len(values), dtype=np.float64)
    line = np.interp(inside, places, heights)
    line = np.where(inside < places[0], heights[0] + slope * (inside - places[0]), line)
    after = heights[-1] + slope * (inside - places[-1])
    page = float(np.median(jumps.sizes))
    return np.where(inside > places[-1], np.minimum(after, heights[-1] + page), line)


def whole_pages(values: FloatArray, page: float, limit: float | None) -> float | None:
    """The limit as the first level of the staircase that is not below it."""
    if limit is None:
        return None
    now = float(np.median(values[find_jumps(values).places[-1] :]))
    # A limit that is a level of the staircase may be off by the meter's noise.
    return now + page * float(np.ceil(max(limit - now, 0.0) / page - 0.1))


def of_crests(values: FloatArray, falls: IntArray, limit: float | None) -> GrowthForecast:
    places, heights = collector.crests_of(values, falls)
    line = collector.CrestLine(places, heights)
    random = np.random.default_rng(collector.SEED)
    slopes = line.draw(random, collector.DRAWS)[1]
    low, likely, high = np.quantile(slopes, BOUNDS)
    farthest = first_passage.FARTHEST * len(values)
    times = None if limit is None else collector.passages(values, falls, limit, line, farthest)
    return GrowthForecast(
        rises=line.chance * float((slopes > 0).mean()),
        falls=line.chance * float((slopes < 0).mean()),
        ends=0.0,
        slope=float(likely),
        slope_low=float(low),
        slope_high=float(high),
        passage=None if times is None else passage_of(times),
        level_off_passage=None,
        samples=len(values),
        start=0,
        former_peak=None,
        crests=True,
    )
