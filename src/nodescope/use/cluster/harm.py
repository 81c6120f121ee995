"""
Who is worst, and why, in one sentence a node.

Each thing that is wrong has a weight by its consequence: a kill before
tasks that wait, waiting before a node that is merely full. A node's weight is
that of its worst; the sentence tells the two worst. Weights only rank: they
are shown nowhere. They are a judgement, not a measurement.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nodescope.base.quantity import render_count, render_quantity, render_seconds
from nodescope.base.text import clean_name, clean_text
from nodescope.base.time_range import TimeRange, render_time
from nodescope.use.answers.axis import Floats
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.cluster.measure import MEASURES, RESOURCES, Drawn

# From here on a node counts as hurt.
HURT_WEIGHT = 1.0
# A node that does not answer may be the worst of all: below one with kills, above one that waits.
SILENT_WEIGHT = 2.5
KILL_WEIGHT = 3.0
FINDING_WEIGHTS = {"kill": 2.8, "hurt": 1.8}
# Mean shares of a range from which on people notice.
WAITED_SHARE, THROTTLED_SHARE, FULL_SHARE = 0.1, 0.25, 0.9
FULL_TIME_SHARE = 0.1
RESTARTS_MANY = 3
WORDS = {"cpu": "CPU", "memory": "memory", "io": "I/O"}


@dataclass(frozen=True, slots=True)
class Harm:
    """How bad, and why."""

    weight: float
    sentence: str
    container: str = ""
    """The life that it is about, where it is about one."""

    @property
    def is_hurt(self) -> bool:
        return self.weight >= HURT_WEIGHT


def judge_silence(reason: str, newest_ms: int) -> Harm:
    last = f" Its newest sample is of {render_time(newest_ms / 1000)}." if newest_ms else ""
    return Harm(SILENT_WEIGHT, f"It does not answer: {clean_text(reason, 200)}.{last}")


def judge_node(drawn: Drawn) -> Harm:
    """The worst two reasons of the range; of a calm node how busy it is."""
    found = sorted(list_harms(drawn), key=lambda one: -one.weight)
    if not found:
        return Harm(calm_weight(drawn), describe_calm(drawn))
    named = next((one.container for one in found if one.container), "")
    return Harm(found[0].weight, " ".join(one.sentence for one in found[:2]), named)


def list_harms(drawn: Drawn) -> Iterator[Harm]:
    span = drawn.cells.span
    events = drawn.node.events_in(span)
    yield from judge_kills([one for one in events if one.kind == "oom"])
    yield from judge_findings(drawn, span)
    yield from judge_pressure(drawn)
    yield from judge_throttling(drawn)
    yield from judge_fullness(drawn)
    yield from judge_restarts([one for one in events if one.kind == "restart"])


def judge_kills(kills: list[ContainerEvent]) -> Iterator[Harm]:
    if kills:
        last = kills[-1]
        count = f"{render_count(len(kills), 'OOM kill')}, the last of" if len(kills) > 1 else "OOM kill of"
        sentence = f'{count} "{clean_name(last.name)}" at {render_time(last.at_ms / 1000)}.'
        yield Harm(KILL_WEIGHT + min(len(kills), 50) / 100, sentence, last.id)


def judge_findings(drawn: Drawn, span: TimeRange) -> Iterator[Harm]:
    told = [one for one in drawn.node.findings_in(span) if one.severity in FINDING_WEIGHTS]
    for one in sorted(told, key=lambda one: (-FINDING_WEIGHTS[one.severity], -one.onset_ms))[:1]:
        weight = FINDING_WEIGHTS[one.severity] + min(len(told), 10) / 100
        yield Harm(weight, clean_text(one.sentence, 300))


def judge_pressure(drawn: Drawn) -> Iterator[Harm]:
    for resource in RESOURCES:
        values = drawn.row(f"pressure_{resource}")
        mean, most, at_ms = tell_level(drawn, values)
        if mean >= WAITED_SHARE or most >= 4 * WAITED_SHARE:
            shares = f"{render_quantity(mean, 'ratio')} of the time, most {render_quantity(most, 'ratio')}"
            sentence = f"Tasks waited for {WORDS[resource]} {shares} at {render_time(at_ms / 1000)}."
            yield Harm(HURT_WEIGHT + min(1.0, max(mean, most / 4)), sentence)


def judge_throttling(drawn: Drawn) -> Iterator[Harm]:
    mean, most, at_ms = tell_level(drawn, drawn.row("throttled"))
    if mean >= THROTTLED_SHARE:
        shares = f"{render_quantity(mean, 'ratio')} of its periods, most {render_quantity(most, 'ratio')}"
        sentence = f"A container was throttled in {shares} at {render_time(at_ms / 1000)}."
        yield Harm(HURT_WEIGHT + mean / 2, sentence)


def judge_fullness(drawn: Drawn) -> Iterator[Harm]:
    """For a tenth of the range or more: a mean would hide an hour in a day."""
    for name, word in (("memory", "Memory"), ("cpu", "CPU")):
        if name == "cpu" and not drawn.node.cores:
            continue
        values = MEASURES[name].read(drawn)
        full = int((values[np.isfinite(values)] >= FULL_SHARE).sum())
        share = full / max(1, int(np.isfinite(values).sum()))
        if share >= FULL_TIME_SHARE:
            most = render_quantity(tell_level(drawn, values)[1], "ratio")
            length = render_seconds(full * drawn.cells.step_ms / 1000)
            sentence = (
                f"{word} was {render_quantity(FULL_SHARE, 'ratio')} or more in use for {length}, most {most}."
            )
            yield Harm(HURT_WEIGHT + share / 10, sentence)


def judge_restarts(restarts: list[ContainerEvent]) -> Iterator[Harm]:
    if len(restarts) >= RESTARTS_MANY:
        last = restarts[-1]
        when = render_time(last.at_ms / 1000)
        sentence = f'{len(restarts)} restarts, the last of "{clean_name(last.name)}" at {when}.'
        yield Harm(HURT_WEIGHT + min(len(restarts), 40) / 50, sentence, last.id)


def tell_level(drawn: Drawn, values: Floats) -> tuple[float, float, int]:
    """Mean, most, and when that was; zeros where nothing was measured."""
    places = np.flatnonzero(np.isfinite(values))
    if not places.size:
        return 0.0, 0.0, drawn.cells.from_ms
    # Seven times for each node and zoom: numpy's nanargmax takes several times as long.
    measured = values[places]
    most = int(measured.argmax())
    at_ms = drawn.cells.from_ms + int(places[most]) * drawn.cells.step_ms
    return float(measured.mean()), float(measured[most]), at_ms


def calm_weight(drawn: Drawn) -> float:
    """Among nodes that are well the busier ones come first."""
    shares = (tell_level(drawn, MEASURES[name].read(drawn))[0] for name in ("cpu", "memory"))
    return min(0.9, max(shares) * 0.9)


def describe_calm(drawn: Drawn) -> str:
    parts = []
    for name, word in (("cpu", "CPU"), ("memory", "memory")):
        values = MEASURES[name].read(drawn)
        if np.isfinite(values).any() and (name != "cpu" or drawn.node.cores):
            parts.append(f"{word} {render_quantity(tell_level(drawn, values)[0], 'ratio')}")
    if not np.isfinite(drawn.values).any():
        return "Nothing was measured in this range."
    return f"{', '.join(parts)}; nothing unusual." if parts else "Nothing unusual."
