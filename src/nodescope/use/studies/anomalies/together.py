"""
Several metrics of one container at once: is their combination unusual, and which of them made it so?

Each metric is looked at as before, in means, surprises and roughness of pieces; the figures of
all metrics of one piece are one point, and its distance from the usual points (Mahalanobis, with
the correlations of the clean history drawn towards none) is judged by the same bounds. CPU that
rises without requests is seen here although each of them alone is as usual.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nodescope.use.studies.anomalies.prediction import recent_levels, surprises
from nodescope.use.studies.anomalies.recording import Recording, parts_of, told_in
from nodescope.use.studies.anomalies.season import fit_season
from nodescope.use.studies.anomalies.usual import FEWEST_FIGURES, UsualFigures, independent_count
from nodescope.use.studies.anomalies.view import (
    ENOUGH,
    UP,
    PieceView,
    ViewKind,
    piece_means,
    piece_sizes,
    same,
)
from nodescope.use.studies.anomalies.walk import (
    FALSE_ALARMS,
    Alarm,
    Mark,
    NewestFirst,
    join_alarms,
    lasts_long,
    make_mark,
    runs_of,
)
from nodescope.use.studies.maths.robust import NORMAL_MAD
from nodescope.use.studies.maths.tail_probability import TINY
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# A correlation of the history counts for so much; the rest is none, so that two metrics that
# are the same thing do not make every difference between them a sensation.
TRUSTED = 0.99
# A single metric may not weigh more than so many deviations, or it alone would decide.
MOST_DEVIATIONS = 50.0
# The views of all metrics see much the same, so that fewer pieces are tried than there are (bench.anomalies).
TRIED_SHARE = 0.4

# Where the walk begins: with all alarms of several metrics left out, what is left is too calm.
FIRST_SHARE = 1 / 2

LEVELS = ViewKind("level", (4, 16, 64, 256), (), 2, piece_means)
JUMPS = ViewKind("jump", (1,), (), 1, same)
SIZES = ViewKind("size", (16, 64, 256), (), 2, piece_sizes, is_ratio=True)


@dataclass(frozen=True)
class Combined:
    """The distance of every piece, and each metric's part of it."""

    view: PieceView
    parts: FloatArray


def combine(views: Sequence[PieceView], known: BoolArray, rounding: Sequence[float]) -> Combined:
    """By the middle, the deviation and the correlations of the known pieces."""
    figures = np.stack(
        [view.scaled(known, least) for view, least in zip(views, rounding, strict=True)], axis=1
    )
    past = figures[known]
    middle = np.median(past, axis=0)
    scale = np.maximum(np.median(np.abs(past - middle), axis=0) * NORMAL_MAD, past.std(axis=0))
    points = np.clip(
        (figures - middle) / np.maximum(scale, np.array(rounding)), -MOST_DEVIATIONS, MOST_DEVIATIONS
    )
    between = TRUSTED * correlations(np.clip(points[known], -3, 3))
    np.fill_diagonal(between, 1.0)
    parts = points * np.linalg.solve(between, points.T).T
    distance = np.sqrt(np.maximum(parts.sum(axis=1), 0.0))
    return Combined(PieceView(views[0].kind, views[0].length, distance), parts)


def correlations(points: FloatArray) -> FloatArray:
    """Of the columns; 0 where one of them does not move."""
    centred = points - points.mean(axis=0)
    # Sums, because a matrix product would start a thread per core.
    together = np.einsum("ij,ik->jk", centred, centred)
    sizes = np.sqrt(np.maximum(np.diag(together), TINY))
    return np.asarray(together / sizes[:, None] / sizes)


@dataclass
class JointWalk:
    """Of recordings on the same grid, one for each metric."""

    recordings: Sequence[Recording]
    alarms: list[Alarm] = field(default_factory=list)
    shares: dict[int, FloatArray] = field(default_factory=dict)
    """By the first sample of an alarm: how much of the distance each metric made."""

    def judge(self, history: int, end: int) -> None:
        measured = np.all([one.measured for one in self.recordings], axis=0)
        clean = measured.copy()
        for alarm in self.alarms:
            first = (alarm.start + alarm.end) // 2 if lasts_long(alarm) else alarm.end
            clean[alarm.start : first] = False
        views = self.views_until(clean, history, end)
        counted = np.concatenate(([0], np.cumsum(~clean)))
        marks = [
            mark
            for same_kind in views
            for mark in self.judge_views(same_kind, history, end, counted, len(views))
        ]
        found = [Alarm(mark.start, mark.end, mark.seen, (mark,), history) for mark in marks]
        self.alarms = join_alarms([*self.alarms, *found])

    def views_until(self, clean: BoolArray, history: int, end: int) -> list[list[PieceView]]:
        """For each kind and length, the views of all metrics."""
        values = [
            one.values - fit_season(one.times_at, one.values, clean, history).usual for one in self.recordings
        ]
        jumps = [surprises(one[:end], recent_levels(one[:end]), clean, history) for one in values]
        found = []
        for kind, series in ((LEVELS, [one[:end] for one in values]), (JUMPS, jumps), (SIZES, jumps)):
            for length in kind.lengths:
                if length * ENOUGH <= kind.overlap * history:
                    step = max(1, length // kind.overlap)
                    found.append([PieceView(kind, length, kind.measure(one, length, step)) for one in series])
        return found

    def judge_views(
        self, views: list[PieceView], history: int, end: int, counted: IntArray, questions: int
    ) -> list[Mark]:
        view = views[0]
        ends = view.ends()
        first, last = (int(place) for place in np.searchsorted(ends, (history, end), "right"))
        known = np.zeros(len(ends), dtype=bool)
        known[:first] = ~view.spoiled(counted)[:first]
        if first >= last or known.sum() < max(ENOUGH, FEWEST_FIGURES):
            return []
        combined = combine(views, known, [one.rounding for one in self.recordings])
        figures = combined.view.figures
        past = figures[known]
        usual = UsualFigures.fit(past, independent_count(past, view.kind.overlap), view.kind.overlap, 0.0)
        budget = NewestFirst.of(history, view.length, TRIED_SHARE * questions)
        outside = first + np.flatnonzero(figures[first:last] > usual.bound(FALSE_ALARMS / budget.tried))
        return [self.make_mark(combined, usual, run, budget) for run in runs_of(outside, view.step)]

    def make_mark(self, combined: Combined, usual: UsualFigures, run: IntArray, budget: NewestFirst) -> Mark:
        view = combined.view
        mark = make_mark(view, usual, run, view.figures, UP, budget)
        far = run[int(np.argmax(view.figures[run]))]
        parts = np.maximum(combined.parts[far], 0.0)
        self.shares[mark.start] = parts / max(float(parts.sum()), 1e-12)
        return mark

    def shares_of(self, alarm: Alarm) -> FloatArray:
        """Of the mark that is least probable."""
        return self.shares[alarm.strongest.start]


def walk_together(recordings: Sequence[Recording], samples: int) -> tuple[JointWalk, list[Alarm]]:
    """The walk up to the end, and the alarms that reach into the newest samples."""
    walk = JointWalk(recordings)
    count = len(recordings[0])
    for start, end in parts_of(count, FIRST_SHARE * count):
        walk.judge(start, end)
    return walk, told_in(walk.alarms, count, samples)
