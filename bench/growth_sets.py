"""
Generated memory that grows, and memory that only seems to: what a forecast is scored on.

A case is what the meter shows up to now, a limit that was chosen before the
future was drawn, and when the path touches it. The meter's noise is no part of
the path. Beside it stands the interval of an oracle: where the future is random,
it knows the process and its present state; where the path is a fixed curve in
noise, it knows the form and the noise, and fits the curve by least squares.

Time is in spans: 0 at the first sample, 1 one sample after the newest.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nodescope.use.studies.series import FloatArray

# The path is known for so many spans, at so many moments each where it is random.
SPANS = 7
MOMENTS = 600
ORACLE_DRAWS = 120

Passages = Callable[[np.random.Generator, float, int], FloatArray]
"""Spans from now until the limit is touched, in so many possible futures."""

Column = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class GrowthCase:
    """In MiB; samples_to_limit is infinite where the path does not touch the limit."""

    values: FloatArray
    limit: float
    samples_to_limit: float
    oracle_low: float = 0.0
    oracle_high: float = np.inf
    interval_seconds: float = 1.0


@dataclass(frozen=True)
class Draw:
    """The sizes of one case: samples seen, growth per span, deviation of the meter."""

    random: np.random.Generator
    count: int
    growth: float
    noise: float

    @property
    def past(self) -> FloatArray:
        return np.arange(self.count) / self.count

    @property
    def last(self) -> float:
        """When the newest sample was."""
        return 1.0 - 1.0 / self.count

    @property
    def ahead(self) -> FloatArray:
        """Every sample to come, from the newest one on."""
        return (1.0 + np.arange(self.count * SPANS)) / self.count

    def uniform(self, low: float, high: float) -> float:
        return float(self.random.uniform(low, high))

    def log_uniform(self, low: float, high: float) -> float:
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))

    def white(self, deviation: float) -> FloatArray:
        return deviation * self.random.standard_normal(self.count)


@dataclass(frozen=True)
class Memory:
    """What one maker makes: the path up to now, the meter's noise, its futures, and what an oracle expects of them."""

    path: FloatArray
    noise: FloatArray
    futures: Passages
    guesses: Passages | None = None
    interval_seconds: float = 1.0
    room: float | None = field(default=None)
    """The limit above the highest so far; chosen by growth if left out."""


Maker = Callable[[Draw], Memory]


def first_passages(moments: FloatArray, heights: FloatArray, limit: float) -> FloatArray:
    """Of each row of heights."""
    touched = heights >= limit
    return np.where(touched.any(axis=1), moments[np.argmax(touched, axis=1)], np.inf)


# -- fixed curves in noise ----------------------------------------------------------------


def remembering(draw: Draw, memory: float, deviation: float) -> FloatArray:
    """Autoregressive, from its stationary distribution."""
    made = autoregression(draw.random, memory, draw.random.standard_normal(1), draw.count)
    return np.asarray(deviation * made[0])


def autoregression(random: np.random.Generator, memory: float, states: FloatArray, count: int) -> FloatArray:
    """A row for each state, with unit variance, going on from it."""
    shocks = np.sqrt(1 - memory * memory) * random.standard_normal((count, len(states)))
    for index in range(count):
        states = memory * states + shocks[index]
        shocks[index] = states
    return np.ascontiguousarray(shocks.T)


def fixed_curve(
    draw: Draw, columns: list[Column], sizes: list[float], noise: FloatArray, long_run: float
) -> Memory:
    """Sum of the columns by their sizes; long_run is the noise's deviation as a mean of many samples sees it."""
    matrix = np.stack([column(draw.past) for column in columns], axis=1)
    later = np.stack([column(draw.last + draw.ahead) for column in columns], axis=1)
    spread = long_run * np.linalg.cholesky(np.linalg.inv(matrix.T @ matrix) + 1e-18 * np.eye(len(sizes)))

    def true(_: np.random.Generator, limit: float, count: int) -> FloatArray:
        return np.repeat(first_passages(draw.ahead, (later @ np.array(sizes))[None, :], limit), count)

    def fitted(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        drawn = np.array(sizes) + random.standard_normal((count, len(sizes))) @ spread.T
        return first_passages(draw.ahead, drawn @ later.T, limit)

    return Memory(matrix @ np.array(sizes), noise, true, fitted)


def level(times: FloatArray) -> FloatArray:
    return np.ones_like(times)


def line(times: FloatArray) -> FloatArray:
    return times


def bend(start: float) -> Column:
    return lambda times: np.maximum(times - start, 0.0)


def turning(turns: float) -> list[Column]:
    return [lambda times: np.sin(2 * np.pi * turns * times), lambda times: np.cos(2 * np.pi * turns * times)]


def straight(memory: float) -> Maker:
    def make(draw: Draw) -> Memory:
        noise = draw.white(draw.noise) if memory == 0 else remembering(draw, memory, draw.noise)
        long_run = draw.noise * np.sqrt((1 + memory) / (1 - memory))
        return fixed_curve(draw, [level, line], [base(draw), draw.growth], noise, long_run)

    return make


def base(draw: Draw) -> float:
    return draw.uniform(50, 300)


def late(draw: Draw) -> Memory:
    start = draw.uniform(0.35, 0.8)
    noise = draw.noise * draw.uniform(0.2, 1.0)
    grown = [base(draw), draw.growth / (1 - start)]
    return fixed_curve(draw, [level, bend(start)], grown, draw.white(noise), noise)


def seasonal(fewest: float, most: float, harmonics: int = 1, forgets: float = 0.0) -> Maker:
    """In white noise, or in noise that remembers for some samples."""

    def make(draw: Draw) -> Memory:
        turns = draw.log_uniform(fewest, most)
        columns: list[Column] = [level, line]
        sizes = [base(draw), draw.growth]
        for harmonic in range(1, harmonics + 1):
            swing = draw.growth * draw.log_uniform(0.2, 2.0) / harmonic**1.5
            phase = draw.uniform(0, 2 * np.pi)
            columns += turning(turns * harmonic)
            sizes += [swing * np.sin(phase), swing * np.cos(phase)]
        size = draw.noise * draw.uniform(0.3, 1.0)
        memory = 1 - 1 / forgets if forgets else 0.0
        noise = remembering(draw, memory, size) if forgets else draw.white(size)
        return fixed_curve(draw, columns, sizes, noise, size * np.sqrt((1 + memory) / (1 - memory)))

    return make


# -- paths that are random themselves -------------------------------------------------------


def stepwise() -> tuple[float, FloatArray]:
    """Spans between two moments of a random future, and the moments."""
    return 1.0 / MOMENTS, (1.0 + np.arange(SPANS * MOMENTS)) / MOMENTS


def wandering_line(draw: Draw) -> Memory:
    """A line in AR(0.999), which is where the memory is."""
    memory = 0.999
    wander = remembering(draw, memory, draw.noise)
    low = base(draw)
    step, moments = stepwise()

    def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        slow = memory ** (step * draw.count)
        state = np.full(count, wander[-1] / draw.noise)
        more = draw.noise * autoregression(random, slow, state, len(moments))
        return first_passages(moments, low + draw.growth * (draw.last + moments) + more, limit)

    return Memory(low + draw.growth * draw.past + wander, draw.white(0.02 * draw.noise), futures)


def walk(drift: float = 1.0) -> Maker:
    def make(draw: Draw) -> Memory:
        spread = draw.growth * draw.log_uniform(0.05, 0.3)
        steps = draw.random.standard_normal(draw.count) / np.sqrt(draw.count)
        path = base(draw) + drift * draw.growth * draw.past + spread * np.cumsum(steps)
        step, moments = stepwise()

        def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
            moves = spread * np.sqrt(step) * random.standard_normal((count, len(moments)))
            return first_passages(
                moments, path[-1] + drift * draw.growth * moments + np.cumsum(moves, axis=1), limit
            )

        return Memory(path, draw.white(draw.noise * draw.uniform(0.0, 0.3)), futures)

    return make


def requests(draw: Draw) -> Memory:
    a_span = draw.log_uniform(30, 1000)
    size = draw.growth / a_span
    leaked = draw.random.gamma(np.maximum(draw.random.poisson(a_span / draw.count, draw.count), 1e-9), size)
    path = base(draw) + np.cumsum(leaked)
    step, moments = stepwise()

    def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        events = random.poisson(a_span * step, (count, len(moments)))
        more = random.gamma(np.maximum(events, 1e-9), size)
        return first_passages(moments, path[-1] + np.cumsum(more, axis=1), limit)

    return Memory(path, draw.white(0.1 * draw.noise), futures)


def load_driven(draw: Draw) -> Memory:
    """Growth by a load that varies; the oracle knows the load of this moment."""
    long = draw.log_uniform(0.03, 0.3)
    deviation = draw.uniform(0.3, 0.6)
    memory = float(np.exp(-1 / (long * draw.count)))
    state = autoregression(draw.random, memory, draw.random.standard_normal(1), draw.count)[0]
    mean = float(np.exp(deviation**2 / 2))
    path = base(draw) + draw.growth * np.cumsum(np.exp(deviation * state)) / mean / draw.count
    step, moments = stepwise()

    def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        load = autoregression(random, float(np.exp(-step / long)), np.full(count, state[-1]), len(moments))
        more = draw.growth * step * np.cumsum(np.exp(deviation * load), axis=1) / mean
        return first_passages(moments, path[-1] + more, limit)

    return Memory(path, draw.white(0.3 * draw.noise), futures)


# -- pages ---------------------------------------------------------------------------------

PAGE = 4.0


def pages(noise_share: float) -> Maker:
    """A line of which whole pages are seen; the oracle is off by a sample at both ends of what it saw."""

    def make(draw: Draw) -> Memory:
        low = draw.uniform(0, PAGE)

        def whole(times: FloatArray) -> FloatArray:
            return np.asarray(100 + PAGE * np.floor((low + draw.growth * times) / PAGE))

        def true(_: np.random.Generator, limit: float, count: int) -> FloatArray:
            return np.repeat(first_passages(draw.ahead, whole(draw.last + draw.ahead)[None, :], limit), count)

        def fitted(random: np.random.Generator, limit: float, count: int) -> FloatArray:
            when = true(random, limit, count)
            off = np.sqrt(12 / max(draw.growth / PAGE, 3)) * (1 + when) * random.uniform(-0.5, 0.5, count)
            return np.asarray(when + (off + random.uniform(-0.5, 0.5, count)) / draw.count)

        return Memory(whole(draw.past), draw.white(noise_share * PAGE), true, fitted)

    return make


def random_pages(draw: Draw) -> Memory:
    """Pages that are taken at random."""
    a_span = draw.growth / PAGE
    taken = draw.random.poisson(a_span / draw.count, draw.count)
    path = 100 + PAGE * np.cumsum(taken)
    step, moments = stepwise()

    def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        more = PAGE * np.cumsum(random.poisson(a_span * step, (count, len(moments))), axis=1)
        return first_passages(moments, path[-1] + more, limit)

    return Memory(path.astype(np.float64), draw.white(0.02 * PAGE), futures)


def uneven_pages(draw: Draw) -> Memory:
    """Pages whose gaps vary by a share of their mean; the oracle knows both, and when the newest was taken."""
    mean, varied = PAGE / draw.growth, draw.uniform(0.15, 0.9)
    wide = np.sqrt(np.log1p(varied**2))

    def gaps(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(mean * np.exp(wide * random.standard_normal(shape) - wide**2 / 2))

    taken = np.cumsum(gaps(draw.random, (int(4 / mean) + 20,)))
    newest = int(np.searchsorted(taken, draw.last, side="right"))
    now = float(taken[newest - 1]) if newest else 0.0
    path = 100 + PAGE * np.searchsorted(taken, draw.past, side="right")

    def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        ahead = int(np.ceil((limit - path[-1]) / PAGE))
        first = gaps(random, (count, 200))
        longer = first > draw.last - now
        chosen = np.where(
            longer.any(axis=1), first[np.arange(count), np.argmax(longer, axis=1)], draw.last - now
        )
        return np.asarray(chosen - (draw.last - now) + gaps(random, (count, ahead - 1)).sum(axis=1))

    return Memory(path.astype(np.float64), draw.white(draw.uniform(0.01, 0.1) * PAGE), futures)


# -- collectors ----------------------------------------------------------------------------


@dataclass
class Teeth:
    """The state of several heaps at once: since when its tooth lasts, from which floor, how long and how high."""

    start: FloatArray
    floor: FloatArray
    length: FloatArray
    rise: FloatArray


NextTooth = Callable[[np.random.Generator, FloatArray], Teeth]


def toothed(draw: Draw, next_tooth: NextTooth, noise: float) -> Memory:
    """Heaps that go from tooth to tooth; the newest tooth of the past goes on in every future."""
    teeth = [next_tooth(draw.random, np.zeros(1))]
    while teeth[-1].start[0] + teeth[-1].length[0] < 1.0:
        teeth.append(next_tooth(draw.random, teeth[-1].start + teeth[-1].length))
    starts = np.array([tooth.start[0] for tooth in teeth])
    which = np.searchsorted(starts, draw.past, side="right") - 1
    place = (draw.past - starts[which]) / np.array([tooth.length[0] for tooth in teeth])[which]
    floors = np.array([tooth.floor[0] for tooth in teeth])[which]
    path = floors + np.array([tooth.rise[0] for tooth in teeth])[which] * place
    now = teeth[-1]

    def futures(random: np.random.Generator, limit: float, count: int) -> FloatArray:
        tooth = Teeth(*(np.repeat(part, count) for part in (now.start, now.floor, now.length, now.rise)))
        times = np.full(count, np.inf)
        while np.isinf(times).any() and tooth.start.min() < 1.0 + SPANS:
            share = np.maximum((limit - tooth.floor) / tooth.rise, 0.0)
            when = tooth.start + share * tooth.length - draw.last
            times = np.where((share <= 1.0) & np.isinf(times), np.maximum(when, 1.0 / draw.count), times)
            tooth = next_tooth(random, tooth.start + tooth.length)
        return times

    return Memory(path, draw.white(noise), futures)


def collector_by_time(draw: Draw, drift: float = 1.0) -> Memory:
    mean, low = draw.log_uniform(1 / 80, 1 / 8), base(draw)
    swing = draw.growth * draw.uniform(0.1, 1.0)
    varied = draw.uniform(0.02, 0.15)

    def next_tooth(random: np.random.Generator, start: FloatArray) -> Teeth:
        length = mean * random.uniform(0.7, 1.3, len(start))
        rise = swing * np.exp(varied * random.standard_normal(len(start))) + drift * draw.growth * length
        return Teeth(start, low + drift * draw.growth * start, length, rise)

    return toothed(draw, next_tooth, 0.02 * swing)


def collector_by_size(draw: Draw, drift: float = 1.0) -> Memory:
    """A heap that is collected when it has grown by a share of what lives."""
    low, share, varied = base(draw), draw.uniform(0.3, 1.0), draw.uniform(0.01, 0.06)
    mean = draw.log_uniform(1 / 80, 1 / 8)
    pace = share * low / mean

    def next_tooth(random: np.random.Generator, start: FloatArray) -> Teeth:
        count = len(start)
        floor = (low + drift * draw.growth * start) * np.exp(0.3 * varied * random.standard_normal(count))
        rise = share * floor * np.exp(varied * random.standard_normal(count))
        return Teeth(start, floor, rise / pace * np.exp(0.2 * random.standard_normal(count)), rise)

    return toothed(draw, next_tooth, 0.01 * low * share)


def collector_at_ceiling(draw: Draw, drift: float = 1.0) -> Memory:
    """Young garbage of an even amount over a floor that grows unevenly."""
    mean, low = draw.log_uniform(1 / 60, 1 / 8), base(draw)
    swing = draw.growth * draw.uniform(0.2, 1.0)
    uneven = draw.growth * draw.uniform(0.01, 0.05)

    def next_tooth(random: np.random.Generator, start: FloatArray) -> Teeth:
        count = len(start)
        floor = low + drift * draw.growth * start + uneven * random.standard_normal(count)
        length = mean * np.exp(0.25 * random.standard_normal(count))
        return Teeth(start, floor, length, swing * (1 + 0.03 * random.standard_normal(count)))

    return toothed(draw, next_tooth, 0.01 * swing)


# -- no leaks ------------------------------------------------------------------------------


def never(_: np.random.Generator, __: float, count: int) -> FloatArray:
    return np.full(count, np.inf)


def shaped(curve: Callable[[Draw, FloatArray], FloatArray], noise: float = 0.4) -> Maker:
    def make(draw: Draw) -> Memory:
        return Memory(base(draw) + curve(draw, draw.past), draw.white(noise * draw.noise), never)

    return make


def saturating(shortest: float, longest: float) -> Callable[[Draw, FloatArray], FloatArray]:
    def curve(draw: Draw, times: FloatArray) -> FloatArray:
        constant = draw.log_uniform(shortest, longest)
        return np.asarray(draw.growth * np.expm1(-times / constant) / np.expm1(-1 / constant))

    return curve


def square_root(draw: Draw, times: FloatArray) -> FloatArray:
    return draw.growth * np.sqrt(times)


def logarithm(draw: Draw, times: FloatArray) -> FloatArray:
    steep = draw.log_uniform(5, 50)
    return np.asarray(draw.growth * np.log1p(steep * times) / np.log1p(steep))


def restarted(draw: Draw, times: FloatArray) -> FloatArray:
    """The same warm-up again after each of one to three falls."""
    constant = draw.uniform(0.02, 0.2)
    ends = np.sort(draw.random.uniform(0.1, 0.92, int(draw.random.integers(1, 4))))
    starts = np.concatenate(([draw.uniform(-2.0, 0.0)], ends))
    age = times - starts[np.searchsorted(starts, times, side="right") - 1]
    return np.asarray(-draw.growth * np.expm1(-age / constant))


def cached_pages(draw: Draw, times: FloatArray) -> FloatArray:
    """Read in bursts up to a ceiling, and given back in part."""
    filled = np.cumsum(draw.random.exponential(1.0, len(times)) * (draw.random.random(len(times)) < 0.02))
    filled = filled / filled[-1] * draw.uniform(1.5, 6.0)
    return np.asarray(draw.growth * np.minimum(filled, 1.0 - 0.1 * ((filled * 3) % 1.0)))


def flat_season(draw: Draw, times: FloatArray) -> FloatArray:
    turns = draw.log_uniform(1.5, 12)
    return np.asarray(draw.growth * np.sin(2 * np.pi * (turns * times + draw.random.random())))


def flat(memory: float) -> Maker:
    def make(draw: Draw) -> Memory:
        noise = draw.white(draw.noise) if memory == 0 else remembering(draw, memory, draw.noise)
        return Memory(np.full(draw.count, base(draw)), noise, never)

    return make


def flank(draw: Draw) -> Memory:
    """Two to ten hours of a day, around its steepest rise."""
    hours = draw.uniform(2, 10)
    middle = draw.uniform(-1.5, 1.5)
    place = (draw.past - 0.5) * hours + middle
    path = base(draw) + draw.growth * np.sin(2 * np.pi * place / 24)
    return Memory(path, draw.white(0.3 * draw.noise), never, interval_seconds=hours * 3600 / draw.count)


def quiet(maker: Callable[[Draw, float], Memory]) -> Maker:
    """The same memory without growth."""

    def make(draw: Draw) -> Memory:
        made = maker(draw, 0.0)
        return Memory(made.path, made.noise, never)

    return make


LEAKS: dict[str, Maker] = {
    "white": straight(0.0),
    "AR(0.9)": straight(0.9),
    "AR(0.99)": straight(0.99),
    "AR(0.999)": wandering_line,
    "random-walk drift": walk(),
    "pages of 4 MiB": pages(0.01),
    "pages, noisy meter": pages(0.15),
    "pages at random": random_pages,
    "pages at uneven times": uneven_pages,
    "collector by time": collector_by_time,
    "collector by size": collector_by_size,
    "collector at ceiling": collector_at_ceiling,
    "requests that leak": requests,
    "load-driven": load_driven,
    "starts in the span": late,
    "season of few cycles": seasonal(1.6, 4),
    "season of many cycles": seasonal(4, 25),
    "season with overtones": seasonal(1.8, 10, 3),
    "season and AR noise": seasonal(1.8, 8, forgets=30.0),
}

NO_LEAKS: dict[str, Maker] = {
    "saturating": shaped(saturating(0.5, 1.2)),
    "warm-up": shaped(saturating(0.05, 0.4)),
    "square root": shaped(square_root),
    "logarithm": shaped(logarithm),
    "unnamed restarts": shaped(restarted),
    "rising flank of a day": flank,
    "page cache": shaped(cached_pages, 0.1),
    "season, no leak": shaped(flat_season),
    "collector, by time": quiet(collector_by_time),
    "collector, by size": quiet(collector_by_size),
    "white noise": flat(0.0),
    "AR(0.9) noise": flat(0.9),
    "AR(0.99) noise": flat(0.99),
    "AR(0.999) noise": flat(0.999),
    "random walk": quiet(lambda draw, drift: walk(drift)(draw)),
}


def growth_case(random: np.random.Generator, kind: str) -> GrowthCase:
    count = int(random.choice([1200, 3600]))
    growth = float(random.uniform(20, 300))
    draw = Draw(random, count, growth, growth * float(np.exp(random.uniform(np.log(0.01), np.log(0.15)))))
    made = {**LEAKS, **NO_LEAKS}[kind](draw)
    limit = limit_of(draw, made, kind)
    when = float(made.futures(random, limit, 1)[0])
    low, high = 0.0, np.inf
    if kind in LEAKS:
        expected = (made.guesses or made.futures)(random, limit, ORACLE_DRAWS)
        low, high = np.quantile(expected, [0.05, 0.95], method="nearest")
    return GrowthCase(
        made.path + made.noise, limit, count * when, count * low, count * high, made.interval_seconds
    )


def limit_of(draw: Draw, made: Memory, kind: str) -> float:
    """Above everything seen: where a leak will be after 0.15 to 2 spans."""
    highest = float(made.path.max())
    if kind in LEAKS:
        return highest + draw.growth * draw.uniform(0.15, 2)
    swing = highest - float(made.path.min())
    return highest + swing * draw.uniform(0.1, 1.0) + 3 * draw.noise
