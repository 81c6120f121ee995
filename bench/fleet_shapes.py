"""
Memory as services have it, for leaks and changes that no demo planted.

The demo's leak is a straight line from a third of its limit to all of it, and
what does not leak there stands still. Here leaks are small, late, in steps or
under a sawtooth, and what does not leak fills a cache, warms up, collects
garbage, walks at random, follows its traffic. Only some replicas of a leaking
workload leak, as some requests do. The change is a new image on a third of the
nodes that takes a seventh more memory, or twice as much, of any of these shapes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.studies_sets import autoregressive
from nodescope.keep.label_columns import LABELS, Subject
from nodescope.read.query.bucket import Points
from nodescope.read.series_name import name_of
from nodescope.use.answers.timeseries import MeasuredSeries
from nodescope.use.fleet.answer import FleetAnswer, build_answer
from nodescope.use.fleet.unit import Job, Unit, UnitAnswer
from nodescope.use.fleet.worker import add_changes, add_trends
from nodescope.use.studies.series import FloatArray

MIB = 2.0**20
FALSE_SHARE = 0.05
START_MS = 1_772_323_200_000
Dice = np.random.Generator
Times = NDArray[np.int64]
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
    height = float(dice.uniform(0.05, 0.3))
    return np.asarray(steady(dice, count) + height * np.sin(2 * np.pi * np.arange(count) / period + phase))


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
    """An answer, and which containers have what was planted."""

    answer: FleetAnswer
    planted: dict[tuple[str, str], str]
    """(node, container id) -> shape."""


def make_line(
    node: str, shape: str, dice: Dice, size: FloatArray, time_ms: Times, version: int = 1
) -> MeasuredSeries:
    identity = dice.bytes(32).hex()
    names = {
        "l_container_id": identity,
        "l_pod_name": f"{shape}-6d4cf56db6-{identity[:5]}",
        "l_namespace": "shop",
        "l_node_name": node,
        "l_container_name": shape,
        "l_scope": "container",
    }
    details = {"image": f"{shape}:{version}", "owner": f"Deployment/{shape}"}
    subject = Subject(tuple(names.get(name) for name in LABELS), details)
    whole = np.rint(size / 4096) * 4096
    points = Points(time_ms, whole, whole, whole, np.ones(len(whole), np.int64))
    return MeasuredSeries(identity, name_of(subject), node, "container", subject, points)


def base_of(dice: Dice) -> float:
    return float(dice.uniform(50, 2000)) * MIB


def seconds_ms(count: int) -> Times:
    return START_MS + 1000 * np.arange(count, dtype=np.int64)


def key_of(line: MeasuredSeries) -> tuple[str, str]:
    return line.subject.label("l_node_name") or "", line.subject.label("l_container_id") or ""


def ask_leaks(seed: int, nodes: int, hours: float) -> Fleet:
    """Every shape on every node; of the leaking ones a third of the replicas leaks."""
    dice = np.random.default_rng(seed)
    time_ms = seconds_ms(round(hours * 3600))
    job = Job("leaks")
    parts: list[UnitAnswer] = []
    planted: dict[tuple[str, str], str] = {}
    for number in range(nodes):
        node = f"node-{number + 1}"
        lines: list[MeasuredSeries] = []
        for shape, make in {**LEAKS, **OTHERS}.items():
            leaks = shape in LEAKS and bool(dice.random() < 1 / 3)
            size = base_of(dice) * (make if leaks or shape in OTHERS else steady)(dice, len(time_ms))
            lines.append(make_line(node, shape, dice, size, time_ms))
            if leaks:
                planted[key_of(lines[-1])] = shape
        part = UnitAnswer(Unit(node, "2026-03-01", "memory_anon", START_MS, int(time_ms[-1]), ()))
        add_trends(part, job, lines, "bytes", lambda _: {})
        parts.append(part)
    return Fleet(build_answer(parts, [], job, "workload", FALSE_SHARE), planted)


def ask_changes(seed: int, nodes: int) -> Fleet:
    """An hour around the rollout of one workload, whatever its shape; the others go on."""
    dice = np.random.default_rng(seed)
    time_ms = seconds_ms(3600)
    at_ms = START_MS + 1_800_000
    job = Job("changes", at_ms, 120_000)
    rolled = str(dice.choice(list(OTHERS)))
    factor = 1 + rise(dice, 0.15, 1.0)
    parts: list[UnitAnswer] = []
    planted: dict[tuple[str, str], str] = {}
    for number in range(nodes):
        node = f"node-{number + 1}"
        lines: list[MeasuredSeries] = []
        for shape, make in OTHERS.items():
            base, sizes = base_of(dice), make(dice, len(time_ms))
            if shape != rolled or number % 3:
                lines.append(make_line(node, shape, dice, base * sizes, time_ms))
                continue
            end = 1800 + int(dice.integers(0, 30))
            start = end + int(dice.integers(2, 20))
            lines.append(make_line(node, shape, dice, base * sizes[:end], time_ms[:end]))
            size = base * factor * sizes[start:]
            lines.append(make_line(node, shape, dice, size, time_ms[start:], version=2))
            planted[key_of(lines[-1])] = shape
        part = UnitAnswer(Unit(node, "2026-03-01", "memory", START_MS, int(time_ms[-1]), ()))
        add_changes(part, job, lines, "bytes")
        parts.append(part)
    return Fleet(build_answer(parts, [], job, "workload", FALSE_SHARE), planted)
