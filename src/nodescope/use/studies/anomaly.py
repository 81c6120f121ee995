"""
Is the newest part of this series unusual against its own history: since when, until when, and how much?

The newest part is looked at in several views and lengths of piece (anomalies/view.py),
each compared with the clean part of the history: what was unusual before is left out
of it. Where the series, or a longer history that is handed over, has two days or two
weeks, the same hour or the same hour of such a day is what it is compared with.
"""

from collections.abc import Sequence
from dataclasses import replace

from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.anomalies.recording import (
    FEWEST_HISTORY,
    Recording,
    align,
    coarsened,
    record,
    walk_from,
    walk_to_window,
)
from nodescope.use.studies.anomalies.together import walk_together
from nodescope.use.studies.anomalies.told import build_finding, build_joint
from nodescope.use.studies.anomalies.walk import FALSE_ALARMS, WINDOW_SHARE
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.robust import is_flat
from nodescope.use.studies.series import Series

__all__ = ["FALSE_ALARMS", "NAME", "alarms", "study", "study_together"]

NAME = "anomaly"

# Of a longer history, at least so many of its samples are looked at.
FEWEST_COARSE = 4


def study(series: Series, window_seconds: float | None = None, history: Series | None = None) -> StudyAnswer:
    """
    The last window_seconds, or the last tenth, against everything before it since the last restart.

    history is the same metric over a longer time before, in coarser samples; it tells what is
    usual at this hour and on such a day.
    """
    recording = record(series)
    if recording is None:
        return not_enough(NAME, series, "no sample was measured.")
    samples = window_samples(recording, window_seconds)
    found_in = findings_in(recording, samples, series.name)
    longer = join_history(recording, history)
    if longer is not None:
        coarse = max(FEWEST_COARSE, longer.newest_samples(samples * recording.interval_seconds))
        found_in = merge(found_in, findings_in(longer, coarse, series.name))
    if found_in is None:
        reason = f"a history of at least {FEWEST_HISTORY} samples before the window is needed."
        return not_enough(NAME, series, reason)
    since = render_time(float(recording.times_at[len(recording) - samples]))
    return found(NAME, series, found_in, f"{capitalise(series.name)} has been as usual since {since}.")


def window_samples(recording: Recording, window_seconds: float | None) -> int:
    if window_seconds is None:
        return max(1, int(WINDOW_SHARE * len(recording)))
    return max(1, recording.newest_samples(window_seconds))


def join_history(recording: Recording, history: Series | None) -> Recording | None:
    """The longer history with the series after it; None where there is none that is coarser."""
    earlier = record(history) if history is not None else None
    if earlier is None or earlier.interval_seconds < recording.interval_seconds:
        return None
    return coarsened(recording, earlier)


def findings_in(recording: Recording, samples: int, name: str) -> list[Finding] | None:
    """None where the history is too short to tell."""
    if len(recording) - samples < FEWEST_HISTORY:
        return None
    if is_flat(recording.values):
        return []
    walk, told = walk_to_window(recording, samples)
    return [build_finding(recording, walk, alarm, name, NAME) for alarm in told]


def merge(findings: list[Finding] | None, longer: list[Finding] | None) -> list[Finding] | None:
    """What the longer history tells is told where the series itself does not tell it."""
    if findings is None or longer is None:
        return findings if longer is None else longer
    new = [
        one
        for one in longer
        if not any(one.start_at <= other.end_at and other.start_at <= one.end_at for other in findings)
    ]
    return [*findings, *new]


def alarms(series: Series) -> list[Finding]:
    """
    Every alarm of the whole series, as a watch that asks again and again would be told of them.

    `told_at` of each is when it could be told, from nothing that came later.
    """
    recording = record(series)
    if recording is None or len(recording) <= FEWEST_HISTORY or is_flat(recording.values):
        return []
    walk = walk_from(recording)
    return [build_finding(recording, walk, alarm, series.name, NAME) for alarm in walk.alarms]


def study_together(several: Sequence[Series], window_seconds: float | None = None) -> StudyAnswer:
    """The last window_seconds, or the last tenth, of several metrics of one container at once."""
    names = [one.name for one in several]
    joint = replace(several[0], metric=", ".join(one.metric for one in several))
    measured = [recording for one in several if (recording := record(one)) is not None]
    if len(measured) < len(several) or len(several) < 2:
        return not_enough(NAME, joint, "two metrics or more that were measured are needed.")
    recordings = align(measured)
    samples = window_samples(recordings[0], window_seconds)
    if len(recordings[0]) - samples < FEWEST_HISTORY:
        reason = f"a history of at least {FEWEST_HISTORY} samples before the window is needed."
        return not_enough(NAME, joint, reason)
    walk, told = walk_together(recordings, samples)
    since = render_time(float(recordings[0].times_at[-samples]))
    nothing = f"{capitalise(', '.join(names))} together have been as usual since {since}."
    return found(NAME, joint, [build_joint(walk, alarm, names) for alarm in told], nothing)
