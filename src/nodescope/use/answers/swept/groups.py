"""Sums by namespace, workload or node: one curve for each group, the largest first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.container_table import NO_FILTER, Filter
from nodescope.use.answers.containers import Life
from nodescope.use.answers.incidents.signal import Signal
from nodescope.use.answers.incidents.table import Floats, Integers
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.ranked.outer import keep_outer
from nodescope.use.answers.snapshots import View
from nodescope.use.answers.swept.sheet import choose_signal, choose_step, cover_steps, sweep_lives

GroupKind = Literal["namespace", "workload", "node"]
GROUP_KINDS = get_args(GroupKind)
GROUPS_MOST = 16
# Slow containers are read every five seconds: in a shorter step some would be missing from the sum.
STEP_LEAST_MS = 5_000
NO_NAMESPACE = "no namespace"


@dataclass(frozen=True, slots=True)
class SummedGroup:
    """One group; NaN where none of its containers was measured."""

    key: str
    name: str
    node: str
    """Empty where it is on several."""
    containers: int
    mean: Floats


@dataclass(frozen=True, slots=True)
class GroupCurves:
    """The largest groups on one time axis, and the sum of the others."""

    metric: str
    unit: str
    join: str
    """sum, or max: shares of time are not added."""
    kind: str
    step_ms: int
    time_ms: Integers
    groups: tuple[SummedGroup, ...]
    total: int
    """How many groups there are; those that are not shown are in the last one together."""


def sum_groups(
    view: View,
    metric: str,
    kind: GroupKind,
    span: TimeRange,
    points: int,
    wanted: Filter = NO_FILTER,
    check: Callable[[], None] = lambda: None,
) -> GroupCurves:
    signal = choose_signal(metric)
    step_ms = max(STEP_LEAST_MS, choose_step(span, points))
    reach = cover_steps(span, step_ms)
    lives = filter_lives(view.lives(reach), wanted)
    curves: dict[str, list[Floats]] = {}
    members: dict[str, list[Life]] = {}
    time_ms = np.arange(reach.from_ms, reach.to_ms, step_ms, dtype=np.int64)
    for node in view.nodes:
        check()
        if node.to_ms is None:
            continue
        adding = keep_outer([life for life in lives if life.node == node.name], lambda life: life.subject)
        sheet = sweep_lives(view, node, reach, step_ms, adding, [signal])
        for key, rows in group_lives_by(sheet.lives, kind).items():
            members.setdefault(key, []).extend(sheet.lives[row] for row in rows)
            if signal.name in sheet.curves:
                curves.setdefault(key, []).append(sheet.add_up_to(len(time_ms), signal, rows))
    groups = [make_group(key, kind, members[key], join(signal, found)) for key, found in curves.items()]
    groups.sort(key=lambda one: (-float(np.nan_to_num(one.mean).sum()), one.key))
    shown = merge_rest(groups, signal)
    return GroupCurves(metric, signal.unit, signal.join, kind, step_ms, time_ms, tuple(shown), len(groups))


def group_lives_by(lives: Sequence[Life], kind: GroupKind) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, life in enumerate(lives):
        found.setdefault(name_group(life, kind), []).append(place)
    return found


def name_group(life: Life, kind: GroupKind) -> str:
    if kind == "node":
        return life.node
    namespace = life.namespace or NO_NAMESPACE
    return namespace if kind == "namespace" else f"{namespace}/{life.workload.name}"


def join(signal: Signal, curves: Sequence[Floats]) -> Floats:
    """Of several nodes."""
    if len(curves) == 1:
        return curves[0]
    stacked = np.stack(curves)
    known = np.isfinite(stacked)
    joined = (
        np.where(known, stacked, -np.inf).max(axis=0)
        if signal.join == "max"
        else np.where(known, stacked, 0.0).sum(axis=0)
    )
    found: Floats = np.where(known.any(axis=0), joined, np.nan)
    return found


def make_group(key: str, kind: GroupKind, lives: Sequence[Life], mean: Floats) -> SummedGroup:
    nodes = {life.node for life in lives}
    name = key.partition("/")[2] if kind == "workload" else key
    containers = len(
        {(life.node, life.namespace, life.pod or life.id, life.container_name) for life in lives}
    )
    return SummedGroup(key, name, next(iter(nodes)) if len(nodes) == 1 else "", containers, mean)


def merge_rest(groups: Sequence[SummedGroup], signal: Signal) -> list[SummedGroup]:
    if len(groups) <= GROUPS_MOST:
        return list(groups)
    shown, rest = list(groups[: GROUPS_MOST - 1]), groups[GROUPS_MOST - 1 :]
    mean = join(signal, [one.mean for one in rest])
    name = f"{len(rest)} others"
    return [*shown, SummedGroup("others", name, "", sum(one.containers for one in rest), mean)]
