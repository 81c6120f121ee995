"""
A container whose memory rises steadily towards its limit, told before it is killed.

Page cache does not count: the kernel gives it back. Somebody is told when a straight
rise has gone about two fifths of its way and half of the limit is used, or when the limit is
minutes away. Earlier, anything that fills its heap looks the same. A rise that began with its
container, or was there before the watcher, is told when it is near the limit, unless the workload was
killed before: most of those level off. What a container of the workload held before without being
killed is no news, and of one that goes up and down a new height is news beyond its deepest fall.
Where the node is short, it is told of those who took what is missing: all others only grow beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from nodescope.base.frame import OOM_EXIT
from nodescope.base.quantity import render_bytes, render_seconds, render_slope
from nodescope.base.time_range import render_time
from nodescope.watch.ladder import WIDTHS, Ladder
from nodescope.watch.look import ContainerLook, NodeLook, describe_subject
from nodescope.watch.rise import SteadyRise, find_rise, goes_on_since
from nodescope.watch.sighting import Sighting

# Less than this share of the limit, or so many bytes, is no growth.
LEAST_SHARE = 0.02
LEAST_BYTES = 8 * 2**20
# Told when the limit is at most so many times as far away as the rise has lasted.
FAR_RATIO = 1.4
# A rise of less than this has to come nearer: within minutes an index is built, or a file written to memory.
SHORT_SECONDS = 900.0
# With less of its limit in use nothing is short yet, unless the limit is so near.
LEAST_HELD_SHARE = 0.5
URGENT_SECONDS = 1800.0
# Suspected from here on; further away it is nothing yet.
SUSPECT_RATIO = 4.0
# A kill that is further away than this is worth knowing, and no reason to get up.
SOON_SECONDS = 6 * 3600.0
NEAR_SHARE = 0.92
# It was as high before and fell again: a heap that is collected, or a worker that is replaced.
# From there on it has to rise by this share of the limit, or by as much as it fell.
RECORD_SHARE = 0.03
# A container has settled when its last hour, in buckets of twelve minutes, was
# hardly higher than what was before.
SETTLED_LEVEL = 2
SETTLED_BUCKETS = 5
SETTLED_SHARE = 0.01
# Workloads of which it is known how much they hold.
KNOWN_MOST = 1000
# Of what it grew so much is gone: a heap was collected, whatever its last bucket says.
LOST_SHARE = 0.5
# Of what the node lost since a rise began, the part that is the rise's own.
TAKEN_SHARE = 0.25
# A rise that stopped is looked at for so long before it is over.
QUIET_SECONDS = 600.0


@dataclass(slots=True)
class MemoryPath:
    """One container's memory so far."""

    first: float
    place: str
    """Its workload, as all replicas and lives of it have it."""
    ladder: Ladder = field(default_factory=Ladder)
    rises: dict[int, SteadyRise] = field(default_factory=dict)
    """By level of the ladder: the rise that was found when its last bucket was completed."""
    seen: float = 0.0
    highest: float = 0.0

    def began_with_it(self, rise: SteadyRise) -> bool:
        return goes_on_since(self.ladder, rise, self.first)

    def end_broken(self, held: float) -> None:
        """Rises that what is held now has left: their last bucket was still one of them."""
        broken = [level for level, rise in self.rises.items() if held < rise.low - LOST_SHARE * rise.grown]
        for level in broken:
            del self.rises[level]

    def find_settled(self, least: float) -> float:
        """What it held before the last hour, if it has not gone beyond since; 0 where it has, or is too young."""
        highs = [one.high for one in self.ladder.levels[SETTLED_LEVEL]]
        before = max(highs[:-SETTLED_BUCKETS], default=0.0)
        return before if before and max(highs[-SETTLED_BUCKETS:]) <= before + least else 0.0


@dataclass(slots=True)
class Leaks:
    quiet_seconds: float = QUIET_SECONDS
    known: dict[str, float] = field(default_factory=dict)
    """By workload: the most that a container of it held without a rise, and was not killed for."""
    killed: dict[str, float] = field(default_factory=dict)
    """By workload: when it was last killed for memory."""
    _available: Ladder = field(default_factory=Ladder)
    """What the node had left."""
    _paths: dict[tuple[str, ...], MemoryPath] = field(default_factory=dict)

    def look(self, look: NodeLook) -> list[Sighting]:
        found: dict[str, Sighting] = {}
        if isfinite(look.available_bytes):
            self._available.add(look.at, look.available_bytes)
        for one in look.containers:
            sighting = self._follow(one, look) if isfinite(one.held) else None
            # Of ten replicas the one that is killed first stands for all.
            if sighting and is_sooner(sighting, found.get(sighting.key)):
                found[sighting.key] = sighting
        self._forget(look)
        return list(found.values())

    def _forget(self, look: NodeLook) -> None:
        """Containers that ended; what they held is known unless they were killed, or rose to the end."""
        killed = {event.ids[0] for event in look.events if event.kind == OOM_EXIT and event.ids}
        for key, path in list(self._paths.items()):
            if path.seen == look.at:
                continue
            del self._paths[key]
            if killed.intersection(key):
                # What was survived before says nothing any more.
                self.killed[path.place] = look.at
                self.known.pop(path.place, None)
            elif not path.rises:
                self._survive(path, path.highest)
        for kept in (self.known, self.killed):
            while len(kept) > KNOWN_MOST:
                del kept[next(iter(kept))]

    def _survive(self, path: MemoryPath, most: float) -> None:
        """It holds so much and does not rise: its workload can hold that."""
        self.known[path.place] = max(most, self.known.get(path.place, 0.0))

    def remember(self) -> dict[str, float]:
        return dict(self.known)

    def recall(self, known: Mapping[str, float]) -> None:
        self.known.update(known)

    def _follow(self, one: ContainerLook, look: NodeLook) -> Sighting | None:
        path = self._paths.get(one.key)
        if path is None:
            path = self._paths[one.key] = MemoryPath(look.at, name_place(one))
        path.seen, path.highest = look.at, max(path.highest, one.held)
        limit = bound_limit(one, look)
        closed = path.ladder.add(look.at, one.held)
        for level in closed:
            rise = find_rise(path.ladder.levels[level], WIDTHS[level], least_growth(one, look))
            path.rises.pop(level, None)
            if rise:
                path.rises[level] = rise
        if SETTLED_LEVEL in closed:
            self._survive(path, path.find_settled(SETTLED_SHARE * limit))
        path.end_broken(one.held)
        rise = choose_rise(path, limit)
        if rise and limit < own_limit(one) and not self._took(rise, look):
            limit = own_limit(one)
            rise = choose_rise(path, limit)
        if rise is None or rise.seconds_to(limit) > SUSPECT_RATIO * rise.span_seconds:
            return None
        if rise.high < self._find_news(path, rise, limit):
            return None
        is_sure = is_leak(one, path, rise, limit, is_known=path.place in self.killed)
        return describe_leak(one, rise, limit, is_sure=is_sure)

    def _took(self, rise: SteadyRise, look: NodeLook) -> bool:
        """Whether a good part of what the node lost since is its own."""
        before = self._available.find(rise.since)
        return before is None or rise.grown >= TAKEN_SHARE * (before.low - look.available_bytes)

    def _find_news(self, path: MemoryPath, rise: SteadyRise, limit: float) -> float:
        """The height from which on a rise is news."""
        highest, fall = path.ladder.look_back(rise.since)
        # The last fall is where the rise begins.
        fall = max(fall, highest - (rise.low - rise.grown))
        record = max(highest, self.known.get(path.place, 0.0))
        beyond = min(record + fall, NEAR_SHARE * limit)
        return max(record + RECORD_SHARE * limit, beyond)


def least_growth(one: ContainerLook, look: NodeLook) -> float:
    """Of its own limit, or of the node: where the node is full, who grew by little is not why."""
    bound = bound_limit(one, look)
    whole = bound if one.limit <= bound else look.memory_bytes
    return max(LEAST_BYTES, LEAST_SHARE * whole) if isfinite(whole) else LEAST_BYTES


def bound_limit(one: ContainerLook, look: NodeLook) -> float:
    """Its own limit, or what the node has left."""
    left = one.held + look.available_bytes if isfinite(look.available_bytes) else inf
    return min(own_limit(one), left)


def own_limit(one: ContainerLook) -> float:
    return one.limit if one.limit > 0 else inf


def choose_rise(path: MemoryPath, limit: float) -> SteadyRise | None:
    """Of the levels that see one, the rise that has lasted longest for what it still has to go."""
    if not isfinite(limit):
        return None
    return max(
        path.rises.values(), key=lambda rise: rise.span_seconds / (rise.seconds_to(limit) + 1.0), default=None
    )


def is_sooner(one: Sighting, other: Sighting | None) -> bool:
    if other is None or one.is_sure != other.is_sure:
        return other is None or one.is_sure
    return (one.time_to_limit_seconds or 0.0) < (other.time_to_limit_seconds or 0.0)


def is_leak(one: ContainerLook, path: MemoryPath, rise: SteadyRise, limit: float, *, is_known: bool) -> bool:
    """Whether somebody should be told."""
    left = rise.seconds_to(limit)
    lasted = 1.0 if is_known else min(1.0, rise.span_seconds / SHORT_SECONDS)
    if left > FAR_RATIO * lasted * rise.span_seconds or rise.ends_at < limit:
        return False
    if rise.high < LEAST_HELD_SHARE * limit and left > URGENT_SECONDS:
        return False
    if one.held >= NEAR_SHARE * limit:
        return True
    return is_known or not path.began_with_it(rise)


def name_place(one: ContainerLook) -> str:
    subject = describe_subject(one.entity)
    return f"{subject.namespace}|{subject.workload}|{subject.container}"


def describe_leak(one: ContainerLook, rise: SteadyRise, limit: float, *, is_sure: bool) -> Sighting:
    subject = describe_subject(one.entity)
    left = rise.seconds_to(limit)
    is_own = one.limit <= limit
    bound = f"its limit of {render_bytes(limit)}" if is_own else "all that the node has left"
    sentence = (
        f"{subject.name} reaches {bound} in {render_seconds(left)} and is killed then: it holds "
        f"{render_bytes(one.held)} and rises by {render_slope(rise.per_second, 'bytes')} since {render_time(rise.since)}."
    )
    evidence = {
        "held_bytes": one.held,
        "limit_bytes": limit,
        "rise_bytes_per_second": rise.per_second,
        "rise_seconds": rise.span_seconds,
        "highest_bytes": rise.high,
        "is_own_limit": is_own,
    }
    return Sighting(
        "memory_leak",
        "kill" if left <= SOON_SECONDS else "curious",
        subject,
        rise.since,
        sentence,
        is_sure,
        f"nodescope study trend --metric memory --container {subject.container or subject.workload}",
        cause=subject.name,
        time_to_limit_seconds=left,
        evidence=evidence,
    )
