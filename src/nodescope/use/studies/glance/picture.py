"""
The word and the clause for a picture, from the most telling feature to the least.

The other studies are asked only as far as needed; "stable" is said where all of
them, and every look of sight.py, found nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nodescope.base.quantity import render_number, render_quantity, render_seconds
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies import anomaly, changepoint, periodicity, trend
from nodescope.use.studies.finding import Finding, StudyAnswer
from nodescope.use.studies.glance.sight import (
    Spikes,
    calm_since,
    count_teeth,
    find_excursion,
    find_spikes,
    find_two_levels,
    has_spectral_peak,
    moves_slowly,
)
from nodescope.use.studies.maths.robust import block_means, is_flat, without_line
from nodescope.use.studies.maths.stretch import interpolated, split_stretches
from nodescope.use.studies.series import FloatArray, Series, ordered

# Fewer samples are told by their figures alone.
FEWEST_SAMPLES = 20

# Four hours of seconds. Longer series are looked at in so many means: slope and level are the same in them,
# and a day costs 0.1 s, not 0.35 s. Periods are looked for in all samples where the spectrum shows one.
MOST_SAMPLES, MEANS = 14_400, 7200
# Anomalies only keep it from saying "stable" here, and cost the most.
MEANS_ANOMALY = 3600

# A spread of more than a tenth of the level is volatile: samples two spreads
# away differ by a fifth.
VOLATILE_SHARE = 0.1

# Findings that are as probably false as true are not told in a summary; they
# do keep it from saying "stable".
LEAST_CONFIDENCE = 0.5

# Steps that leave less than half of what a line leaves are steps.
STEPS_SHARE = 0.5

# A repeat is over when this many cycles in a row are missing.
MISSED_CYCLES = 3.0


@dataclass(frozen=True)
class Picture:
    """One word for machines, and what a person would say."""

    word: str
    clause: str


class Glance:
    """A series with what is seen in it, each looked at once and only when asked for."""

    def __init__(self, series: Series) -> None:
        stretches = split_stretches(series)
        # A limit costs the trend study its forecast, which is not told here.
        self.series = replace(series, limit=None)
        self.unit = stretches[0].unit
        self.times_at = np.concatenate([stretch.times_at for stretch in stretches])
        self.values: FloatArray = np.concatenate([interpolated(stretch.values) for stretch in stretches])

    def render(self, value: float) -> str:
        return render_quantity(value, self.unit)

    def time(self, place: int) -> str:
        return render_time(float(self.times_at[min(place, len(self.times_at) - 1)]))

    @cached_property
    def trend(self) -> StudyAnswer:
        return trend.study(self.thinned)

    @cached_property
    def changes(self) -> StudyAnswer:
        return changepoint.study(self.thinned)

    @cached_property
    def periods(self) -> StudyAnswer:
        """On the thinned series where the spectrum of all samples is that of noise."""
        return periodicity.study(self.series if has_spectral_peak(self.values) else self.thinned)

    @cached_property
    def unusual(self) -> StudyAnswer:
        return anomaly.study(self._thin(MEANS_ANOMALY))

    @cached_property
    def thinned(self) -> Series:
        return self._thin(MEANS)

    def _thin(self, most: int) -> Series:
        """Means of neighbouring samples, where it is long; a counter stays as it is."""
        size = -(-len(self.series.values) // most)
        if len(self.series.values) <= MOST_SAMPLES or self.series.kind == "counter":
            return self.series
        whole = ordered(self.series)
        times_at, values = (block_means(part, size) for part in (whole.times_at, whole.values))
        return replace(whole, times_at=times_at, values=values)

    @property
    def has_findings(self) -> bool:
        answers = (getattr(self, name) for name in ("trend", "periods", "changes", "unusual"))
        return any(answer.findings for answer in answers)


def picture_of(series: Series) -> Picture:
    glance = Glance(series)
    if len(glance.values) < FEWEST_SAMPLES or glance.trend.status == "not_enough_data":
        return Picture("unknown", "trend not known yet")
    if is_flat(glance.values):
        return Picture("stable", "stable")
    seen = (look(glance) for look in LOOKS)
    return next(picture for picture in seen if picture is not None)


# -- the looks, the most telling first -------------------------------------------------


def see_stop(glance: Glance) -> Picture | None:
    place = calm_since(glance.values)
    if place is None:
        return None
    level = glance.render(float(np.median(glance.values[place:])))
    return Picture("stopped", f"moved until {glance.time(place)} and hardly moves since, at {level}")


def see_excursion(glance: Glance) -> Picture | None:
    seen = find_excursion(glance.values)
    if seen is None:
        return None
    verb = "rose" if seen.height > seen.now else "fell"
    when = f"from {glance.time(seen.start)} to {glance.time(seen.end)}"
    return Picture(
        "returned", f"{verb} to {glance.render(seen.height)} {when} and is back at {glance.render(seen.now)}"
    )


def see_stairs(glance: Glance) -> Picture | None:
    """Steps, where they are nearer to the values than a line is."""
    if not glance.trend.findings or not sure_levels(glance):
        return None
    places = np.searchsorted(glance.times_at, [finding.start_at for finding in sure_levels(glance)])
    pieces = np.split(glance.values, np.sort(places))
    left_by_steps = sum(float(np.sum((piece - piece.mean()) ** 2)) for piece in pieces if len(piece))
    left_by_line = float(np.sum(without_line(glance.values) ** 2))
    return see_steps(glance) if left_by_steps < STEPS_SHARE * left_by_line else None


def see_trend(glance: Glance) -> Picture | None:
    finding = next(iter(glance.trend.findings), None)
    if finding is None or not finding.magnitude:
        return None
    word = "increasing" if finding.magnitude > 0 else "decreasing"
    slower = ", levelling off" if finding.measures.get("verdict") == "levels off" else ""
    return Picture(word, f"{word}{slower}, from {render_change(glance, finding)}")


def render_change(glance: Glance, finding: Finding) -> str:
    return f"{glance.render(finding.before or 0.0)} to {glance.render(finding.after or 0.0)}"


def see_teeth(glance: Glance) -> Picture | None:
    teeth = count_teeth(glance.values)
    if not teeth:
        return None
    low, high = np.quantile(glance.values, (0.02, 0.98))
    between = f"{glance.render(float(low))} and {glance.render(float(high))}"
    return Picture(
        "sawtooth", f"climbs and drops again, {teeth} times, between {between}{render_every(glance)}"
    )


def render_every(glance: Glance) -> str:
    period = surest(glance.periods)
    return f", every {render_seconds(period_of(period))}" if period else ""


def surest(answer: StudyAnswer) -> Finding | None:
    sure = (finding for finding in answer.findings if finding.confidence >= LEAST_CONFIDENCE)
    return max(
        sure, key=lambda finding: (finding.end_at - finding.start_at, finding.confidence), default=None
    )


def period_of(finding: Finding) -> float:
    return float(finding.measures.get("period_seconds") or 0.0)


def see_repeat(glance: Glance) -> Picture | None:
    finding = surest(glance.periods)
    if finding is None:
        return None
    every = render_seconds(period_of(finding))
    missed = float(glance.times_at[-1]) - finding.end_at
    if missed > MISSED_CYCLES * period_of(finding):
        return Picture("repeating", f"repeated every {every} until {render_time(finding.end_at)}")
    since = finding.start_at - float(glance.times_at[0]) > MISSED_CYCLES * period_of(finding)
    return Picture(
        "repeating", f"repeats every {every}" + (f" since {render_time(finding.start_at)}" if since else "")
    )


def see_spikes(glance: Glance) -> Picture | None:
    spikes = find_spikes(glance.values)
    if spikes is None or is_level(glance, spikes):
        return None
    usual = glance.render(float(np.median(glance.values)))
    number = len(spikes.starts)
    count = "one spike" if number == 1 else f"{render_number(float(number))} spikes"
    way = "up" if spikes.farthest > float(np.median(glance.values)) else "down"
    clause = f"{usual} but for {count} {way} to {glance.render(spikes.farthest)}"
    return Picture("spiky", f"{clause}, {render_last(glance, number, spikes.end)}")


def is_level(glance: Glance, spikes: Spikes) -> bool:
    """They belong to the newest level, which has none of its own."""
    places = np.sort(np.searchsorted(glance.times_at, [one.start_at for one in sure_levels(glance)]))
    return len(places) > 0 and spikes.end > places[-1] and find_spikes(glance.values[places[-1] :]) is None


def render_last(glance: Glance, number: int, end: int) -> str:
    if end >= len(glance.values):
        return "now" if number == 1 else "the last one now"
    return f"over at {glance.time(end)}" if number == 1 else f"the last one over at {glance.time(end)}"


def see_two_levels(glance: Glance) -> Picture | None:
    seen = find_two_levels(glance.values)
    if seen is None:
        return None
    levels = f"{glance.render(seen.low)} and {glance.render(seen.high)}"
    high = render_number(float(f"{100 * seen.high_share:.2g}"))
    return Picture(
        "bursty", f"switches between {levels}, {seen.switches} times, high for {high} % of the time"
    )


def see_steps(glance: Glance) -> Picture | None:
    sure = sorted(sure_levels(glance), key=lambda finding: finding.start_at)
    if not sure:
        return None
    first, last = sure[0], sure[-1]
    now = render_now(glance, sure)
    if len(sure) == 1:
        verb = "rose" if (last.magnitude or 0) > 0 else "fell"
        return Picture(
            "stepped", f"{verb} from {render_change(glance, last)} at {render_time(last.start_at)}{now}"
        )
    signs = {np.sign(finding.magnitude or 0.0) for finding in sure}
    overall = f"{glance.render(first.before or 0.0)} to {glance.render(last.after or 0.0)}"
    if len(signs) == 1:
        way = "up" if signs == {1.0} else "down"
        return Picture(
            "stepped",
            f"{way} in {len(sure)} steps from {overall}, the last at {render_time(last.start_at)}{now}",
        )
    clause = f"changed its level {len(sure)} times, the last time from {render_change(glance, last)}"
    return Picture("stepped", f"{clause} at {render_time(last.start_at)}{now}")


def render_now(glance: Glance, steps: list[Finding]) -> str:
    """Where the newest samples have left the level of the last step by half of the largest one."""
    now = newest_level(glance.values)
    most = max(abs((one.after or 0.0) - (one.before or 0.0)) for one in steps)
    left = abs(now - (steps[-1].after or 0.0)) > 0.5 * most
    return f", now {glance.render(now)}" if left else ""


def newest_level(values: FloatArray) -> float:
    return float(np.median(values[-max(3, len(values) // 100) :]))


def sure_levels(glance: Glance) -> list[Finding]:
    return [
        finding
        for finding in glance.changes.findings
        if finding.confidence >= LEAST_CONFIDENCE and finding.evidence.get("change") == "level"
    ]


def see_other_change(glance: Glance) -> Picture | None:
    """A change of slope, of noise, of a pattern: by the sentence of its kind."""
    sure = [finding for finding in glance.changes.findings if finding.confidence >= LEAST_CONFIDENCE]
    last = max(sure, key=lambda finding: finding.start_at, default=None)
    if last is None:
        return None
    if last.evidence.get("change") == "slope":
        # "held at 350 MiB from 12:03:20; before, it rose by 360 MiB/h".
        return Picture("changed", last.sentence.removeprefix(capitalise(glance.series.name)).strip(" ."))
    what = "how much it varies" if last.evidence.get("change") == "noise" else "its pattern"
    return Picture("changed", f"changed {what} at {render_time(last.start_at)}")


def see_wandering(glance: Glance) -> Picture | None:
    if not moves_slowly(glance.values) and not glance.has_findings:
        return None
    low, high = np.quantile(glance.values, (0.02, 0.98))
    now = glance.render(newest_level(glance.values))
    between = f"{glance.render(float(low))} and {glance.render(float(high))}"
    return Picture("wandering", f"wanders between {between}, now {now}")


def see_noise(glance: Glance) -> Picture:
    is_volatile = float(glance.values.std()) > VOLATILE_SHARE * abs(float(glance.values.mean()))
    return Picture("volatile", "volatile") if is_volatile else Picture("stable", "stable")


LOOKS: tuple[Callable[[Glance], Picture | None], ...] = (
    see_stop,
    see_excursion,
    see_stairs,
    see_trend,
    see_teeth,
    see_repeat,
    see_spikes,
    see_two_levels,
    see_steps,
    see_other_change,
    see_wandering,
    see_noise,
)
