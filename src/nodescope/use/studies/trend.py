"""Is this series rising or falling for good, is that a leak, and when does it touch its limit?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.base.quantity import render_quantity, render_seconds, render_seconds_range, render_slope
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, Measure, StudyAnswer, found, not_enough
from nodescope.use.studies.forecast.growth_forecast import GrowthForecast, Passage, forecast_growth
from nodescope.use.studies.forecast.own_past import ENDS, LEAST_CHANCE, OwnPast, look_back, widened
from nodescope.use.studies.maths.robust import ROUNDING_SHARE, block_medians, is_flat
from nodescope.use.studies.maths.stretch import Stretch, interpolated, split_stretches
from nodescope.use.studies.maths.trend_line import fit_line
from nodescope.use.studies.series import FloatArray, Series

NAME = "trend"

FEWEST_SAMPLES = 20

# A value that was set once or twice is no trend.
FEWEST_MOVES = 3

# And a minute: within seconds, every start is a rise and every end is a fall.
SHORTEST_SECONDS = 60.0

# Warming up takes minutes: a rise over less than five of them may be a start and
# is reported as rising, not as a leak.
LEAK_SECONDS = 300.0

# From this share on, growth that gets slower is named as possible.
MAY_END = 0.15

# A day's load rises for half a day. A rise that was seen for longer is none of it.
DAILY_RISE_SECONDS = 43200.0

# Rates and shares do not accumulate.
FLOWING_UNITS = frozenset({"cores", "millicores", "ratio", "percent", "celsius", "watts", "hertz"})

# Nearer than this the limit is where the rise ended, as with an OOM kill:
# nobody can act any more.
AT_LIMIT_SECONDS = 10.0

# A forecast of which the limit is never touched in half of the futures is none.
LEAST_REACHES = 0.5

# A level is the median of a twentieth of the path, and of at most a quarter of its growth.
LEVELS, LEVELS_GROWN = 20, 4

# Of the range of its levels: what gained less, and is farther below its highest one, is no steady rise.
GAINED_SHARE, FALLEN_SHARE = 0.5, 0.25

# From the chance of an explanation to the share that is real.
TOO_LOW = 0.7
MOST_CONFIDENT = 0.99

Verdict = Literal["leak", "rising", "falling", "levels off", "below its former peak"]


@dataclass(frozen=True)
class Forecast:
    """Seconds from the last sample until the limit; None where the data do not allow a forecast."""

    likely: float | None
    low: float | None
    high: float | None


NO_FORECAST = Forecast(None, None, None)


@dataclass(frozen=True)
class Rise:
    """Everything that is known of one stretch's trend."""

    stretch: Stretch
    series: Series
    growth: GrowthForecast
    past: OwnPast
    verdict: Verdict

    @property
    def sign(self) -> int:
        return 1 if self.growth.rises >= self.growth.falls else -1

    @property
    def chance(self) -> float:
        return max(self.growth.rises, self.growth.falls)

    @property
    def start_at(self) -> float:
        return float(self.stretch.times_at[self.growth.start])

    @property
    def begins_at(self) -> float:
        """When the growth began, as far as it can be told."""
        last = len(self.stretch.times_at) - 1
        return float(self.stretch.times_at[min(self.growth.start + self.growth.begins, last)])

    @property
    def end_at(self) -> float:
        return float(self.stretch.times_at[-1])

    @property
    def slope_per_second(self) -> float:
        return self.growth.slope / self.stretch.interval_seconds

    @property
    def forecast(self) -> Forecast:
        """Of growth that goes on."""
        return self.seconds_of(self.growth.passage if self.verdict in ("leak", "rising") else None)

    @property
    def slower_forecast(self) -> Forecast:
        """Of growth that gets slower."""
        return self.seconds_of(self.growth.level_off_passage if self.verdict != "falling" else None)

    def seconds_of(self, passage: Passage | None) -> Forecast:
        if passage is None or passage.reaches < LEAST_REACHES:
            return NO_FORECAST
        step = self.stretch.interval_seconds
        high = passage.late * step if np.isfinite(passage.late) else None
        return Forecast(passage.likely * step, passage.early * step, high)

    @property
    def cautions(self) -> list[str]:
        """What the data cannot exclude."""
        if self.verdict not in ("leak", "rising"):
            return []
        said = ["may level off"] if self.growth.ends >= MAY_END else []
        short = self.end_at - self.start_at < DAILY_RISE_SECONDS
        said += ["may be a part of the day's course"] if short else []
        return said + (["may be collected"] if short and self.is_young else [])

    @property
    def is_young(self) -> bool:
        """Of a collector's crests: none has cleared more than the others yet."""
        return self.growth.crests and not self.growth.cleared


def study(series: Series) -> StudyAnswer:
    """The newest stretch only: what was before a gap or a restart may have another cause."""
    stretches = [stretch for stretch in split_stretches(series) if is_long_enough(stretch)]
    if not stretches:
        least = f"{FEWEST_SAMPLES} samples in a row over at least {render_seconds(SHORTEST_SECONDS)}"
        return not_enough(NAME, series, f"a trend needs at least {least}.")
    rise = rise_of(stretches[-1], series)
    nothing = f"{capitalise(series.name)} neither rises nor falls."
    return found(NAME, series, [build_finding(rise)] if rise else [], nothing)


def is_long_enough(stretch: Stretch) -> bool:
    # Sixty samples a second apart cover a minute, though the first is 59 s before the last.
    covered_seconds = stretch.span_seconds + stretch.interval_seconds
    return stretch.present >= FEWEST_SAMPLES and covered_seconds >= SHORTEST_SECONDS


def rise_of(stretch: Stretch, series: Series) -> Rise | None:
    values = interpolated(stretch.values)
    if is_flat(values) or moves_in(values) < FEWEST_MOVES:
        return None
    started_at = float(stretch.times_at[0])
    growth = forecast_growth(values, stretch.interval_seconds, series.limit, started_at)
    if max(growth.rises, growth.falls) < LEAST_CHANCE:
        return None
    verdict = verdict_of(growth, values, series, stretch)
    past = OwnPast(0, 0)
    if growth.passage is not None and verdict in ("leak", "rising"):
        past = look_back(values[growth.start :], stretch.interval_seconds, growth)
        growth = widened(growth) if past.is_poor else growth
    return Rise(stretch, series, growth, past, verdict)


def moves_in(values: FloatArray) -> int:
    """Samples that differ from the one before by more than rounding."""
    return int(np.sum(np.abs(np.diff(values)) > ROUNDING_SHARE * float(np.abs(values).max())))


def is_rise(growth: GrowthForecast) -> bool:
    return growth.rises >= LEAST_CHANCE


def verdict_of(growth: GrowthForecast, values: FloatArray, series: Series, stretch: Stretch) -> Verdict:
    if growth.ends >= ENDS:
        return "levels off"
    if growth.falls > growth.rises:
        return "falling"
    if has_fallen(growth, values) or is_below_former(growth, values):
        return "below its former peak"
    span_seconds = (len(values) - growth.start) * stretch.interval_seconds
    return "leak" if can_leak(series) and span_seconds >= LEAK_SECONDS else "rising"


def has_fallen(growth: GrowthForecast, values: FloatArray) -> bool:
    """And is not back where it was."""
    return growth.former_peak is not None and float(values[-1]) < growth.former_peak


def is_below_former(growth: GrowthForecast, values: FloatArray) -> bool:
    """
    Whether it has been higher than it is now: what wanders has, what leaks has not.

    A path that repeats, and a collector's, is lower at its end than at its crests.
    """
    if growth.season is not None or growth.crests:
        return False
    levels, begun = levels_before(growth, values)
    newest, moved = levels[-1], np.ptp(levels)
    if begun and newest <= levels[:begun].max():
        return True
    return bool(newest - levels[0] < GAINED_SHARE * moved and levels.max() - newest > FALLEN_SHARE * moved)


def levels_before(growth: GrowthForecast, values: FloatArray) -> tuple[FloatArray, int]:
    """Medians of stretches up to the end, and how many of them lie before the growth began."""
    path = values[growth.start :]
    size = max(3, min(len(path) // LEVELS, (len(path) - growth.begins) // LEVELS_GROWN))
    # Whole stretches only: a level of a few samples is too high by chance.
    skipped = len(path) % size
    return block_medians(path[skipped:], size), max(0, growth.begins - skipped) // size


def can_leak(series: Series) -> bool:
    """Amounts can leak; rates and shares only rise."""
    unit = series.unit
    flows = unit in FLOWING_UNITS or unit.endswith("/s") or unit.startswith("share")
    return series.kind == "gauge" and not flows


def build_finding(rise: Rise) -> Finding:
    before, after = levels_of(rise)
    return Finding(
        kind=NAME,
        start_at=rise.begins_at,
        end_at=rise.end_at,
        confidence=confidence_of(rise),
        magnitude=after - before,
        unit=rise.stretch.unit,
        before=before,
        after=after,
        sentence=render_sentence(rise),
        measures=measures_of(rise),
        evidence=evidence_of(rise),
    )


def levels_of(rise: Rise) -> tuple[float, float]:
    """Medians of the first and the last twentieth: of samples, not of a fitted line."""
    values = rise.stretch.values[rise.growth.start :]
    values = values[np.isfinite(values)]
    few = max(3, len(values) // 20)
    return float(np.median(values[:few])), float(np.median(values[-few:]))


def confidence_of(rise: Rise) -> float:
    """The chance that it rises (or falls), and that it does as the verdict says."""
    ends = rise.growth.ends
    return measured_share(rise.chance * (ends if rise.verdict == "levels off" else 1.0 - ends))


def measured_share(chance: float) -> float:
    """
    The share of findings of such a chance that are real.

    By the evidence alone it came out too low: of findings with a chance of 0.75 nine in ten were real
    (tools/eval_forecasts.py, half of them leaks).
    """
    return min(MOST_CONFIDENT, float(1.0 - (1.0 - chance) ** (1.0 + TOO_LOW * chance)))


def measures_of(rise: Rise) -> dict[str, Measure]:
    step = rise.stretch.interval_seconds
    forecast, slower = rise.forecast, rise.slower_forecast
    return {
        "slope_per_second": rise.slope_per_second,
        "slope_low": rise.growth.slope_low / step,
        "slope_high": rise.growth.slope_high / step,
        "limit": rise.series.limit,
        "time_to_limit_seconds": forecast.likely,
        "low": forecast.low,
        "high": forecast.high,
        "slower_time_to_limit_seconds": slower.likely,
        "caution": "; ".join(rise.cautions) or None,
        "forecasts_made": rise.past.made,
        "forecasts_held": rise.past.held,
        "verdict": rise.verdict,
    }


def evidence_of(rise: Rise) -> dict[str, Measure]:
    values = interpolated(rise.stretch.values)[rise.growth.start :]
    line = fit_line(np.arange(len(values), dtype=np.float64), values)
    season = rise.growth.season
    return {
        "samples": rise.stretch.present,
        "kendall_z": line.z if line else None,
        "noise": line.noise if line else None,
        "chance": rise.chance,
        "chance_it_ends": rise.growth.ends,
        "season_seconds": season * rise.stretch.interval_seconds if season else None,
        "by_crests": int(rise.growth.crests),
        "span_seconds": rise.end_at - rise.start_at,
    }


# -- the sentence ----------------------------------------------------------------------


def render_sentence(rise: Rise) -> str:
    who, unit = capitalise(rise.series.name), rise.stretch.unit
    pace = render_slope(abs(rise.slope_per_second), unit)
    if rise.verdict == "levels off":
        return f"{who} {'rose' if rise.sign > 0 else 'fell'} by {pace} at its end and is levelling off{render_if_it_goes_on(rise)}."
    if rise.verdict == "below its former peak":
        return f"{who} rises by {pace} since {render_former(rise)} before."
    verb = (
        "rises steadily, as a leak does," if rise.verdict == "leak" else "rises" if rise.sign > 0 else "falls"
    )
    text = f"{who} {verb} by {pace}"
    if rise.verdict == "rising" and can_leak(rise.series):
        text += f" over {render_seconds(rise.end_at - rise.start_at)}, too short to tell a leak from a start"
    return f"{text}{render_forecast(rise)}.{render_cautions(rise)}"


def render_former(rise: Rise) -> str:
    """Since when it rises, and how high it was."""
    growth, unit, values = rise.growth, rise.stretch.unit, interpolated(rise.stretch.values)
    if has_fallen(growth, values):
        peak = render_quantity(growth.former_peak or 0.0, unit)
        return f"it fell at {render_time(rise.start_at)}; it was at {peak}"
    height = render_quantity(float(levels_before(growth, values)[0].max()), unit)
    return f"{render_time(rise.begins_at)}; it was at {height}"


def render_forecast(rise: Rise) -> str:
    forecast = rise.forecast
    if forecast.likely is None:
        return ""
    reached_at = limit_reached_at(rise)
    if reached_at is not None:
        return f"; it has been at its limit since {render_time(reached_at)}"
    reached = render_time(rise.end_at + forecast.likely)
    if forecast.likely < AT_LIMIT_SECONDS:
        return f", up to its limit at {reached}"
    crest = "its crests are" if rise.growth.crests or rise.growth.season else "it is"
    return f"; {crest} expected at its limit in about {render_seconds(forecast.likely)}, at {reached} (90 %: {bounds_of(forecast, rise.stretch.interval_seconds)})"


def limit_reached_at(rise: Rise) -> float | None:
    """Since when all samples are at the limit or above; None where the newest are not, or have only just got there."""
    limit, values = rise.series.limit, interpolated(rise.stretch.values)
    if limit is None or values[-1] < limit:
        return None
    below = np.flatnonzero(values < limit)
    since = float(rise.stretch.times_at[below[-1] + 1]) if len(below) else rise.start_at
    return since if rise.end_at - since > AT_LIMIT_SECONDS else None


def render_cautions(rise: Rise) -> str:
    said = []
    if rise.past.made >= 2 and rise.forecast.likely is not None:
        said.append(f"Of {rise.past.made} such forecasts from its own past, {rise.past.held} held.")
    if "may level off" in rise.cautions:
        said.append(f"It may level off{render_slower(rise)}.")
    if "may be a part of the day's course" in rise.cautions and rise.verdict == "leak":
        seen = render_seconds(rise.end_at - rise.start_at)
        rest = " or a fuller collection to come" if "may be collected" in rise.cautions else ""
        said.append(f"Only {seen} were seen, so a daily rise{rest} is not excluded.")
    return "".join(f" {text}" for text in said)


def render_slower(rise: Rise) -> str:
    slower = rise.slower_forecast
    if rise.series.limit is None or rise.sign < 0:
        return ""
    if slower.likely is None:
        return ", below its limit"
    return f", then its limit is expected in about {render_seconds(slower.likely)}"


def render_if_it_goes_on(rise: Rise) -> str:
    """A growth that levels off may still not end: when the limit would be reached then, as a condition."""
    likely = rise.slower_forecast.likely
    if rise.series.limit is None or rise.sign < 0 or likely is None:
        return render_slower(rise)
    return f"; only if it goes on ever more slowly without an end, its limit is reached in about {render_seconds(likely)}"


def bounds_of(forecast: Forecast, interval_seconds: float) -> str:
    """From when to when; of whole samples, so that one sample alone is uncertain by their distance."""
    low, likely = forecast.low or 0.0, forecast.likely or 0.0
    if forecast.high is None:
        return f"{render_seconds(low)} at the earliest, the latest is open"
    if forecast.high == low:
        return f"give or take {render_seconds(interval_seconds)}"
    return render_seconds_range(low, forecast.high, likely)
