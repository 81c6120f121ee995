"""
A file system that is full or will be: pods are evicted, and whoever writes fails.

What is mounted read-only is as full as it was made. A file system that was as full before and
was emptied again, as logs are rotated and images are removed, is no news up to there. One that has filled since
the watcher first saw it may be on its way to its first rotation: until it is full nobody is woken. Nor is anybody for
an image that is pulled within minutes, up to the height at which images are removed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from nodescope.base.quantity import render_bytes, render_seconds
from nodescope.watch.ladder import WIDTHS, Ladder
from nodescope.watch.look import DiskLook, NodeLook
from nodescope.watch.moving import Held
from nodescope.watch.rise import SteadyRise, find_rise, goes_on_since
from nodescope.watch.sighting import FindingSubject, Sighting

# Of the file system; kubelet evicts at 10 % free by default, and 15 % for images.
FULL_SHARE, OFF_SHARE = 0.95, 0.92
# A rise is told from here on, or when the end is near.
RISE_SHARE = 0.7
# Below this nothing is short: only there the kubelet, by default, begins to remove images.
SHORT_SHARE = 0.85
FAR_RATIO = 2.0
FAR_SECONDS = 12 * 3600.0
LEAST_SHARE = 0.005
QUIET_SECONDS = 900.0
# One that is full later than this is worth knowing, and no reason to get up.
SOON_SECONDS = 3 * 3600.0
# Of the file system: it was emptied by at least so much, or is fuller than ever by so much.
EMPTIED_SHARE = 0.03
RECORD_SHARE = 0.01


@dataclass(slots=True)
class DiskPath:
    first: float
    ladder: Ladder = field(default_factory=Ladder)
    rises: dict[int, SteadyRise] = field(default_factory=dict)
    held: Held = field(default_factory=lambda: Held(FULL_SHARE, OFF_SHARE))
    highest: float = 0.0
    """Since it was emptied last."""
    emptied: float = 0.0
    """How much was used when it was emptied, at the most."""

    def note(self, used: float, size: float) -> None:
        if self.highest - used > EMPTIED_SHARE * size:
            self.emptied, self.highest = max(self.emptied, self.highest), used
        self.highest = max(self.highest, used)

    def knows_its_course(self, rise: SteadyRise | None) -> bool:
        """It was emptied before, or level."""
        return self.emptied > 0 or (rise is not None and not goes_on_since(self.ladder, rise, self.first))


@dataclass(slots=True)
class FullDisks:
    quiet_seconds: float = QUIET_SECONDS
    _paths: dict[str, DiskPath] = field(default_factory=dict)

    def look(self, look: NodeLook) -> list[Sighting]:
        there = {one.mountpoint for one in look.disks}
        self._paths = {name: path for name, path in self._paths.items() if name in there}
        found = [self._follow(one, look.at) for one in look.disks]
        return [one for one in found if one]

    def remember(self) -> dict[str, float]:
        return {name: path.emptied for name, path in self._paths.items() if path.emptied}

    def recall(self, known: Mapping[str, float]) -> None:
        for name, emptied in known.items():
            self._paths[name] = DiskPath(inf, emptied=emptied)

    def _follow(self, one: DiskLook, now: float) -> Sighting | None:
        path = self._paths.setdefault(one.mountpoint, DiskPath(now))
        path.first = min(path.first, now)
        used = one.size - one.available
        for level in path.ladder.add(now, used):
            rise = find_rise(path.ladder.levels[level], WIDTHS[level], LEAST_SHARE * one.size)
            path.rises.pop(level, None)
            if rise:
                path.rises[level] = rise
        path.note(used, one.size)
        since = path.held.add(used / one.size, now)
        rise = choose_rise(path, one.size)
        if rise and rise.high < path.emptied + RECORD_SHARE * one.size:
            rise = None
        if since is None and rise is None:
            return None
        found = describe_disk(one, since, rise, now)
        is_urgent = since is not None or path.knows_its_course(rise)
        return found if is_urgent else replace(found, severity="curious")


def choose_rise(path: DiskPath, size: float) -> SteadyRise | None:
    return max(
        path.rises.values(), key=lambda rise: rise.span_seconds / (rise.seconds_to(size) + 1.0), default=None
    )


def is_filling(one: DiskLook, rise: SteadyRise | None) -> bool:
    if rise is None:
        return False
    left = rise.seconds_to(one.size)
    is_high = 1 - one.available / one.size >= RISE_SHARE
    return left <= min(FAR_RATIO * rise.span_seconds, FAR_SECONDS) and (is_high or left <= 1800)


def describe_disk(one: DiskLook, since: float | None, rise: SteadyRise | None, now: float) -> Sighting:
    share = 1 - one.available / one.size
    left = rise.seconds_to(one.size) if rise else None
    state = f"{one.mountpoint} is {100 * share:.0f} % full, {render_bytes(one.available)} are left"
    path = f", and is full in {render_seconds(left)} at this pace" if left is not None else ""
    is_short = share >= SHORT_SHARE and (left is None or left <= SOON_SECONDS)
    return Sighting(
        "disk_full",
        "kill" if since is not None or is_short else "curious",
        FindingSubject(device=one.mountpoint),
        min(since if since is not None else now, rise.since if rise else now),
        f"{state}{path}: pods are evicted and writes fail then.",
        is_sure=since is not None or is_filling(one, rise),
        advice="nodescope metrics filesystem",
        cause=one.mountpoint,
        time_to_limit_seconds=left,
        evidence={
            "used_share": round(share, 4),
            "available_bytes": one.available,
            "size_bytes": one.size,
            "rise_bytes_per_second": rise.per_second if rise else None,
        },
    )
