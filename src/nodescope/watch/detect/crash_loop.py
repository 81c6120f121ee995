"""
A container that ends and is started again, and again.

Counted by what a restart keeps: the pod and the container's name, or the id
of a container that its runtime restarts. Hundreds of short jobs of one
queue are pods of their own, each of which ends once. Who was there before the last one
ended was not started for it. Where nobody knows names, all containers of a pod are one
place, and those that run before its others end once each: it takes more.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from nodescope.base.frame import ENDS, Event
from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import render_time
from nodescope.watch.look import NodeLook, describe_labels
from nodescope.watch.sighting import FindingSubject, Sighting

# Kubelet's back-off ends at five minutes between two starts: three ends are seen in a quarter of an hour.
WINDOW_SECONDS = 1200.0
LEAST_ENDS, LEAST_NAMELESS_ENDS = 3, 5
# A life and the end before it are told with the seconds of two ticks.
SAME_SECONDS = 2.0
# Who ran for so long did not crash at its start.
LONG_LIFE_SECONDS = 600.0
PLACES_MOST = 2000


@dataclass(slots=True)
class EndSeries:
    """Ends of one place, newest last."""

    subject: FindingSubject
    ends: deque[float] = field(default_factory=lambda: deque(maxlen=100))
    lived: float = 0.0
    count: int = 0
    first: float = 0.0

    @property
    def is_loop(self) -> bool:
        is_known = is_named(self.subject) or not self.subject.pod_uid
        return len(self.ends) >= (LEAST_ENDS if is_known else LEAST_NAMELESS_ENDS)


@dataclass(slots=True)
class CrashLoops:
    quiet_seconds: float = 60.0
    _series: dict[tuple[str, str], EndSeries] = field(default_factory=dict)

    def look(self, look: NodeLook) -> list[Sighting]:
        for event in look.events:
            if event.kind in ENDS and event.scope == "container":
                self._note(event)
        self._forget(look.at)
        found: dict[str, Sighting] = {}
        for series in self._series.values():
            if series.is_loop:
                sighting = describe_loop(series)
                found[sighting.key] = sighting
        return list(found.values())

    def _note(self, event: Event) -> None:
        given = event.facts.get("lifetime_seconds")
        lived = float(given) if isinstance(given, int | float) else None
        if lived is not None and lived > LONG_LIFE_SECONDS:
            return
        labels = dict(event.labels)
        subject = describe_labels(labels, event.ids)
        place = (labels.get("pod_uid") or subject.container_id, subject.container)
        at = event.at_ns / 1e9
        series = self._series.setdefault(place, EndSeries(subject, first=at))
        # Of one that was there before the agent nobody knows when it began.
        if series.ends and (lived is None or at - lived < series.ends[-1] - SAME_SECONDS):
            return
        if not is_named(subject):
            # Every life has an id of its own: the first stands for all of them.
            subject = replace(subject, workload=series.subject.workload)
        series.subject, series.lived = subject, lived or 0.0
        series.ends.append(at)
        series.count += 1

    def _forget(self, now: float) -> None:
        for series in self._series.values():
            while series.ends and now - series.ends[0] > WINDOW_SECONDS:
                series.ends.popleft()
        self._series = {place: one for place, one in self._series.items() if one.ends}
        while len(self._series) > PLACES_MOST:
            del self._series[next(iter(self._series))]


def is_named(subject: FindingSubject) -> bool:
    return bool(subject.pod or subject.container)


def describe_loop(series: EndSeries) -> Sighting:
    name = series.subject.name
    return Sighting(
        "crash_loop",
        "hurt",
        series.subject,
        series.first,
        f"{name} ended {series.count} times since {render_time(series.first)} and is started again each time; "
        f"its last life took {render_seconds(series.lived)}.",
        is_sure=True,
        advice=f"kubectl logs --previous {series.subject.pod}" if series.subject.pod else "",
        cause=name,
        victims=(name,),
        evidence={
            "ends": series.count,
            "ends_in_window": len(series.ends),
            "last_life_seconds": series.lived,
        },
    )
