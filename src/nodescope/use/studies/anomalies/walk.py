"""
A walk through a series that raises alarms: each part is judged by the clean part of everything before it.

What raised an alarm is no history: it is left out when the next part is judged. Two
things end that. A state that holds for a tenth of the history before it is the new
usual. And what has come twice may come again.

How far out a piece must be does not depend on when the series ends, so that whoever asks
again an hour later finds the same alarms with the same starts. What does depend on it is
which of them are told: the newest pieces have the largest share of the false alarms that
are allowed, and an older one less with the cube of its age.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nodescope.use.studies.anomalies.prediction import recent_levels, surprises
from nodescope.use.studies.anomalies.season import NO_SEASON, CalendarUsual, fit_season
from nodescope.use.studies.anomalies.usual import (
    FEWEST_FIGURES,
    UsualFigures,
    independent_count,
    smallest_step,
)
from nodescope.use.studies.anomalies.view import DOWN, OF_SURPRISES, OF_VALUES, PieceView, views_of
from nodescope.use.studies.maths.robust import ROUNDING_SHARE
from nodescope.use.studies.maths.tail_probability import TINY
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# One window in a hundred, each the newest tenth, may have an alarm without being unusual; measured
# on stationary noise by bench/anomalies.py. The views see much the same: the sum of
# their chances is three times the chance that any of them tells.
FALSE_ALARMS = 0.01
TOLD_AGAIN = 3.0
WINDOW_SHARE = 0.1

# Pieces that ended within this share of the window, or within their own length, count as the newest.
NEW_SHARE = 1 / 32

# An older piece must be rarer, by its age to this power. The square would share out all false alarms that
# are allowed; but what is so rare is known from a tail drawn on far beyond what was seen, and is seen
# too often where that tail is heavy.
AGE_POWER = 3

# What lasts for so long, as a share of the history before it and in samples, is the new usual.
NEW_USUAL_SHARE, NEW_USUAL_SAMPLES = 0.1, 60

# Pulses have stopped when the wait for one is so many times the longest before.
LONGER_WAIT = 1.5

# Two alarms are alike if one is at most so many times the other, and so many times as long; a sudden one
# shows in so few samples.
ALIKE, ALIKE_LONG, SUDDEN = 2.0, 8, 4
TWICE = 2

# A window shorter than a piece sees its end rarely.
RARE = 0.25

# The views of how high or low it is.
OF_LEVEL = ("surprise", "mean", "floor", "ceiling")

# The views of what a sample differs from its prediction by.
SURPRISED = ("surprise", "roughness")

# What is unusual within a piece is found by its mean, from which the next look begins.
LOOKS = 3

# The logarithm of a twentieth: less than that of the usual spread is left.
NOISE_GONE = -3.0

# Of a long piece, one sample in so many must be left to tell something by itself.
FEWEST_LEFT = 8

# The season is fitted anew where the history is longer by a tenth.
REFIT = 1.1

# Marks that follow each other within so many samples are one alarm.
JOINED_SAMPLES = 10


@dataclass(frozen=True)
class NewestFirst:
    """
    How the false alarms of a window are shared among its pieces.

    fresh   a piece that ended so many samples ago has an eighth of the share of the newest
    tried   as many newest pieces have as much as all pieces of the window together
    """

    fresh: float
    tried: float

    @classmethod
    def of(cls, history: int, length: int, questions: float) -> "NewestFirst":
        window = WINDOW_SHARE * history
        fresh = max(float(length), NEW_SHARE * window)
        return cls(fresh, questions * max(RARE, fresh / length * window / (window + fresh)))


@dataclass(frozen=True)
class Mark:
    """
    Pieces of one view, one after the other, that were out of what was usual.

    piece, seen  the first and the last sample of the first piece; with the last it could be told
    last         the end of the last piece
    start, end   the samples that are unusual, [start, end)
    rare         the rarest piece and the last one: the chance that a usual window has such a newest piece, and
                 where the piece ends; fresh is for how many samples it counts as new
    first, away, final, least
                 how far out the first piece is, the farthest, the last and the nearest, in the view's own figures;
                 middle is what was usual
    history      how many pieces they were compared with
    """

    view: str
    length: int
    piece: int
    seen: int
    last: int
    start: int
    end: int
    side: float
    rare: tuple[tuple[float, int], ...]
    fresh: float
    middle: float
    first: float
    away: float
    final: float
    least: float
    history: int

    @property
    def chance(self) -> float:
        """That the newest piece of a usual window looks so."""
        return min(chance for chance, _ in self.rare)

    def chance_at(self, end: int) -> float:
        """That a usual window up to this sample has such a piece: of the older ones, fewer are told."""
        return min(
            1.0,
            *(chance * (1 + max(end - last, 0) / self.fresh) ** AGE_POWER for chance, last in self.rare),
        )

    @property
    def is_noise_gone(self) -> bool:
        return self.view in ("spread", "roughness") and self.away < NOISE_GONE


@dataclass(frozen=True)
class Alarm:
    """Marks that belong together, and longer ones that they explain; part is the first sample of the newest part they were seen in."""

    start: int
    end: int
    seen: int
    marks: tuple[Mark, ...]
    part: int
    explained: tuple[Mark, ...] = ()

    @cached_property
    def strongest(self) -> Mark:
        """That the noise is gone says more than that the value stays high or low."""
        gone = [mark for mark in (*self.marks, *self.explained) if mark.is_noise_gone]
        return min(gone or self.marks, key=lambda mark: (mark.chance, mark.length))

    def chance_at(self, end: int) -> float:
        """That a usual window up to this sample has something so unusual in it."""
        return min(mark.chance_at(end) for mark in (*self.marks, *self.explained))

    def is_alike(self, other: "Alarm") -> bool:
        mine, others = self.strongest, other.strongest
        sizes = sorted((abs(mine.away), abs(others.away)))
        longs = sorted((self.end - self.start, other.end - other.start))
        is_same = (mine.view, mine.side, mine.length) == (others.view, others.side, others.length)
        return is_same and sizes[1] <= ALIKE * sizes[0] and longs[1] <= ALIKE_LONG * longs[0]


@dataclass
class Walk:
    """Of raw values; measured says which of them are not interpolated."""

    times_at: FloatArray
    raw: FloatArray
    measured: BoolArray
    values: FloatArray = field(init=False)
    """Without their season."""
    season: CalendarUsual = field(init=False)
    fitted: int = 0
    alarms: list[Alarm] = field(default_factory=list)
    views: list[PieceView] = field(default_factory=list)
    levels: FloatArray = field(default_factory=lambda: np.empty(0))
    missing: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """Of the first i samples, so many are."""
    quantum: float = 0.0
    rounding: float = TINY

    def judge(self, history: int, end: int) -> None:
        """Adds the alarms among the pieces that end in (history, end]."""
        clean = self.clean_samples(history)
        self.prepare(clean, history)
        surprise = surprises(self.values[:end], self.levels[:end], clean, history)
        longest = history // FEWEST_FIGURES
        views = [view for view in self.views if view.length <= longest]
        views += views_of(surprise, OF_SURPRISES, longest)
        counted = np.concatenate(([0], np.cumsum(~clean)))
        questions = sum(len(view.kind.sides) for view in views) / TOLD_AGAIN
        marks = [mark for view in views for mark in self.judge_view(view, history, end, questions, counted)]
        located = [
            locate(mark, self.values, surprise)
            for mark in marks
            if self.is_longest_wait(mark, clean, history)
        ]
        settled = [alarm for alarm in self.alarms if lasts_long(alarm) and usual_from(alarm) <= history]
        found = join_marks(located, self.values, surprise, self.covered_samples(), settled, history)
        self.alarms = without_repeats(join_alarms([*self.alarms, *found]))

    def prepare(self, clean: BoolArray, history: int) -> None:
        """The season and the views; anew where the history has grown by a tenth and the season with it."""
        if self.fitted and history < REFIT * self.fitted:
            return
        self.fitted = history
        self.missing = np.concatenate(([0], np.cumsum(~self.measured)))
        self.rounding = max(ROUNDING_SHARE * float(np.abs(self.raw[:history]).max()), TINY)
        self.quantum = smallest_step(self.raw[:history])
        season = fit_season(self.times_at, self.raw, clean, history)
        if self.views and season.compared_with == self.season.compared_with == NO_SEASON:
            return
        before = self.values if self.views else self.raw - season.usual
        self.season = season
        self.values = self.raw - season.usual
        self.alarms = [one for one in self.alarms if not is_seasonal(one, before, self.values)]
        self.views = list(views_of(self.values, OF_VALUES, len(self.values)))
        self.levels = recent_levels(self.values)

    def is_longest_wait(self, mark: Mark, clean: BoolArray, history: int) -> bool:
        """Pulses have stopped when the wait is longer by half than every wait before; of other marks always."""
        if mark.view not in ("highest", "lowest"):
            return True
        beyond = is_peak(mark, self.values)
        before = np.flatnonzero(beyond[:history] | ~clean[:history])
        waits = np.diff(np.concatenate(([-1], before)))
        last = np.flatnonzero(beyond[: mark.end])
        wait = mark.end - (int(last[-1]) if len(last) else 0)
        return wait > LONGER_WAIT * float(waits.max(initial=0))

    def clean_samples(self, history: int) -> BoolArray:
        """Measured, and not in an alarm that is still unusual."""
        clean = self.measured.copy()
        for alarm in self.alarms:
            if lasts_long(alarm):
                # What holds in its second half is the new usual; the way there is not.
                clean[alarm.start : (alarm.start + alarm.end) // 2] = False
            elif not self.is_usual_by_now(alarm, history):
                clean[alarm.start : alarm.end] = False
        return clean

    def covered_samples(self) -> BoolArray:
        covered = np.zeros(len(self.raw), dtype=bool)
        for alarm in self.alarms:
            covered[alarm.start : alarm.end] = True
        return covered

    def is_usual_by_now(self, alarm: Alarm, history: int) -> bool:
        return any(
            alarm.is_alike(other) for other in self.alarms if other.part != alarm.part and other.end < history
        )

    def judge_view(
        self,
        view: PieceView,
        history: int,
        end: int,
        questions: float,
        counted: IntArray,
    ) -> list[Mark]:
        ends = view.ends()
        first, last = (int(place) for place in np.searchsorted(ends, (history, end), "right"))
        known = np.zeros(len(ends), dtype=bool)
        known[:first] = ~view.spoiled(counted)[:first]
        if first >= last or known.sum() < FEWEST_FIGURES:
            return []
        figures = view.scaled(known, self.rounding)
        past, now = figures[known], figures[first:last]
        is_seen = ~view.spoiled(self.missing)[first:last]
        independent = independent_count(past, view.kind.overlap)
        budget = NewestFirst.of(history, view.length, questions)
        quantum = 0.0 if view.kind.is_ratio else self.rounding
        if view.kind.name not in ("mean", "spread", "roughness"):
            quantum += self.quantum
        marks = []
        for side in (side for side, fewest in view.kind.sides if len(past) >= fewest):
            usual = UsualFigures.fit(side * past, independent, view.kind.overlap, quantum)
            outside = first + np.flatnonzero(
                is_seen & (side * now > usual.bound(FALSE_ALARMS / budget.tried))
            )
            marks += [
                make_mark(view, usual, run, side * figures, side, budget)
                for run in runs_of(outside, view.step)
            ]
        return marks


def is_seasonal(alarm: Alarm, before: FloatArray, values: FloatArray) -> bool:
    """The season that is known by now explains it: it is nearer than half of what it was."""
    inside = slice(alarm.start, alarm.end)
    is_level = alarm.strongest.view in OF_LEVEL
    return is_level and abs(float(np.mean(values[inside]))) < 0.5 * abs(float(np.mean(before[inside])))


def lasts_long(alarm: Alarm) -> bool:
    return alarm.end >= usual_from(alarm)


def usual_from(alarm: Alarm) -> float:
    """If it still lasts at this sample, it is the new usual."""
    return alarm.start + max(NEW_USUAL_SAMPLES, NEW_USUAL_SHARE * alarm.start)


def runs_of(places: IntArray, step: int) -> list[IntArray]:
    """Pieces, of which one begins every step samples, that follow each other within a few samples."""
    apart = max(1, JOINED_SAMPLES // step)
    return [run for run in np.split(places, np.flatnonzero(np.diff(places) > apart) + 1) if len(run)]


def make_mark(
    view: PieceView, usual: UsualFigures, run: IntArray, figures: FloatArray, side: float, budget: NewestFirst
) -> Mark:
    away = figures[run] - usual.middle
    ends = run * view.step + view.length
    rarest = int(np.argmax(away))
    piece = int(run[0]) * view.step
    return Mark(
        view=view.kind.name,
        length=view.length,
        piece=piece,
        seen=piece + view.length - 1,
        last=int(ends[-1]),
        start=piece,
        end=int(ends[-1]),
        side=side,
        rare=tuple(
            (min(1.0, budget.tried * usual.chance(float(figures[run[place]]))), int(ends[place]))
            for place in (rarest, -1)
        ),
        fresh=budget.fresh,
        middle=side * usual.middle,
        first=side * float(away[0]),
        away=side * float(away[rarest]),
        final=side * float(away[-1]),
        least=side * float(away.min()),
        history=usual.count,
    )


def locate(mark: Mark, values: FloatArray, surprise: FloatArray) -> Mark:
    """The mark with the start and the end of what is unusual: within its first piece, and within its last."""
    if mark.view in ("highest", "lowest"):
        return since_last_peak(mark, values)
    if mark.length == 1:
        return mark
    first, last = slice(mark.piece, mark.piece + mark.length), slice(mark.last - mark.length, mark.last)
    seen = surprise if mark.view in SURPRISED else values
    start = mark.piece + inside_piece(mark, seen[first], mark.first)[0]
    end = mark.last - mark.length + inside_piece(mark, seen[last], mark.final)[1]
    # Of two pieces that overlap, each may put it elsewhere: then it is what lies between.
    return replace(mark, start=min(start, end), end=max(start, end, min(start, end) + 1))


def inside_piece(mark: Mark, piece: FloatArray, away: float) -> tuple[int, int]:
    """The unusual samples [start, end) of a piece whose figure is so far away."""
    if mark.view == "mean":
        return densest(mark.side * (piece - mark.middle), abs(away))
    if mark.view in ("floor", "ceiling"):
        reach = 2 * abs(away)
        return densest(np.clip(mark.side * (piece - mark.middle), -reach, reach), abs(away))
    sizes = np.abs(piece if mark.view == "roughness" else piece - np.median(piece))
    if mark.side == DOWN:
        # How quiet it becomes shows in its quietest piece.
        away = mark.away
    return largest_sum(mark.side * (sizes - np.exp(mark.middle + 0.5 * away)))


def densest(excess: FloatArray, away: float) -> tuple[int, int]:
    """Where most of the excess is: the samples whose sum above half of their own mean is the largest."""
    start, end = 0, len(excess)
    for _ in range(LOOKS):
        start, end = largest_sum(excess - 0.5 * away)
        away = float(np.mean(excess[start:end]))
    return start, end


def largest_sum(values: FloatArray) -> tuple[int, int]:
    """The samples [start, end) with the largest sum."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    lowest = np.minimum.accumulate(sums)[:-1]
    end = int(np.argmax(sums[1:] - lowest)) + 1
    return int(np.argmin(sums[:end])), end


def since_last_peak(mark: Mark, values: FloatArray) -> Mark:
    peaks = np.flatnonzero(is_peak(mark, values[: mark.piece]))
    return replace(mark, start=int(peaks[-1]) + 1 if len(peaks) else mark.piece)


def is_peak(mark: Mark, values: FloatArray) -> BoolArray:
    """Beyond the middle between the usual peak and what is there instead."""
    return np.asarray(mark.side * (values - mark.middle - 0.5 * mark.away) < 0)


def join_marks(
    marks: Iterable[Mark],
    values: FloatArray,
    surprise: FloatArray,
    covered: BoolArray,
    settled: list[Alarm],
    part: int,
) -> list[Alarm]:
    """
    Alarms from marks of all lengths.

    Where a long piece is out of the usual only because of a short one in it, the short one says
    from when to when, and the long one only counts as evidence. What earlier alarms cover counts
    as such, too. Settled are the earlier ones that are the new usual by now.
    """
    decisive, other = [], []
    for mark in sorted(marks, key=lambda one: (one.length, one.view not in ("highest", "lowest"))):
        if is_explained(mark, values, surprise, covered):
            other.append(mark)
        else:
            decisive.append(mark)
            covered[mark.start : mark.end] = True
    alarms = join_alarms(
        [Alarm(mark.start, mark.end, mark.seen, (mark,), part) for mark in decisive], settled
    )
    return [with_evidence(alarm, other) for alarm in join_bridged(alarms, other, settled)]


def is_explained(mark: Mark, values: FloatArray, surprise: FloatArray, covered: BoolArray) -> bool:
    """Without the covered samples it would be less than half as far out."""
    inside = covered[mark.start : mark.end]
    if not inside.any() or mark.view in ("highest", "lowest"):
        return bool(inside.any())
    rest = ~covered[mark.piece : mark.last]
    if rest.sum() * FEWEST_LEFT < len(rest):
        return True
    piece = (surprise if mark.view in SURPRISED else values)[mark.piece : mark.last][rest]
    return mark.side * (figure_of(mark.view, piece) - mark.middle) < 0.5 * abs(mark.least)


def figure_of(view: str, piece: FloatArray) -> float:
    """The figure that this view has of any samples."""
    if view in ("floor", "ceiling"):
        return float(np.quantile(piece, 0.25 if view == "floor" else 0.75))
    if view in ("spread", "roughness"):
        size = float(np.std(piece)) if view == "spread" else float(np.mean(np.abs(piece)))
        return float(np.log(max(size, TINY)))
    return float(np.mean(piece))


def with_evidence(alarm: Alarm, others: list[Mark]) -> Alarm:
    """With the marks whose first piece it is in: what was out before it began is no evidence for it."""
    held = tuple(mark for mark in others if mark.start < alarm.end and mark.seen >= alarm.start)
    seen = min((mark.seen for mark in held), default=alarm.seen)
    return replace(alarm, explained=held, seen=min(alarm.seen, seen))


def join_alarms(alarms: list[Alarm], settled: Sequence[Alarm] = ()) -> list[Alarm]:
    """In order of time, with those joined that follow each other within a few samples or half a piece."""
    joined: list[Alarm] = []
    for alarm in sorted(alarms, key=lambda one: one.start):
        if (
            joined
            and alarm.start <= joined[-1].end + reach_of(alarm, joined[-1])
            and not is_new(alarm, joined[-1], settled)
        ):
            joined[-1] = join_two(joined[-1], alarm)
        else:
            joined.append(alarm)
    return joined


def without_repeats(alarms: list[Alarm]) -> list[Alarm]:
    """Without those that are like two earlier ones: what has come twice may come again."""
    kept: list[Alarm] = []
    for alarm in alarms:
        if sum(alarm.is_alike(other) for other in kept) < TWICE:
            kept.append(alarm)
    return kept


def join_bridged(alarms: list[Alarm], others: list[Mark], settled: Sequence[Alarm]) -> list[Alarm]:
    """With two neighbours joined where a longer piece to the same side reaches from the one to the other."""
    joined = alarms[:1]
    for alarm in alarms[1:]:
        before = joined[-1]
        sides = {before.strongest.side, alarm.strongest.side}
        reaching = any({m.side} == sides and m.start < before.end and m.end > alarm.start for m in others)
        if reaching and not is_new(alarm, before, settled):
            joined[-1] = join_two(before, alarm)
        else:
            joined.append(alarm)
    return joined


def reach_of(alarm: Alarm, before: Alarm) -> int:
    return max(JOINED_SAMPLES, min(alarm.strongest.length, before.strongest.length) // 2)


def is_new(alarm: Alarm, before: Alarm, settled: Sequence[Alarm]) -> bool:
    """It was told against a history in which the one before, or what that one goes on with, is usual already."""
    sudden = alarm.strongest.length <= SUDDEN or alarm.strongest.side != before.strongest.side
    if lasts_long(before) and alarm.part >= usual_from(before):
        return sudden
    return sudden and any(one.start <= before.start <= one.end + JOINED_SAMPLES for one in settled)


def join_two(one: Alarm, other: Alarm) -> Alarm:
    return Alarm(
        one.start,
        max(one.end, other.end),
        min(one.seen, other.seen),
        (*one.marks, *other.marks),
        max(one.part, other.part),
        (*one.explained, *other.explained),
    )
