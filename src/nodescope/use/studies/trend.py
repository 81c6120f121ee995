"""Is this series rising or falling for good, is that a leak, and when does it reach its limit?"""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from nodescope.base.quantity import render_seconds, render_slope
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.robust import is_flat
from nodescope.use.studies.maths.stretch import Stretch, split_stretches
from nodescope.use.studies.maths.trend_line import NORMAL_90, TrendLine, fit_line
from nodescope.use.studies.series import FloatArray, Series

NAME = "trend"

FEWEST_SAMPLES = 20

# And a minute: within seconds, every start is a rise and every end is a fall.
SHORTEST_SECONDS = 60.0

# Warming up takes minutes: a rise over less than five of them may be a start and
# is reported as rising, not as a leak. The shortest leak of the evaluation
# (tools/eval_studies.py) takes ten.
LEAK_SECONDS = 300.0

# A trend is reported when Kendall's z is beyond 3.3: one false trend in a
# thousand series of noise.
LEAST_Z = 3.3

# Or when nine in ten pairs of buckets agree: a smooth curve is so autocorrelated
# that its z value stays low.
NEARLY_ALWAYS = 0.9

# And when it moved the value, over the whole stretch, by as much as its noise.
LEAST_RISE = 1.0

# A leak still grows at the end: the last third's slope is at least half of
# the first two thirds'. A cache that fills levels off long before.
STILL_GROWING = 0.5

# Rates and shares do not accumulate.
FLOWING_UNITS = frozenset({"cores", "millicores", "ratio", "percent", "celsius", "watts", "hertz"})

# Beyond ten times the time that was observed, a straight line is no forecast.
FARTHEST = 10.0

# Nearer than this the limit is where the rise ended, as with an OOM kill:
# nobody can act any more.
AT_LIMIT_SECONDS = 10.0


@dataclass(frozen=True)
class Forecast:
    """Seconds from the last sample until the limit; None where the data do not allow a forecast."""

    likely: float | None
    low: float | None
    high: float | None


NO_FORECAST = Forecast(None, None, None)


def study(series: Series) -> StudyAnswer:
    """The newest stretch only: what was before a gap or a restart may have another cause."""
    stretches = [stretch for stretch in split_stretches(series) if is_long_enough(stretch)]
    if not stretches:
        least = f"{FEWEST_SAMPLES} samples in a row over at least {render_seconds(SHORTEST_SECONDS)}"
        return not_enough(NAME, series, f"a trend needs at least {least}.")
    finding = finding_in(stretches[-1], series)
    nothing = f"{capitalise(series.name)} neither rises nor falls."
    return found(NAME, series, [finding] if finding else [], nothing)


def is_long_enough(stretch: Stretch) -> bool:
    # Sixty samples a second apart cover a minute, though the first is 59 s before the last.
    covered_seconds = stretch.span_seconds + stretch.interval_seconds
    return stretch.present >= FEWEST_SAMPLES and covered_seconds >= SHORTEST_SECONDS


def finding_in(stretch: Stretch, series: Series) -> Finding | None:
    held = np.isfinite(stretch.values)
    values = stretch.values[held]
    times = stretch.times_at[held] - stretch.times_at[0]
    if is_flat(values):
        return None
    line = fit_line(times, values)
    if line is None or not is_trend(line, float(times[-1])):
        return None
    early, late = early_and_late(times, values)
    verdict = verdict_of(line, early, late, series, stretch.span_seconds)
    newest = late if late and early and is_faster(late, early, times) else line
    forecast = NO_FORECAST if verdict == "levels off" else forecast_of(newest, float(times[-1]), series.limit)
    return build_finding(stretch, series, newest, forecast, verdict)


def is_trend(line: TrendLine, span_seconds: float) -> bool:
    sure = abs(line.z) >= LEAST_Z or abs(line.tau) >= NEARLY_ALWAYS
    return sure and line.low * line.high > 0 and abs(line.slope) * span_seconds >= LEAST_RISE * line.noise


def early_and_late(times: FloatArray, values: FloatArray) -> tuple[TrendLine | None, TrendLine | None]:
    """A line through the first two thirds and one through the last."""
    middle = len(values) * 2 // 3
    return fit_line(times[:middle], values[:middle]), fit_line(times[middle:], values[middle:])


def is_faster(late: TrendLine, early: TrendLine, times: FloatArray) -> bool:
    """The last third grows more than twice as fast as before: then it alone makes the forecast."""
    if early.slope * late.slope > 0 and abs(late.slope) <= 2 * abs(early.slope):
        return False
    return late.low > max(early.high, 0.0) and is_trend(late, float(times[-1]) / 3)


def verdict_of(
    line: TrendLine, early: TrendLine | None, late: TrendLine | None, series: Series, span_seconds: float
) -> str:
    if early and late and late.slope / line.slope < STILL_GROWING * early.slope / line.slope:
        return "levels off"
    if line.slope < 0:
        return "falling"
    return "leak" if can_leak(series) and span_seconds >= LEAK_SECONDS else "rising"


def can_leak(series: Series) -> bool:
    """Amounts can leak; rates and shares only rise."""
    unit = series.unit
    flows = unit in FLOWING_UNITS or unit.endswith("/s") or unit.startswith("share")
    return series.kind == "gauge" and not flows


def forecast_of(line: TrendLine, now: float, limit: float | None) -> Forecast:
    """
    When the line meets the limit, with Fieller's 90 % interval.

    The bounds are the times at which the limit leaves the band
    line(t) -+ 1.645 * sqrt(level_error^2 + slope_error^2 * (t - middle)^2).
    """
    if limit is None or (limit - line.at(now)) * line.slope <= 0:
        return NO_FORECAST
    distance = limit - line.level
    likely = distance / line.slope
    reach = ((line.high - line.low) / 2) ** 2
    a = line.slope**2 - reach
    b = -2 * distance * line.slope
    c = distance**2 - (NORMAL_90 * line.level_error) ** 2
    root = sqrt(max(b * b - 4 * a * c, 0.0))
    low = (-b - root) / (2 * a) if a > 0 else 2 * c / (-b + root)
    high = (-b + root) / (2 * a) if a > 0 else None
    offset = line.middle - now
    bounds = [None if time is None else max(0.0, time + offset) for time in (likely, low, high)]
    if bounds[0] is not None and bounds[0] > FARTHEST * now:
        return NO_FORECAST
    return Forecast(*bounds)


def build_finding(
    stretch: Stretch, series: Series, line: TrendLine, forecast: Forecast, verdict: str
) -> Finding:
    start_at, end_at = float(stretch.times_at[0]), float(stretch.times_at[-1])
    span_seconds = end_at - start_at
    before, after = line.at(0.0), line.at(span_seconds)
    return Finding(
        kind=NAME,
        start_at=start_at,
        end_at=end_at,
        confidence=min(0.999, max(erf(abs(line.z) / sqrt(2)), abs(line.tau))),
        magnitude=after - before,
        unit=stretch.unit,
        before=before,
        after=after,
        sentence=render_sentence(line, forecast, verdict, (start_at, end_at), series, stretch.unit),
        measures={
            "slope_per_second": line.slope,
            "slope_low": line.low,
            "slope_high": line.high,
            "limit": series.limit,
            "time_to_limit_seconds": forecast.likely,
            "low": forecast.low,
            "high": forecast.high,
            "verdict": verdict,
        },
        evidence={
            "samples": stretch.present,
            "kendall_z": line.z,
            "kendall_tau": line.tau,
            "noise": line.noise,
            "buckets": line.buckets,
            "span_seconds": span_seconds,
        },
    )


def render_sentence(
    line: TrendLine, forecast: Forecast, verdict: str, span_at: tuple[float, float], series: Series, unit: str
) -> str:
    start_at, end_at = span_at
    who = capitalise(series.name)
    pace = render_slope(abs(line.slope), unit)
    if verdict == "levels off":
        return f"{who} {'rose' if line.slope > 0 else 'fell'} by {pace} and is levelling off."
    verb = "rises steadily, as a leak does," if verdict == "leak" else "rises" if line.slope > 0 else "falls"
    text = f"{who} {verb} by {pace}"
    if verdict == "rising" and can_leak(series):
        text += f" over {render_seconds(end_at - start_at)}, too short to tell a leak from a start"
    if forecast.likely is None:
        return text + "."
    reached = render_time(end_at + forecast.likely)
    if forecast.likely < AT_LIMIT_SECONDS:
        return text + f", up to its limit at {reached}."
    text += f" and reaches its limit in about {render_seconds(forecast.likely)}, at {reached}"
    return text + f" (90 %: {bounds_of(forecast)})."


def bounds_of(forecast: Forecast) -> str:
    """From when to when; a margin where both ends are written alike."""
    low, likely = forecast.low or 0.0, forecast.likely or 0.0
    if forecast.high is None:
        return f"{render_seconds(low)} to open"
    if render_seconds(low) == render_seconds(forecast.high):
        return f"give or take {render_seconds(max(likely - low, forecast.high - likely))}"
    return f"{render_seconds(low)} to {render_seconds(forecast.high)}"
