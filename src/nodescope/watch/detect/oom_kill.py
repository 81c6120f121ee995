"""Processes that the kernel killed for memory: told at once, counted while it goes on."""

from dataclasses import dataclass, field
from math import isfinite

from nodescope.base.frame import OOM_EXIT, Event
from nodescope.base.quantity import render_bytes
from nodescope.base.time_range import render_time
from nodescope.watch.look import NodeLook, describe_labels, describe_subject
from nodescope.watch.sighting import FindingSubject, Sighting

# An hour without a kill ends it.
QUIET_SECONDS = 3600.0
# A container's end and its counter tell of the same kill.
SAME_SECONDS = 30.0


@dataclass(slots=True)
class KillSeries:
    """The kills of one workload."""

    subject: FindingSubject
    first: float
    last: float
    count: int
    limit: float


@dataclass(slots=True)
class Kills:
    quiet_seconds: float = QUIET_SECONDS
    _series: dict[tuple[str, str, str], KillSeries] = field(default_factory=dict)
    _counted: dict[str, float] = field(default_factory=dict)
    """By container id: when the counter of a living container told of its kill."""

    def look(self, look: NodeLook) -> list[Sighting]:
        for one in look.containers:
            if one.kills >= 1:
                self._count(describe_subject(one.entity), look.at, round(one.kills), one.limit)
                self._counted[one.entity.ids[0]] = look.at
        for event in look.events:
            if event.kind == OOM_EXIT and event.scope == "container":
                self._note_end(event)
        self._forget(look.at)
        return [describe_kill(series) for series in self._series.values()]

    def _note_end(self, event: Event) -> None:
        at, identity = event.at_ns / 1e9, event.ids[0] if event.ids else ""
        subject = describe_labels(dict(event.labels), event.ids)
        limit = event.facts.get("memory_limit_bytes")
        told = self._counted.get(identity)
        if told is None or at - told > SAME_SECONDS:
            kills = event.facts.get("oom_kills")
            count = max(1, round(kills)) if isinstance(kills, int | float) and isfinite(kills) else 1
            self._count(subject, at, count, limit if isinstance(limit, int | float) else float("inf"))

    def _count(self, subject: FindingSubject, at: float, count: int, limit: float) -> None:
        place = (subject.namespace, subject.workload, subject.container)
        series = self._series.setdefault(place, KillSeries(subject, at, at, 0, limit))
        series.subject, series.last, series.limit = subject, at, limit
        series.count += count

    def _forget(self, now: float) -> None:
        self._series = {place: one for place, one in self._series.items() if now - one.last <= QUIET_SECONDS}
        self._counted = {one: at for one, at in self._counted.items() if now - at <= QUIET_SECONDS}


def describe_kill(series: KillSeries) -> Sighting:
    name, times = series.subject.name, "once" if series.count == 1 else f"{series.count} times"
    of = f" of {render_bytes(series.limit)}" if isfinite(series.limit) and series.limit > 0 else ""
    since = f" since {render_time(series.first)}" if series.count > 1 else ""
    return Sighting(
        "oom_kill",
        "kill",
        series.subject,
        series.first,
        f"{name} was killed for memory {times}{since}, last at {render_time(series.last)}: its limit{of} was reached.",
        is_sure=True,
        advice=f"nodescope study trend --metric memory --container {series.subject.container or name}",
        cause=name,
        evidence={"kills": series.count, "last_at": series.last, "limit_bytes": series.limit},
        count=series.count,
    )
