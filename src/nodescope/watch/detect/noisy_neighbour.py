"""
One workload takes CPU, disk or memory, and others wait for it since.

Every container has what it used and waited in the last minute beside its own
usual half hour. Victims wait more than they usually do; for CPU, what their own
quota makes them wait does not count. The cause is the workload whose use rose
most since, if it alone is a good part of all that rose. While somebody waits,
"usual" stands still: what lasts does not become usual within the hour. Who asked for no CPU
gets what others leave: it is no victim of one that asked. Where only jobs wait, no user does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, isfinite, isnan

from nodescope.base.entity import Entity
from nodescope.base.quantity import render_bytes, render_number
from nodescope.base.time_range import render_time
from nodescope.watch.look import JOBS, RESOURCES, ContainerLook, NodeLook, describe_subject
from nodescope.watch.sighting import Sighting

FAST_SECONDS, SLOW_SECONDS = 60.0, 1800.0
# The mean of a minute has crossed its threshold after about a third of one.
DELAY_SECONDS = FAST_SECONDS / 3
# Of a victim: its wait now, beside what is usual for it.
LEAST_WAIT, LEAST_MORE = 0.10, 0.08
# One that waits so much is enough; otherwise it takes two.
HARD_WAIT = 0.25
# A victim has a usual half hour only after some minutes of it.
LEAST_AGE_SECONDS = 180.0
# The watcher has just started: everybody is new to it.
START_SECONDS = 300.0
# Of all that rose, the cause's own part.
LEAST_SHARE = 0.4
# Of the node, at the least: cores, bytes a second, bytes.
LEAST_CORES_SHARE = 0.1
LEAST_DISK = 5e6
LEAST_MEMORY_SHARE = 0.02
# As long as a quota must hold a workload back: a build of three minutes is no reason to get up.
SURE_SECONDS = 240.0
QUIET_SECONDS = 300.0
FROZEN_SECONDS = 2 * 3600.0
# Almost all of its time in its own quota: nothing else is to be seen there.
MOST_THROTTLED = 0.95

WHAT = {"cpu": "CPU", "io": "the disk", "memory": "memory"}


@dataclass(slots=True)
class Habit:
    """What a container uses and waits: now, and usually; both by resource."""

    first: float
    entity: Entity
    name: str
    """Of its workload."""
    use: list[float]
    usual_use: list[float]
    wait: list[float]
    usual_wait: list[float]
    seen: float = 0.0


@dataclass(slots=True)
class Crowding:
    """Of one resource: since when somebody waits more than usual."""

    since: float | None = None
    last: float = 0.0
    causes: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By workload: since when it takes most, and when it was last seen to."""

    def blame(self, cause: str, now: float) -> float:
        """Since when this one is the cause: who comes in the last minute of another's crowding has not made it."""
        first, last = self.causes.get(cause, (now, now))
        if now - last > FAST_SECONDS:
            first = now
        self.causes[cause] = (first, now)
        return first - DELAY_SECONDS


@dataclass(slots=True)
class Neighbours:
    quiet_seconds: float = QUIET_SECONDS
    _habits: dict[tuple[str, ...], Habit] = field(default_factory=dict)
    _crowding: dict[str, Crowding] = field(default_factory=lambda: {name: Crowding() for name in RESOURCES})
    _started: float | None = None

    def look(self, look: NodeLook) -> list[Sighting]:
        if self._started is None:
            self._started = look.at
        self._learn(look)
        found = [self._judge(place, name, look) for place, name in enumerate(RESOURCES)]
        return [one for one in found if one]

    def _learn(self, look: NodeLook) -> None:
        seconds = look.seconds if isfinite(look.seconds) else 0.0
        fast, slow = 1 - exp(-seconds / FAST_SECONDS), 1 - exp(-seconds / SLOW_SECONDS)
        slows = [0.0 if self._is_frozen(name, look.at) else slow for name in RESOURCES]
        is_start = self._started is not None and look.at - self._started < START_SECONDS
        for one in look.containers:
            use, wait = (one.cpu, one.disk, one.held), measure_waits(one)
            habit = self._habits.get(one.key)
            if habit is None:
                if not isnan(one.cpu):
                    self._habits[one.key] = begin_habit(look.at, one, use, wait, is_start=is_start)
                continue
            habit.seen = look.at
            if habit.entity is not one.entity:
                # Names may come later than the container.
                habit.entity, habit.name = one.entity, name_workload(one)
            for place in range(len(RESOURCES)):
                follow(habit.use, habit.usual_use, place, use[place], fast, slows[place])
                follow(habit.wait, habit.usual_wait, place, wait[place], fast, slows[place])
        self._habits = {key: one for key, one in self._habits.items() if one.seen == look.at}

    def _is_frozen(self, resource: str, now: float) -> bool:
        since = self._crowding[resource].since
        return since is not None and now - since < FROZEN_SECONDS

    def _judge(self, place: int, resource: str, look: NodeLook) -> Sighting | None:
        crowding = self._crowding[resource]
        waiting = self._list_waiting(place, look)
        rises = self._list_rises(place, look)
        cause = choose_cause(resource, rises, look)
        victims = [pair for pair in waiting if cause is None or name_workload(pair[1]) != cause]
        if resource == "cpu" and cause and not is_best_effort(rises[cause][1]):
            victims = [pair for pair in victims if not is_best_effort(pair[1])]
        if not is_crowded(victims):
            if crowding.since is not None and look.at - crowding.last > QUIET_SECONDS:
                crowding.since = None
                crowding.causes.clear()
            return None
        crowding.last = look.at
        if crowding.since is None:
            crowding.since = look.at - DELAY_SECONDS
        if cause is None:
            return None
        since = max(crowding.since, crowding.blame(cause, look.at))
        return describe_neighbour(resource, cause, rises, victims, since, look)

    def _list_waiting(self, place: int, look: NodeLook) -> list[tuple[float, ContainerLook]]:
        """Who waits more than usual, the worst first."""
        found = []
        for one in look.containers:
            habit = self._habits.get(one.key)
            if habit is None or look.at - habit.first < LEAST_AGE_SECONDS:
                continue
            wait = habit.wait[place]
            if wait >= LEAST_WAIT and wait >= habit.usual_wait[place] + LEAST_MORE:
                found.append((wait, one))
        return sorted(found, key=lambda pair: -pair[0])

    def _list_rises(self, place: int, look: NodeLook) -> dict[str, tuple[float, ContainerLook]]:
        """By workload: how much more it uses than usually, and one of its containers."""
        found: dict[str, tuple[float, ContainerLook]] = {}
        for one in look.containers:
            habit = self._habits.get(one.key)
            if habit is None:
                continue
            more = habit.use[place] - habit.usual_use[place]
            if more > 0:
                before = found.get(habit.name, (0.0, one))
                found[habit.name] = (before[0] + more, one)
        return found


def begin_habit(
    now: float, one: ContainerLook, use: Sequence[float], wait: Sequence[float], *, is_start: bool
) -> Habit:
    """Who comes later used nothing before; at the watcher's own start everybody is as usual."""
    used = [0.0 if isnan(value) else value for value in use]
    waits = [0.0 if isnan(value) else value for value in wait]
    usual = list(used) if is_start else [0.0] * len(used)
    return Habit(now, one.entity, name_workload(one), used, usual, waits, list(waits), now)


def follow(now: list[float], usual: list[float], place: int, value: float, fast: float, slow: float) -> None:
    if not isnan(value):
        now[place] += fast * (value - now[place])
        usual[place] += slow * (value - usual[place])


def measure_waits(one: ContainerLook) -> tuple[float, float, float]:
    """Waiting for others: of CPU without what its own quota makes it wait."""
    throttled = 0.0 if isnan(one.throttled) else one.throttled
    rest = 1.0 - throttled
    others = 1.0 - (1.0 - one.wait_cpu) / rest if throttled < MOST_THROTTLED else 0.0
    return min(max(others, 0.0), 1.0), one.wait_io, one.wait_memory


def name_workload(one: ContainerLook) -> str:
    return describe_subject(one.entity).name


def is_best_effort(one: ContainerLook) -> bool:
    """Its pod asks for nothing, so that everybody else goes first."""
    return one.entity.attribute("qos") == "BestEffort"


def is_job(one: ContainerLook) -> bool:
    return (one.entity.attribute("workload_kind") or "") in JOBS


def is_crowded(victims: Sequence[tuple[float, ContainerLook]]) -> bool:
    return len(victims) >= 2 or any(wait >= HARD_WAIT for wait, _ in victims)


def choose_cause(
    resource: str, rises: Mapping[str, tuple[float, ContainerLook]], look: NodeLook
) -> str | None:
    """The workload that rose most, if that is enough to be felt."""
    if not rises:
        return None
    name = max(rises, key=lambda key: rises[key][0])
    most, total = rises[name][0], sum(more for more, _ in rises.values())
    least = {
        "cpu": LEAST_CORES_SHARE * max(look.cores, 1),
        "io": LEAST_DISK,
        "memory": LEAST_MEMORY_SHARE * (look.memory_bytes if isfinite(look.memory_bytes) else 0.0),
    }[resource]
    return name if most >= least and most >= LEAST_SHARE * total else None


def describe_neighbour(
    resource: str,
    cause: str,
    rises: Mapping[str, tuple[float, ContainerLook]],
    victims: Sequence[tuple[float, ContainerLook]],
    since: float,
    look: NodeLook,
) -> Sighting:
    more, one = rises[cause]
    names = list(dict.fromkeys(name_workload(victim) for _, victim in victims))
    worst = victims[0][0]
    taken = f"{render_number(more)} cores" if resource == "cpu" else render_bytes(more)
    taken += "/s" if resource == "io" else ""
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    subject = describe_subject(one.entity)
    return Sighting(
        "noisy_neighbour",
        "curious" if all(is_job(victim) for _, victim in victims) else "hurt",
        replace(subject, container="", device=resource),
        since,
        f"{cause} takes {taken} more than usual since {render_time(since)}; {names[0]}{others} "
        f"{'wait' if others else 'waits'} for {WHAT[resource]} up to {100 * worst:.0f} % of the time.",
        is_sure=look.at - since >= SURE_SECONDS,
        advice=f"nodescope incidents --at {round(since)}",
        cause=cause,
        victims=tuple(names),
        evidence={"resource": resource, "more": more, "worst_wait_share": worst, "waiting": len(victims)},
    )
