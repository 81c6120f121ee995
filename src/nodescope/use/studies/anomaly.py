"""
Is the newest stretch of this series unusual against its own history: how much, and since when?

History is the same hour of earlier days where there are at least two of them
and the hour matters, and all that came before otherwise. The stretch is compared
at several lengths, from one sample to its whole, each with as long pieces of
the history; the smallest chance is told, after the price of looking several times.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.base.quantity import render_quantity
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.robust import is_flat, spread
from nodescope.use.studies.maths.segment import Stretch, filled, segments_of
from nodescope.use.studies.maths.tail_chance import Past
from nodescope.use.studies.series import FloatArray, IntArray, Series

NAME = "anomaly"

# One window in a hundred may be called unusual without being so; measured on
# stationary noise by tools/eval_studies.py.
FALSE_ALARMS = 0.01

# The newest tenth is asked about unless the caller names a window.
WINDOW_SHARE = 0.1
FEWEST_HISTORY = 60
FEWEST_PIECES = 10
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0

# The hour of day is used where it takes away a tenth of the deviation: not of the
# robust spread, which an hour in twenty-four does not move.
HOUR_GAIN = 0.9


@dataclass(frozen=True)
class Surprise:
    """The least probable piece of the window: [start, end) in samples, its chance, and its distance."""

    chance: float
    start: int
    end: int
    away: float
    usual: float
    piece: int
    pieces: int


def study(series: Series, window_seconds: float | None = None) -> StudyAnswer:
    """The last window_seconds, or the last tenth, against everything before on this side of a restart."""
    segments = [segment for segment in segments_of(series) if segment.present]
    whole = stitched(segments, series)
    if whole is None:
        return not_enough(NAME, series, "no sample was measured.")
    samples = window_samples(whole, window_seconds)
    if len(whole) - samples < FEWEST_HISTORY or samples < 1:
        reason = f"a history of at least {FEWEST_HISTORY} samples before the window is needed."
        return not_enough(NAME, series, reason)
    finding = finding_in(whole, samples, series.name)
    since = render_time(float(whole.times_at[len(whole) - samples]))
    nothing = f"{capitalise(series.name)} has been as usual since {since}."
    return found(NAME, series, [finding] if finding else [], nothing)


def stitched(segments: list[Stretch], series: Series) -> Stretch | None:
    """All segments since the last restart the caller named, one after the other."""
    newest = max(series.restarts_at, default=-np.inf)
    kept = [segment for segment in segments if segment.times_at[-1] >= newest]
    if not kept:
        return None
    return Stretch(
        np.concatenate([segment.times_at for segment in kept]),
        np.concatenate([filled(segment.values) for segment in kept]),
        kept[0].interval_seconds,
        kept[0].unit,
    )


def window_samples(whole: Stretch, window_seconds: float | None) -> int:
    if window_seconds is None:
        return max(1, int(WINDOW_SHARE * len(whole)))
    return int(np.sum(whole.times_at > whole.times_at[-1] - window_seconds))


def finding_in(whole: Stretch, samples: int, name: str) -> Finding | None:
    history = len(whole) - samples
    usual, by_hour = usual_values(whole, history)
    rest = whole.values - usual
    if is_flat(rest[:history]) and is_flat(rest):
        return None
    surprise = greatest_surprise(rest, history)
    if surprise is None or surprise.chance > FALSE_ALARMS:
        return None
    return described(whole, surprise, usual, by_hour, name, spread(rest[:history]))


def usual_values(whole: Stretch, history: int) -> tuple[FloatArray, bool]:
    """What is usual at each sample; by hour of day where history has two days and the hour matters."""
    past = whole.values[:history]
    plain = np.full(len(whole), float(np.median(past)))
    if (
        whole.times_at[history - 1] - whole.times_at[0] < 2 * DAY_SECONDS
        or whole.interval_seconds > HOUR_SECONDS
    ):
        return plain, False
    hours: IntArray = ((whole.times_at % DAY_SECONDS) // HOUR_SECONDS).astype(np.int64)
    medians = np.array([hour_median(past, hours[:history], hour, plain[0]) for hour in range(24)])
    stepped, drawn = medians[hours], between_hours(whole.times_at, medians)
    # A job at the full hour is a step, the day's load a curve: whichever
    # leaves less in the tail.
    hourly = min(stepped, drawn, key=lambda usual: float(np.quantile(np.abs(past - usual[:history]), 0.99)))
    if float(np.std(past - hourly[:history])) < HOUR_GAIN * float(np.std(past)):
        return hourly, True
    return plain, False


def hour_median(past: FloatArray, hours: IntArray, hour: int, otherwise: float) -> float:
    same = past[hours == hour]
    return float(np.median(same)) if len(same) else otherwise


def between_hours(times_at: FloatArray, medians: FloatArray) -> FloatArray:
    """Hourly medians drawn from half hour to half hour, around midnight too."""
    places = np.arange(-1, 25) + 0.5
    around = np.concatenate(([medians[-1]], medians, [medians[0]]))
    return np.interp((times_at % DAY_SECONDS) / HOUR_SECONDS, places, around)


def greatest_surprise(rest: FloatArray, history: int) -> Surprise | None:
    """The smallest chance over all lengths, each multiplied by what was tried."""
    lengths = piece_lengths(len(rest) - history, history)
    surprises = [surprise_at(rest, history, length) for length in lengths]
    if not surprises:
        return None
    least = min(surprises, key=lambda surprise: surprise.chance)
    return replace(least, chance=min(1.0, least.chance * len(lengths)))


def piece_lengths(window: int, history: int) -> list[int]:
    """1, 4, 16, ... up to the window, while history has enough pieces of that length."""
    lengths = [1]
    while lengths[-1] * 4 <= window and history // (lengths[-1] * 4) >= FEWEST_PIECES:
        lengths.append(lengths[-1] * 4)
    return lengths


def surprise_at(rest: FloatArray, history: int, length: int) -> Surprise:
    past = piece_means(rest[:history][::-1], length)
    now = piece_means(rest[history:], length)
    seen = Past.of(past)
    place = int(np.argmax(np.abs(now - seen.middle)))
    first = first_as_odd(now, seen, place)
    # The chance that any of so many independent pieces is that far out.
    one = min(seen.improbability(float(now[place])), 1 - 1e-12)
    chance = float(-np.expm1(len(now) * np.log1p(-one)))
    return Surprise(
        chance=chance,
        start=history + first * length,
        end=history + (place + 1) * length,
        away=float(now[place] - seen.middle),
        usual=seen.middle,
        piece=length,
        pieces=len(past),
    )


def first_as_odd(now: FloatArray, seen: Past, place: int) -> int:
    """Since when: the first piece on the same side that would have been told by itself."""
    side = np.sign(now[place] - seen.middle)
    for index in np.flatnonzero(side * (now - seen.middle) >= 0.5 * abs(now[place] - seen.middle)):
        if seen.improbability(float(now[index])) * len(now) <= FALSE_ALARMS:
            return int(index)
    return place


def piece_means(values: FloatArray, length: int) -> FloatArray:
    count = max(1, len(values) // length)
    return np.asarray(values[: count * length].reshape(count, -1).mean(axis=1))


def described(
    whole: Stretch, surprise: Surprise, usual: FloatArray, by_hour: bool, name: str, noise: float
) -> Finding:
    place = slice(surprise.start, min(surprise.end, len(whole)))
    start_at = float(whole.times_at[surprise.start])
    before = float(np.mean(usual[place])) + surprise.usual
    after = before + surprise.away
    odds = "a million" if surprise.chance < 1e-6 else f"{1 / surprise.chance:,.0f}".replace(",", " ")
    compared = "the same hour of earlier days" if by_hour else "what was usual before"
    return Finding(
        kind=NAME,
        start_at=start_at,
        end_at=float(whole.times_at[-1]),
        at=start_at,
        confidence=min(0.999, 1 - surprise.chance),
        magnitude=surprise.away,
        unit=whole.unit,
        before=before,
        after=after,
        sentence=(
            f"{capitalise(name)} has been unusual since {render_time(start_at)}: {render_quantity(after, whole.unit)} where "
            f"{render_quantity(before, whole.unit)} is {compared}; less than one window in {odds} looks so by chance."
        ),
        measures={"chance": surprise.chance},
        evidence={
            "history_samples": surprise.start,
            "history_pieces": surprise.pieces,
            "piece_samples": surprise.piece,
            "compared_with": "same hour of earlier days" if by_hour else "all history",
            "distance_in_spreads": abs(surprise.away) / noise if noise > 0 else None,
            "stated_false_alarms": FALSE_ALARMS,
        },
    )
