"""
Is the newest part of this series unusual against its own history: how much, and since when?

The history is the same hour of earlier days if there are at least two days and
the hour matters, otherwise everything before. The newest part is compared in
pieces of several lengths, from one sample to its whole, with pieces of the same
length of the history. The smallest probability counts, corrected for the number
of lengths tried.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.base.quantity import render_quantity
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.phase_profile import interpolate_cycle
from nodescope.use.studies.maths.robust import block_means, is_flat, robust_deviation
from nodescope.use.studies.maths.stretch import Stretch, interpolated, split_stretches
from nodescope.use.studies.maths.tail_probability import TailModel
from nodescope.use.studies.series import FloatArray, IntArray, Series

NAME = "anomaly"

# One window in a hundred may be called unusual without being so; measured on
# stationary noise by tools/eval_studies.py.
FALSE_ALARMS = 0.01

# The window is the newest tenth unless the caller names one.
WINDOW_SHARE = 0.1
FEWEST_HISTORY = 60
FEWEST_PIECES = 10
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86400.0

# The hour of day is used where it reduces the standard deviation by a tenth; the
# robust deviation does not see one hour in twenty-four.
HOUR_GAIN = 0.9


@dataclass(frozen=True)
class UnusualPiece:
    """The least probable piece of the window: samples [start, end), its probability, its distance from usual."""

    chance: float
    start: int
    end: int
    away: float
    usual: float
    length: int
    history_pieces: int


def study(series: Series, window_seconds: float | None = None) -> StudyAnswer:
    """The last window_seconds, or the last tenth, against everything before it since the last restart."""
    stretches = [stretch for stretch in split_stretches(series) if stretch.present]
    whole = joined_stretches(stretches, series)
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


def joined_stretches(stretches: list[Stretch], series: Series) -> Stretch | None:
    """All stretches since the last restart the caller named, one after the other."""
    newest = max(series.restarts_at, default=-np.inf)
    kept = [stretch for stretch in stretches if stretch.times_at[-1] >= newest]
    if not kept:
        return None
    times_at = np.concatenate([stretch.times_at for stretch in kept])
    values = np.concatenate([interpolated(stretch.values) for stretch in kept])
    return replace(kept[0], times_at=times_at, values=values)


def window_samples(whole: Stretch, window_seconds: float | None) -> int:
    if window_seconds is None:
        return max(1, int(WINDOW_SHARE * len(whole)))
    return int(np.sum(whole.times_at > whole.times_at[-1] - window_seconds))


def finding_in(whole: Stretch, samples: int, name: str) -> Finding | None:
    history = len(whole) - samples
    usual, by_hour = usual_values(whole, history)
    residuals = whole.values - usual
    if is_flat(residuals[:history]) and is_flat(residuals):
        return None
    piece = least_probable_piece(residuals, history)
    if piece is None or piece.chance > FALSE_ALARMS:
        return None
    return build_finding(whole, piece, usual, by_hour, name, robust_deviation(residuals[:history]))


def usual_values(whole: Stretch, history: int) -> tuple[FloatArray, bool]:
    """What is usual at each sample; by hour of day where history has two days and the hour matters."""
    past = whole.values[:history]
    plain = np.full(len(whole), float(np.median(past)))
    history_seconds = whole.times_at[history - 1] - whole.times_at[0]
    if history_seconds < 2 * DAY_SECONDS or whole.interval_seconds > HOUR_SECONDS:
        return plain, False
    hours: IntArray = ((whole.times_at % DAY_SECONDS) // HOUR_SECONDS).astype(np.int64)
    medians = np.array([hour_median(past, hours[:history], hour, plain[0]) for hour in range(24)])
    stepped = medians[hours]
    drawn = interpolate_cycle((whole.times_at % DAY_SECONDS) / HOUR_SECONDS, medians)
    # A job at the full hour is a step, the load of a day a curve: the one with
    # the smaller tail of residuals is used.
    hourly = min(stepped, drawn, key=lambda usual: float(np.quantile(np.abs(past - usual[:history]), 0.99)))
    if float(np.std(past - hourly[:history])) < HOUR_GAIN * float(np.std(past)):
        return hourly, True
    return plain, False


def hour_median(past: FloatArray, hours: IntArray, hour: int, otherwise: float) -> float:
    same = past[hours == hour]
    return float(np.median(same)) if len(same) else otherwise


def least_probable_piece(residuals: FloatArray, history: int) -> UnusualPiece | None:
    """The smallest probability over all lengths, multiplied by the number of lengths."""
    lengths = piece_lengths(len(residuals) - history, history)
    pieces = [compare_pieces(residuals, history, length) for length in lengths]
    if not pieces:
        return None
    least = min(pieces, key=lambda piece: piece.chance)
    return replace(least, chance=min(1.0, least.chance * len(lengths)))


def piece_lengths(window: int, history: int) -> list[int]:
    """1, 4, 16, ... up to the window, while history has enough pieces of that length."""
    lengths = [1]
    while lengths[-1] * 4 <= window and history // (lengths[-1] * 4) >= FEWEST_PIECES:
        lengths.append(lengths[-1] * 4)
    return lengths


def compare_pieces(residuals: FloatArray, history: int, length: int) -> UnusualPiece:
    past = block_means(residuals[:history][::-1], length)
    now = block_means(residuals[history:], length)
    history_tail = TailModel.fit(past)
    place = int(np.argmax(np.abs(now - history_tail.middle)))
    first = first_unusual(now, history_tail, place)
    # The probability that any of so many independent pieces is that extreme.
    one = min(history_tail.probability_beyond(float(now[place])), 1 - 1e-12)
    chance = float(-np.expm1(len(now) * np.log1p(-one)))
    return UnusualPiece(
        chance=chance,
        start=history + first * length,
        end=history + (place + 1) * length,
        away=float(now[place] - history_tail.middle),
        usual=history_tail.middle,
        length=length,
        history_pieces=len(past),
    )


def first_unusual(now: FloatArray, history_tail: TailModel, place: int) -> int:
    """Since when: the first piece on the same side that would be a finding by itself."""
    away = now - history_tail.middle
    for index in np.flatnonzero(np.sign(away[place]) * away >= 0.5 * abs(away[place])):
        if history_tail.probability_beyond(float(now[index])) * len(now) <= FALSE_ALARMS:
            return int(index)
    return place


def build_finding(
    whole: Stretch, piece: UnusualPiece, usual: FloatArray, by_hour: bool, name: str, noise: float
) -> Finding:
    place = slice(piece.start, min(piece.end, len(whole)))
    start_at = float(whole.times_at[piece.start])
    before = float(np.mean(usual[place])) + piece.usual
    after = before + piece.away
    odds = "a million" if piece.chance < 1e-6 else f"{1 / piece.chance:,.0f}".replace(",", " ")
    compared = "the same hour of earlier days" if by_hour else "what was usual before"
    return Finding(
        kind=NAME,
        start_at=start_at,
        end_at=float(whole.times_at[-1]),
        at=start_at,
        confidence=min(0.999, 1 - piece.chance),
        magnitude=piece.away,
        unit=whole.unit,
        before=before,
        after=after,
        sentence=(
            f"{capitalise(name)} has been unusual since {render_time(start_at)}: {render_quantity(after, whole.unit)} where "
            f"{render_quantity(before, whole.unit)} is {compared}; less than one window in {odds} looks so by chance."
        ),
        measures={"chance": piece.chance},
        evidence={
            "history_samples": piece.start,
            "history_pieces": piece.history_pieces,
            "piece_samples": piece.length,
            "compared_with": "same hour of earlier days" if by_hour else "all history",
            "distance_in_spreads": abs(piece.away) / noise if noise > 0 else None,
            "stated_false_alarms": FALSE_ALARMS,
        },
    )
