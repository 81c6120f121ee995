"""
Who is worst, and why, in one sentence a node.

Each thing that is wrong has a weight by its consequence: a kill before
tasks that wait, waiting before a node that is merely full. A node's weight is
that of its worst; the sentence tells the two worst. Weights only rank: they
are shown nowhere. They are a judgement, not a measurement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nodescope.base.quantity import render_count, render_quantity, render_seconds
from nodescope.base.text import clean_name, clean_text
from nodescope.base.time_range import TimeRange, render_time
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.minutes.node_minutes import CellRequest
from nodescope.use.cluster.measure import MEASURES, RESOURCES, Drawn, Level

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

Levels = Mapping[str, Level]
"""Of one node: by measure, and by single resource that tasks waited for."""


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


def judge_node(drawn: Drawn, levels: Levels) -> Harm:
    """The worst two reasons of the range; of a calm node how busy it is."""
    found = sorted(list_harms(drawn, levels), key=lambda one: -one.weight)
    if not found:
        return Harm(calm_weight(levels), describe_calm(drawn, levels))
    named = next((one.container for one in found if one.container), "")
    return Harm(found[0].weight, " ".join(one.sentence for one in found[:2]), named)


def list_harms(drawn: Drawn, levels: Levels) -> Iterator[Harm]:
    span = drawn.cells.span
    events = drawn.node.events_in(span)
    yield from judge_kills([one for one in events if one.kind == "oom"])
    yield from judge_findings(drawn, span)
    yield from judge_pressure(drawn.cells, levels)
    yield from judge_throttling(drawn.cells, levels["throttled"])
    yield from judge_fullness(drawn, levels)
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


def judge_pressure(cells: CellRequest, levels: Levels) -> Iterator[Harm]:
    for resource in RESOURCES:
        level = levels[f"pressure_{resource}"]
        if level.mean >= WAITED_SHARE or level.most >= 4 * WAITED_SHARE:
            sentence = f"Tasks waited for {WORDS[resource]} {tell_shares(cells, level, 'of the time')}."
            yield Harm(HURT_WEIGHT + min(1.0, max(level.mean, level.most / 4)), sentence)


def judge_throttling(cells: CellRequest, level: Level) -> Iterator[Harm]:
    if level.mean >= THROTTLED_SHARE:
        sentence = f"A container was throttled in {tell_shares(cells, level, 'of its periods')}."
        yield Harm(HURT_WEIGHT + level.mean / 2, sentence)


def tell_shares(cells: CellRequest, level: Level, whole: str) -> str:
    mean, most = (render_quantity(one, "ratio") for one in (level.mean, level.most))
    at_ms = cells.from_ms + level.place * cells.step_ms
    return f"{mean} {whole}, most {most} at {render_time(at_ms / 1000)}"


def judge_fullness(drawn: Drawn, levels: Levels) -> Iterator[Harm]:
    """For a tenth of the range or more: a mean would hide an hour in a day."""
    for name, word in (("memory", "Memory"), ("cpu", "CPU")):
        level = levels[name]
        if level.most < FULL_SHARE or (name == "cpu" and not drawn.node.cores):
            continue
        full = int((MEASURES[name].read(drawn) >= FULL_SHARE).sum())
        share = full / level.measured
        if share >= FULL_TIME_SHARE:
            length = render_seconds(full * drawn.cells.step_ms / 1000)
            least, most = (render_quantity(one, "ratio") for one in (FULL_SHARE, level.most))
            sentence = f"{word} was {least} or more in use for {length}, most {most}."
            yield Harm(HURT_WEIGHT + share / 10, sentence)


def judge_restarts(restarts: list[ContainerEvent]) -> Iterator[Harm]:
    if len(restarts) >= RESTARTS_MANY:
        last = restarts[-1]
        when = render_time(last.at_ms / 1000)
        sentence = f'{len(restarts)} restarts, the last of "{clean_name(last.name)}" at {when}.'
        yield Harm(HURT_WEIGHT + min(len(restarts), 40) / 50, sentence, last.id)


def calm_weight(levels: Levels) -> float:
    """Among nodes that are well the busier ones come first."""
    return min(0.9, max(levels["cpu"].mean, levels["memory"].mean) * 0.9)


def describe_calm(drawn: Drawn, levels: Levels) -> str:
    parts = []
    for name, word in (("cpu", "CPU"), ("memory", "memory")):
        if levels[name].measured and (name != "cpu" or drawn.node.cores):
            parts.append(f"{word} {render_quantity(levels[name].mean, 'ratio')}")
    if not np.isfinite(drawn.values).any():
        return "Nothing was measured in this range."
    return f"{', '.join(parts)}; nothing unusual." if parts else "Nothing unusual."
