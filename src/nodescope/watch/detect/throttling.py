"""
A workload that its own CPU quota holds back so often that its users wait.

A quota that runs out now and then hurts nobody. It does when a quarter of
all periods is cut over minutes and the container's tasks wait in that time.
A job has no users: it is told as curious. Where nobody says what is a job, and for whatever
starts up at its limit, a container is told of only once it is half an hour old. Whom an earlier
run of the agent knew is as old as that run says; others begin when they are first seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import inf, isfinite, isnan

from nodescope.base.quantity import render_number
from nodescope.base.time_range import render_time
from nodescope.watch.look import JOBS, ContainerLook, NodeLook, describe_subject
from nodescope.watch.moving import Held, MovingMean
from nodescope.watch.sighting import Sighting

MEAN_SECONDS = 120.0
ON_SHARE, OFF_SHARE = 0.25, 0.10
LEAST_WAIT = 0.05
SURE_SECONDS = 240.0
# A build, a test, a warm-up: most of what is new and busy is over by then, or calm.
LEAST_AGE_SECONDS = 1800.0
QUIET_SECONDS = 600.0
# Containers of which it is kept since when they are there.
KNOWN_MOST = 300


@dataclass(slots=True)
class QuotaPath:
    """How often one container's quota ran out lately."""

    share: MovingMean = field(default_factory=lambda: MovingMean(MEAN_SECONDS, 0.0))
    wait: MovingMean = field(default_factory=lambda: MovingMean(MEAN_SECONDS))
    held: Held = field(default_factory=lambda: Held(ON_SHARE, OFF_SHARE))
    seen: float = 0.0


@dataclass(slots=True)
class Throttling:
    quiet_seconds: float = QUIET_SECONDS
    _paths: dict[tuple[str, ...], QuotaPath] = field(default_factory=dict)
    _first: dict[tuple[str, ...], float] = field(default_factory=dict)
    """By container with a quota: when it was first seen."""
    _recalled: dict[str, float] = field(default_factory=dict)
    """By id, the same of an earlier run."""

    def look(self, look: NodeLook) -> list[Sighting]:
        found: dict[str, Sighting] = {}
        self._note_ages(look)
        for one in look.containers:
            sighting = self._follow(one, look)
            if sighting and is_worse(sighting, found.get(sighting.key)):
                found[sighting.key] = sighting
        self._paths = {key: path for key, path in self._paths.items() if path.seen == look.at}
        return list(found.values())

    def remember(self) -> dict[str, float]:
        return dict(islice(((short_id(key), first) for key, first in self._first.items()), KNOWN_MOST))

    def recall(self, known: Mapping[str, float]) -> None:
        self._recalled.update(known)

    def _note_ages(self, look: NodeLook) -> None:
        # A quota may be known a moment after its container.
        limited = [one.key for one in look.containers if one.quota != inf]
        fresh = {key: self._recalled.get(short_id(key), look.at) for key in limited if key not in self._first}
        self._first = {key: fresh[key] if key in fresh else self._first[key] for key in limited}

    def _follow(self, one: ContainerLook, look: NodeLook) -> Sighting | None:
        path = self._paths.get(one.key)
        # Most containers are never throttled and cost nothing here.
        if path is None and not one.throttled > 0:
            return None
        path = self._paths.setdefault(one.key, QuotaPath())
        path.seen = look.at
        share = path.share.add(one.throttled, look.seconds)
        wait = path.wait.add(one.wait_cpu, look.seconds)
        since = path.held.add(share, look.at)
        if since is None or wait < LEAST_WAIT:
            return None
        is_grown = look.at - self._first.get(one.key, look.at) >= LEAST_AGE_SECONDS
        is_sure = is_grown and look.at - since >= SURE_SECONDS and share >= ON_SHARE
        return describe_throttled(one, share, wait, since, is_sure=is_sure)


def short_id(key: tuple[str, ...]) -> str:
    return key[-1][:12]


def is_worse(one: Sighting, other: Sighting | None) -> bool:
    return other is None or float(one.evidence["throttled_share"] or 0) > float(
        other.evidence["throttled_share"] or 0
    )


def describe_throttled(
    one: ContainerLook, share: float, wait: float, since: float, *, is_sure: bool
) -> Sighting:
    subject = describe_subject(one.entity)
    quota = f" of {render_number(one.quota)} cores" if isfinite(one.quota) else ""
    waits = "" if isnan(wait) else f" and its tasks wait {100 * wait:.0f} % of the time"
    is_job = (one.entity.attribute("workload_kind") or "") in JOBS
    return Sighting(
        "cpu_throttling",
        "curious" if is_job else "hurt",
        subject,
        since,
        f"{subject.name} is held back by its CPU limit{quota} in {100 * share:.0f} % of all periods since "
        f"{render_time(since)}{waits}.",
        is_sure=is_sure,
        advice=f"nodescope rightsize --container {subject.container or subject.workload}",
        cause="its own CPU limit",
        victims=(subject.name,),
        evidence={
            "throttled_share": round(share, 4),
            "wait_share": wait,
            "limit_cores": one.quota,
            "used_cores": one.cpu,
        },
    )
