"""
Deploys and restarts: a workload before and after its containers were replaced, and what came with it.

A takeover is a moment at which containers of a workload ended and others took
their place: a rollout with a new image, pods that moved to another node, a
container that was restarted in its pod. Starts within ten minutes of each
other are one takeover. What ended is compared with what took its place, per
pod and in sum; Jobs come and go, which is no takeover.

    for one in find_takeovers(workload.workload.kind, lives, span):
        print(one.render())     with a new image, shop/catalog:1.5 instead of shop/catalog:1.4
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodescope.base.quantity import is_share, render_count, render_number, render_quantity
from nodescope.base.text import render_metric
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Life
from nodescope.use.answers.levels import MetricLevel
from nodescope.use.answers.ranked.recorded import record_whole
from nodescope.use.answers.ranked.span_use import SpanUse, add_up

# Within this time of a start the one that it replaces has ended: an image is pulled, a pod drained.
HANDOVER_MS = 300_000
# Replicas are replaced one by one; so long after the last start the rollout is over.
ROLLOUT_MS = 600_000
# After its start a container reads its caches; a span that has the room begins later.
SETTLE_MS = 30_000
# Shorter than this on either side, nothing is compared.
SHORTEST_MS = 20_000
# Smaller changes of a level are not told: a fifth of the larger, of a share of time five points.
MATERIAL_SHARE, MATERIAL_POINTS = 0.2, 0.05
# Below this in both, a ratio says nothing.
IDLE = {"cores": 0.01, "bytes": 4 * 2**20, "bytes/s": 4096.0, "GPUs": 0.02}
RUNS = ("Job", "CronJob")
COMPARED = (
    *("cpu", "memory", "memory_anon", "cpu_throttled", "pressure_cpu", "pressure_memory", "pressure_io"),
    *("memory_limit", "cpu_limit", "gpu", "gpu_memory"),
)


@dataclass(frozen=True, slots=True)
class Takeover:
    """Containers that ended and those that took their place, and the spans in which each is measured."""

    at_ms: int
    done_ms: int
    before: tuple[Life, ...]
    after: tuple[Life, ...]
    before_span: TimeRange
    after_span: TimeRange

    @property
    def images(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return list_images(self.before), list_images(self.after)

    @property
    def has_new_image(self) -> bool:
        """Also where one of several images is new; what is not known is not new."""
        before, after = self.images
        return bool(before and set(after) - set(before))

    @property
    def is_restart(self) -> bool:
        """In the same pods."""
        pods = {life.pod for life in self.before if life.pod}
        return all(life.pod in pods or not life.pod for life in self.after)

    @property
    def new_nodes(self) -> tuple[str, ...]:
        return tuple(sorted({life.node for life in self.after} - {life.node for life in self.before}))

    @property
    def kind(self) -> str:
        return "deploy" if self.has_new_image else "restart" if self.is_restart else "new_pods"

    @property
    def is_measurable(self) -> bool:
        return all(span.to_ms - span.from_ms >= SHORTEST_MS for span in (self.before_span, self.after_span))

    def render(self) -> str:
        """What came with it: `with a new image, web:2 instead of web:1, on another node (w-2)`."""
        before, after = self.images
        words = {"restart": "with a restart", "new_pods": "with new pods"}.get(self.kind)
        if words is None:
            new = next(image for image in after if image not in before)
            words = f"with a new image, {new} instead of {before[-1]}"
        return f"{words}, on another node ({', '.join(self.new_nodes)})" if self.new_nodes else words


def list_images(lives: Iterable[Life]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(life.image for life in lives if life.image))


def find_takeovers(kind: str, lives: Sequence[Life], span: TimeRange) -> list[Takeover]:
    """In order of time; `kind` is the workload's."""
    if kind in RUNS:
        return []
    ordered = sorted(lives, key=lambda life: life.first_ms)
    ended = sorted((life.last_ms, place) for place, life in enumerate(ordered))
    replaced = [
        (life, gone)
        for life in ordered
        if span.from_ms < life.first_ms <= span.to_ms
        and (gone := find_replaced(life, list_near(life.first_ms, ordered, ended)))
    ]
    groups: list[list[tuple[Life, list[Life]]]] = []
    for life, gone in replaced:
        if groups and life.first_ms - groups[-1][-1][0].first_ms <= ROLLOUT_MS:
            groups[-1].append((life, gone))
        else:
            groups.append([(life, gone)])
    return list(make_takeovers(groups, span))


def list_near(at_ms: int, lives: Sequence[Life], ended: Sequence[tuple[int, int]]) -> list[Life]:
    """Those that ended about then, in their order; of a crash loop's hundreds a few. `ended`: when each did, and its place."""
    first = bisect_left(ended, (at_ms - HANDOVER_MS, -1))
    end = bisect_left(ended, (at_ms + HANDOVER_MS + 1, -1))
    return [lives[place] for place in sorted(place for _, place in ended[first:end])]


def find_replaced(life: Life, near: Sequence[Life]) -> list[Life]:
    """Those whose place it took: they were there before it, and ended about when it began."""
    return [
        one
        for one in near
        if one.first_ms < life.first_ms
        and one.last_ms < life.last_ms
        and one.container_name == life.container_name
    ]


def make_takeovers(
    groups: Sequence[Sequence[tuple[Life, list[Life]]]], span: TimeRange
) -> Iterable[Takeover]:
    begins = [group[0][0].first_ms for group in groups]
    ends = [
        max(group[-1][0].first_ms, *(one.last_ms for _, gone in group for one in gone)) for group in groups
    ]
    for group, at_ms, done_ms, since, until in zip(
        groups, begins, ends, [span.from_ms, *ends], [*begins[1:], span.to_ms], strict=False
    ):
        new = {life.id: life for life, _ in group if life.last_ms > done_ms}
        old = {one.id: one for _, gone in group for one in gone if one.first_ms < at_ms}
        settled = done_ms + (SETTLE_MS if until - done_ms > 10 * SETTLE_MS else 0)
        yield Takeover(
            at_ms,
            done_ms,
            tuple(old.values()),
            tuple(new.values()),
            TimeRange(min(since, at_ms), at_ms),
            TimeRange(min(settled, until), until),
        )


# -- before and after ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LevelChange:
    """One metric before and after a takeover."""

    takeover: Takeover
    metric: str
    unit: str
    before: SpanUse
    after: SpanUse

    @property
    def ratio(self) -> float | None:
        """Per pod, after to before; None where there was nothing before."""
        return self.after.per_pod / self.before.per_pod if self.before.per_pod > 0 else None

    @property
    def is_material(self) -> bool:
        first, second = self.before.per_pod, self.after.per_pod
        if is_share(self.unit):
            return abs(second - first) >= MATERIAL_POINTS
        larger = max(abs(first), abs(second))
        return larger > IDLE.get(self.unit, 0.0) and abs(second - first) >= MATERIAL_SHARE * larger

    @property
    def weight(self) -> float:
        """How much it changed: of itself, or in points of time."""
        first, second = self.before.per_pod, self.after.per_pod
        larger = max(abs(first), abs(second))
        return abs(second - first) if is_share(self.unit) else abs(second - first) / larger if larger else 0.0

    def render(self) -> str:
        """`twice the CPU per pod since 14:05, with a new image`, with both levels."""
        first, second = (render_quantity(one.per_pod, self.unit) for one in (self.before, self.after))
        what = render_metric(self.metric)
        factor = "" if is_share(self.unit) else render_factor(self.ratio)
        per = " per pod" if max(self.before.pods, self.after.pods) > 1 else ""
        said = f"{factor} {what}{per}" if factor else f"{what}{per}"
        since = render_moment(self.takeover.at_ms)
        return f"{said} since {since}, {self.takeover.render()}: {first} before, {second} after{self.render_sum()}"

    def render_sum(self) -> str:
        """Where the number of pods changed, what all of them take."""
        if is_share(self.unit) or self.before.pods == self.after.pods:
            return ""
        first, second = (render_quantity(one.mean, self.unit) for one in (self.before, self.after))
        pods = f"{self.before.pods} and {render_count(self.after.pods, 'pod')}"
        return f"; in sum {first} before, {second} after ({pods})"

    def facts(self) -> dict[str, str | int | float | None]:
        """As the evidence of a finding."""
        images = self.takeover.images
        return {
            "before": self.before.per_pod,
            "after": self.after.per_pod,
            "magnitude": self.after.per_pod - self.before.per_pod,
            "before_sum": self.before.mean,
            "after_sum": self.after.mean,
            "pods_before": self.before.pods,
            "pods_after": self.after.pods,
            "came_with": self.takeover.kind,
            "image_before": images[0][-1] if images[0] else None,
            "image_after": images[1][-1] if images[1] else None,
        }


def render_factor(ratio: float | None) -> str:
    """Twice the, 1.4 times the, half the; empty where there is no ratio, or nearly none."""
    if ratio is None or ratio <= 0 or 0.95 < ratio < 1.05:
        return ""
    for factor, word in ((2.0, "twice the"), (3.0, "three times the"), (0.5, "half the")):
        if abs(ratio / factor - 1) <= 0.07:
            return word
    return f"{render_number(round(ratio, 2) if ratio < 10 else ratio)} times the"


def compare_levels(
    takeover: Takeover, metric: str, unit: str, before: Sequence[MetricLevel], after: Sequence[MetricLevel]
) -> LevelChange | None:
    """None where either side has no sample."""
    sides = ((takeover.before, before, takeover.before_span), (takeover.after, after, takeover.after_span))
    uses = [
        add_up(lives, {one.id: one for one in levels}, record_whole(span), unit)
        for lives, levels, span in sides
    ]
    first, second = uses
    return LevelChange(takeover, metric, unit, first, second) if first and second else None


def tell_limits(changes: Sequence[LevelChange]) -> Mapping[int, str]:
    """By the moment of a takeover: the limits that came with it, where they changed."""
    found: dict[int, str] = {}
    for one in changes:
        if one.metric in ("memory_limit", "cpu_limit") and one.ratio not in (None, 1.0):
            levels = (render_quantity(side.per_pod, one.unit) for side in (one.after, one.before))
            said = f"{render_metric(one.metric)} {' instead of '.join(levels)}"
            at_ms = one.takeover.at_ms
            found[at_ms] = f"{found[at_ms]}, {said}" if at_ms in found else said
    return found
