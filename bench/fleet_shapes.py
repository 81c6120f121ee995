"""
Memory as services have it, for leaks that no demo planted: eight that leak and eight that do not.

The demo's leak is a straight line from a third of its limit to all of it, and
what does not leak there stands still. Here leaks are small, late, in steps or
under a sawtooth, and what does not leak fills a cache, warms up, collects
garbage, walks at random, follows its traffic. Every workload has replicas on
some nodes; only some replicas of a leaking one leak, as some requests do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.studies_sets import autoregressive
from nodescope.keep.series import LABELS, Subject
from nodescope.read.bucket import Points
from nodescope.read.query import Line
from nodescope.use.fleet.answer import FleetAnswer, build_answer
from nodescope.use.fleet.part import Job, Part, Unit
from nodescope.use.fleet.task import take_trends
from nodescope.use.studies.series import FloatArray

MIB = 2.0**20
START_MS = 1_772_323_200_000
Dice = np.random.Generator
Shape = Callable[[Dice, int], FloatArray]
"""A share of the base, around 1, for so many seconds."""


def steady(dice: Dice, count: int) -> FloatArray:
    return 1 + 0.01 * autoregressive(dice, count, 0.9)


def rise(dice: Dice, least: float = 0.15, most: float = 1.5) -> float:
    """By which share of its base it grows over the whole range."""
    return float(np.exp(dice.uniform(np.log(least), np.log(most))))


def line(dice: Dice, count: int) -> FloatArray:
    return steady(dice, count) + rise(dice) * np.arange(count) / count


def late(dice: Dice, count: int) -> FloatArray:
    """Begins to leak with a request that comes in the first half."""
    start = int(count * dice.uniform(0.1, 0.5))
    grown = np.maximum(0, np.arange(count) - start) / (count - start)
    return steady(dice, count) + rise(dice) * grown


def steps(dice: Dice, count: int) -> FloatArray:
    """A buffer at a time, every one to eight minutes."""
    waits = dice.exponential(float(dice.uniform(60, 480)), count // 30)
    at = np.cumsum(waits)[np.cumsum(waits) < count].astype(int)
    grown = np.zeros(count)
    grown[at] = 1
    return steady(dice, count) + rise(dice) * np.cumsum(grown) / max(1, len(at))


def sawtooth(dice: Dice, count: int) -> FloatArray:
    """A collector that runs every one to fifteen minutes."""
    period = float(dice.uniform(60, 900))
    phase = (np.arange(count) + float(dice.uniform(0, period))) % period / period
    return steady(dice, count) + float(dice.uniform(0.1, 0.6)) * phase


def rising_sawtooth(dice: Dice, count: int) -> FloatArray:
    return sawtooth(dice, count) + rise(dice, 0.3) * np.arange(count) / count


def filling(dice: Dice, count: int) -> FloatArray:
    """A cache that is full well before the end."""
    pace = count * float(dice.uniform(0.03, 0.2))
    return steady(dice, count) + rise(dice) * (1 - np.exp(-np.arange(count) / pace))


def warming(dice: Dice, count: int) -> FloatArray:
    until = count * float(dice.uniform(0.02, 0.2))
    return steady(dice, count) + rise(dice) * np.minimum(1, np.arange(count) / until)


def walking(dice: Dice, count: int) -> FloatArray:
    """Comes back to its middle in a quarter of an hour or so."""
    return 1 + 0.08 * autoregressive(dice, count, 1 - 1 / float(dice.uniform(200, 900)))


def wave(dice: Dice, count: int) -> FloatArray:
    """Traffic that comes and goes within half an hour to two hours."""
    period, phase = float(dice.uniform(1800, 7200)), float(dice.uniform(0, 2 * np.pi))
    return steady(dice, count) + float(dice.uniform(0.05, 0.3)) * np.sin(
        2 * np.pi * np.arange(count) / period + phase
    )


def stepped(dice: Dice, count: int) -> FloatArray:
    """One more worker at some moment, for good."""
    at = int(count * dice.uniform(0.1, 0.9))
    return steady(dice, count) + rise(dice) * (np.arange(count) >= at)


def bursts(dice: Dice, count: int) -> FloatArray:
    found = steady(dice, count)
    for _ in range(int(dice.integers(5, 40))):
        start, length = int(dice.integers(0, count)), int(dice.integers(5, 300))
        found[start : start + length] += dice.uniform(0.1, 0.8)
    return found


LEAKS: dict[str, Shape] = {"line": line, "late": late, "steps": steps, "rising-sawtooth": rising_sawtooth}
OTHERS: dict[str, Shape] = {
    "steady": steady,
    "sawtooth": sawtooth,
    "filling": filling,
    "warming": warming,
    "walking": walking,
    "wave": wave,
    "stepped": stepped,
    "bursts": bursts,
}


@dataclass(frozen=True)
class Fleet:
    """An answer, and which containers leak."""

    answer: FleetAnswer
    leaking: dict[tuple[str, str], str]
    """(node, container id) -> shape."""


def make_line(node: str, shape: str, identity: str, values: FloatArray, time_ms: np.ndarray) -> Line:
    names = {
        "l_container_id": identity,
        "l_pod_name": f"{shape}-6d4cf56db6-{identity[:5]}",
        "l_namespace": "shop",
        "l_node_name": node,
        "l_container_name": shape,
        "l_scope": "container",
    }
    subject = Subject(tuple(names.get(name) for name in LABELS), {"image": f"{shape}:1", "owner": shape})
    return Line(subject, Points(time_ms, values, values, values, np.ones(len(values), np.int64)))


def ask_shapes(seed: int, nodes: int = 10, hours: float = 6.0, replicas: int = 1) -> Fleet:
    """Every shape on every node; of the leaking ones a third of the replicas leaks."""
    dice = np.random.default_rng(seed)
    count = round(hours * 3600)
    time_ms = START_MS + 1000 * np.arange(count, dtype=np.int64)
    parts: list[Part] = []
    leaking: dict[tuple[str, str], str] = {}
    for number in range(nodes):
        node = f"node-{number + 1}"
        lines: list[Line] = []
        for shape, make in {**LEAKS, **OTHERS}.items():
            for _ in range(replicas):
                identity = dice.bytes(32).hex()
                leaks = shape in LEAKS and bool(dice.random() < 1 / 3)
                base = float(dice.uniform(50, 2000)) * MIB
                values = (make if leaks or shape in OTHERS else steady)(dice, count)
                lines.append(make_line(node, shape, identity, np.rint(base * values / 4096) * 4096, time_ms))
                if leaks:
                    leaking[node, identity] = shape
        unit = Unit(node, "2026-03-01", "memory_anon", START_MS, int(time_ms[-1]), ())
        part = Part(unit)
        take_trends(part, Job("leaks"), lines, "bytes", lambda _: {})
        parts.append(part)
    return Fleet(build_answer(parts, [], Job("leaks"), "workload", 0.05), leaking)
