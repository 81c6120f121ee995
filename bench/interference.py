"""
Pods that slow each other down: traces of three kinds and the machines they run on.

Twenty nodes of 32 cores. An application has pods that come and go; what its
pods request says little of what they use. Three kinds of cluster:

    services    long-running, busy by day or by night, few that need much memory bandwidth
    batch       jobs of half an hour to some hours that use all they can get
    mixed       services that wait for nobody beside analytics with small requests that
                fill the memory bus

How much a pod is slowed down follows from the node alone:

    cores       what all want beside the 32 there are; short of that, some wait for a core
                in rho^8 of the time, which costs an application by how impatient it is
    memory bus  latency grows as 1 + 0.15 u / (1 - u), which costs the share of time that an
                application spends waiting for memory; beyond the peak all are held back

A scheduler sees none of this: it sees requests, and what agents measure.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NODES, CORES, MEMORY_GIB, PEAK_GBPS = 20, 32.0, 128.0, 120.0
HOURS_BEFORE, HOURS_MEASURED = 24.0, 12.0
KINDS = ("services", "batch", "mixed")
# Latency does not grow for ever: a memory controller's queue has an end, at some four times the idle latency.
FULLEST = 0.95


@dataclass(frozen=True, slots=True)
class Application:
    """A Deployment, or a Job's template."""

    name: str
    request: float
    memory_gib: float
    cores: float
    """One pod's mean over a day."""
    swing: float
    """0: the same at all hours; 1: none at the quietest, twice the mean at the busiest."""
    peak_hour: float
    noise: float
    bandwidth: float
    """GB/s for each core in use."""
    impatience: float
    memory_bound: float


@dataclass(frozen=True, slots=True)
class Arrival:
    at_seconds: float
    end_seconds: float
    application: int
    factor: float
    """This pod's use beside its application's."""


@dataclass(frozen=True, slots=True)
class Trace:
    kind: str
    seed: int
    applications: tuple[Application, ...]
    arrivals: tuple[Arrival, ...]
    """By time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kind of cluster is made of; pairs are the ends of a range."""

    applications: int
    life_hours: tuple[float, float]
    use_cores: tuple[float, float]
    use_of_request: tuple[float, float]
    swing: tuple[float, float]
    heavy_share: float
    """Of applications that fill the memory bus."""
    heavy_gbps: tuple[float, float]
    light_gbps: tuple[float, float]
    impatience: tuple[float, float]
    busy: float
    """Mean use of all cores."""


SHAPES = {
    "services": Shape(
        30, (3.0, 12.0), (0.3, 3.0), (0.4, 1.2), (0.3, 0.9), 0.35, (6.0, 11.0), (0.3, 2.0), (0.5, 2.0), 0.42
    ),
    "batch": Shape(
        24, (0.5, 3.0), (1.0, 6.0), (0.7, 1.3), (0.0, 0.1), 0.3, (4.0, 8.0), (0.5, 2.5), (0.1, 0.6), 0.42
    ),
    "mixed": Shape(
        30, (1.0, 8.0), (0.4, 4.0), (0.6, 1.5), (0.0, 0.8), 0.4, (5.0, 9.0), (0.5, 2.5), (0.3, 2.0), 0.40
    ),
}


def make_trace(kind: str, seed: int, hours: float = HOURS_BEFORE + HOURS_MEASURED) -> Trace:
    chance = np.random.default_rng([KINDS.index(kind), seed])
    shape = SHAPES[kind]
    applications = tuple(make_application(chance, shape, number) for number in range(shape.applications))
    popularity = 1 / np.arange(1, len(applications) + 1) ** 0.5
    chance.shuffle(popularity)
    popularity /= popularity.sum()
    shortest, longest = np.log(shape.life_hours)
    lives = np.exp(chance.uniform(shortest, longest, len(applications)))
    # Arrivals an hour so that the mean use is as the shape says.
    per_arrival = sum(p * life * one.cores for p, life, one in zip(popularity, lives, applications))
    rate = shape.busy * NODES * CORES / per_arrival
    arrivals: list[Arrival] = []
    # The cluster is full at the beginning: as many as live at once are there from the first minute on.
    first = chance.poisson(rate * popularity * lives)
    for number, count in enumerate(first):
        arrivals += [make_arrival(chance, number, lives[number], chance.uniform(0, 60)) for _ in range(count)]
    at_hours = 0.0
    while (at_hours := at_hours + chance.exponential(1 / rate)) < hours:
        number = int(chance.choice(len(applications), p=popularity))
        arrivals.append(make_arrival(chance, number, lives[number], at_hours * 3600))
    return Trace(kind, seed, applications, tuple(sorted(arrivals, key=lambda one: one.at_seconds)))


def make_application(chance: np.random.Generator, shape: Shape, number: int) -> Application:
    cores = float(np.exp(chance.uniform(*np.log(shape.use_cores))))
    heavy = chance.random() < shape.heavy_share
    return Application(
        f"app-{number:02}",
        max(0.1, round(cores / float(np.exp(chance.uniform(*np.log(shape.use_of_request)))), 1)),
        float(np.exp(chance.uniform(math.log(0.5), math.log(6.0)))),
        cores,
        float(chance.uniform(*shape.swing)),
        # Most are busy in the afternoon, some at night.
        float(chance.normal(14, 2) if chance.random() < 0.7 else chance.normal(2, 2)) % 24,
        float(chance.uniform(0.05, 0.3)),
        float(chance.uniform(*(shape.heavy_gbps if heavy else shape.light_gbps))),
        float(chance.uniform(*shape.impatience)),
        float(chance.uniform(0.3, 0.8) if heavy else chance.uniform(0.02, 0.3)),
    )


def make_arrival(chance: np.random.Generator, number: int, life_hours: float, at_seconds: float) -> Arrival:
    lives = max(120.0, chance.exponential(life_hours) * 3600)
    return Arrival(at_seconds, at_seconds + lives, number, float(np.exp(chance.normal(0, 0.15))))


# -- the machines ---------------------------------------------------------------------


@dataclass(slots=True)
class Behaviour:
    """The applications' columns as arrays."""

    cores: Floats
    swing: Floats
    peak_hour: Floats
    noise: Floats
    bandwidth: Floats
    impatience: Floats
    memory_bound: Floats

    def want(self, numbers: NDArray[np.int64], factors: Floats, at_seconds: float) -> Floats:
        """Cores that pods of these applications want at a moment, without chance."""
        hour = at_seconds / 3600
        wave = np.cos(2 * np.pi * (hour - self.peak_hour[numbers]) / 24)
        found: Floats = self.cores[numbers] * factors * (1 + self.swing[numbers] * wave)
        return found


def describe(applications: tuple[Application, ...]) -> Behaviour:
    names = ("cores", "swing", "peak_hour", "noise", "bandwidth", "impatience", "memory_bound")
    return Behaviour(*(np.array([getattr(one, name) for one in applications]) for name in names))


@dataclass(frozen=True, slots=True)
class Strain:
    """What the nodes suffer at one moment, one value for each."""

    wanted: Floats
    """Share of the cores that is wanted; may be more than 1."""
    waiting: Floats
    """Share of the time in which somebody waits for a core."""
    stretch: Floats
    bus: Floats
    """Share of the peak bandwidth that is wanted."""
    bus_cost: Floats
    """What a pod loses that does nothing but wait for memory."""


def strain(wanted_cores: Floats, wanted_gbps: Floats) -> Strain:
    wanted, bus = wanted_cores / CORES, wanted_gbps / PEAK_GBPS
    capped = np.minimum(bus, FULLEST)
    queue = 0.15 * capped / (1 - capped) + np.maximum(bus - 1.0, 0)
    return Strain(wanted, np.minimum(wanted, 1.0) ** 8, np.maximum(wanted, 1.0), bus, queue)


def slow_down(
    state: Strain, node: NDArray[np.int64], behaviour: Behaviour, numbers: NDArray[np.int64]
) -> Floats:
    """Each pod's slowdown: 1 where it has all that it wants."""
    found: Floats = (
        state.stretch[node]
        + behaviour.impatience[numbers] * 0.5 * state.waiting[node]
        + behaviour.memory_bound[numbers] * state.bus_cost[node]
    )
    return found
