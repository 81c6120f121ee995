"""An alarm as a finding: since when, until when, how far from usual, and how unusual that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.anomalies.recording import Recording
from nodescope.use.studies.anomalies.season import NO_SEASON
from nodescope.use.studies.anomalies.together import JointWalk
from nodescope.use.studies.anomalies.walk import (
    FALSE_ALARMS,
    JOINED_SAMPLES,
    Alarm,
    Walk,
    is_peak,
    lasts_long,
)
from nodescope.use.studies.finding import Finding

CERTAIN = 0.999
# A metric that made less of it is not named; nor is a fourth.
LEAST_PART, MOST_PARTS = 0.1, 3
# Of the usual spread: so little is none.
NOTHING = 1e-3


@dataclass(frozen=True)
class AlarmWords:
    """How a kind of alarm is said of what ended, and of what goes on."""

    ended: str
    ongoing: str
    what: str


HIGH = AlarmWords("was unusually high", "has been unusually high", "high")
LOW = AlarmWords("was unusually low", "has been unusually low", "low")
ROUGH = AlarmWords("varied unusually much", "has varied unusually much", "rough")
QUIET = AlarmWords("varied unusually little", "has varied unusually little", "quiet")
NO_PEAKS = AlarmWords("had none of its usual peaks", "has had none of its usual peaks", "no peaks")
NO_DIPS = AlarmWords("had none of its usual dips", "has had none of its usual dips", "no dips")
OF_VIEW = {
    "spread": (ROUGH, QUIET),
    "roughness": (ROUGH, QUIET),
    "highest": (HIGH, NO_PEAKS),
    "lowest": (NO_DIPS, LOW),
}


def words_of(alarm: Alarm) -> AlarmWords:
    up, down = OF_VIEW.get(alarm.strongest.view, (HIGH, LOW))
    return up if alarm.strongest.side > 0 else down


def is_ongoing(walk: Walk, alarm: Alarm) -> bool:
    """Whether what came after its last piece is more like it than like what was usual."""
    after = walk.values[alarm.end :]
    mark = alarm.strongest
    if len(after) <= JOINED_SAMPLES:
        return True
    if mark.view in ("highest", "lowest"):
        return not bool(is_peak(mark, after).any())
    if mark.view in ("spread", "roughness"):
        inside = walk.values[alarm.start : alarm.end]
        size, before, now = (float(np.std(part)) for part in (after, walk.values[: alarm.start], inside))
        return abs(size - now) < abs(size - before)
    return False


def levels_of(recording: Recording, walk: Walk, alarm: Alarm) -> tuple[float, float]:
    """What is usual, and what was there instead, in the unit of the series or of its spread."""
    inside = slice(alarm.start, alarm.end)
    mark = alarm.strongest
    if mark.view in OF_VIEW:
        piece = walk.values[inside]
        usual = float(np.exp(mark.middle)) if mark.view in ("spread", "roughness") else mark.middle
        if mark.view == "roughness":
            return usual, usual * float(np.exp(mark.away))
        if mark.view == "spread":
            return usual, float(np.std(walk.values[mark.start : mark.end]))
        shift = float(np.mean(walk.season.usual[inside]))
        return usual + shift, shift + float(piece.max() if mark.view == "highest" else piece.min())
    clean = walk.clean_samples(alarm.start)[: alarm.start]
    usual = float(np.mean(walk.season.usual[inside])) + float(np.median(walk.values[: alarm.start][clean]))
    now = recording.values[inside]
    return usual, float(now.max() if len(now) <= 3 and mark.side > 0 else np.mean(now))


def build_finding(recording: Recording, walk: Walk, alarm: Alarm, name: str, kind: str) -> Finding:
    mark, words = alarm.strongest, words_of(alarm)
    before, after = levels_of(recording, walk, alarm)
    ongoing = is_ongoing(walk, alarm)
    start_at = float(recording.times_at[alarm.start])
    last = len(recording) if ongoing else alarm.end
    end_at = float(recording.times_at[last - 1])
    chance = alarm.chance_at(len(recording))
    state = ("new usual" if lasts_long(alarm) else "ongoing") if ongoing else "ended"
    return Finding(
        kind=kind,
        start_at=start_at,
        end_at=end_at,
        at=start_at,
        confidence=min(CERTAIN, 1 - chance),
        magnitude=after - before,
        unit=recording.unit,
        before=before,
        after=after,
        sentence=render(
            name,
            words,
            state,
            (start_at, end_at, recording.interval_seconds),
            (before, after),
            recording.unit,
            chance,
            walk.season.compared_with,
        ),
        measures={
            "chance": chance,
            "what": words.what,
            "state": state,
            "told_at": float(recording.times_at[min(alarm.seen, len(recording) - 1)]),
        },
        evidence={
            "history_samples": int(walk.clean_samples(alarm.start)[: alarm.start].sum()),
            "history_pieces": mark.history,
            "piece_samples": mark.length,
            "seen_in": mark.view,
            "compared_with": walk.season.compared_with.removeprefix("the "),
            "stated_false_alarms": FALSE_ALARMS,
        },
    )


def render(
    name: str,
    words: AlarmWords,
    state: str,
    times: tuple[float, float, float],
    levels: tuple[float, float],
    unit: str,
    chance: float,
    compared_with: str,
) -> str:
    (start_at, end_at, interval), (before, after) = times, levels
    long = render_seconds(end_at - start_at + interval)
    when = f"{words.ongoing} since {render_time(start_at)} ({long})"
    if state == "ended":
        when = f"{words.ended} from {render_time(start_at)} on for {long}, until {render_time(end_at)}"
    usual = "was usual before" if compared_with == NO_SEASON else f"is usual at {compared_with}"
    by = "by " if words.what in ("rough", "quiet") else ""
    now = (
        "not at all"
        if words.what == "quiet" and after < NOTHING * before
        else f"{by}{render_quantity(after, unit)}"
    )
    size = f"{now} where {by}{render_quantity(before, unit)} {usual}"
    held = "; it has held for so long that it counts as the new usual" if state == "new usual" else ""
    return f"{capitalise(name)} {when}: {size}{held}; {render_chance(chance)}."


def render_chance(chance: float) -> str:
    """How unusual, in words and as a frequency."""
    if chance < 1e-6:
        return "extremely unusual: by chance less than one window in a million looks so"
    often = f"{1 / chance:,.0f}".replace(",", " ")
    word = "very unusual" if chance < 1e-3 else "unusual"
    return f"{word}: by chance less than one window in {often} looks so"


def build_joint(walk: JointWalk, alarm: Alarm, names: Sequence[str]) -> Finding:
    """Of several metrics together, with those that made it unusual."""
    times_at = walk.recordings[0].times_at
    ongoing = alarm.end + JOINED_SAMPLES >= len(times_at)
    start_at, end_at = float(times_at[alarm.start]), float(times_at[-1 if ongoing else alarm.end - 1])
    shares = sorted(zip(walk.shares_of(alarm), names, strict=True), reverse=True)
    told = [f"{name} ({100 * share:.0f} %)" for share, name in shares if share >= LEAST_PART][:MOST_PARTS]
    when = f"since {render_time(start_at)}"
    if not ongoing:
        when = f"from {render_time(start_at)} until {render_time(end_at)}"
    verb = "have been" if ongoing else "were"
    chance = alarm.chance_at(len(times_at))
    return Finding(
        kind="anomaly",
        start_at=start_at,
        end_at=end_at,
        at=start_at,
        confidence=min(CERTAIN, 1 - chance),
        magnitude=None,
        unit="",
        sentence=(
            f"{capitalise(', '.join(names))} together {verb} unusual {when}, mostly by {' and '.join(told)}; "
            f"{render_chance(chance)}."
        ),
        measures={
            "chance": chance,
            "what": "together",
            "state": "ongoing" if ongoing else "ended",
            "told_at": float(times_at[alarm.seen]),
            **{f"share_of_{name}": float(share) for share, name in shares},
        },
        evidence={
            "history_pieces": alarm.strongest.history,
            "piece_samples": alarm.strongest.length,
            "seen_in": alarm.strongest.view,
            "stated_false_alarms": FALSE_ALARMS,
        },
    )
