"""A container that asks for much more than it used in a whole day: others could have it."""

from dataclasses import dataclass, field
from math import isfinite

from nodescope.base.quantity import render_bytes, render_number
from nodescope.watch.look import ContainerLook, NodeLook, describe_subject
from nodescope.watch.moving import MovingMean
from nodescope.watch.sighting import Sighting

DAY_SECONDS = 86_400.0
# Below this share of its request, in the busiest minute.
LEAST_USED = 0.25
LEAST_CORES = 1.0
LEAST_BYTES = 2.0**30
MINUTE_SECONDS = 60.0


@dataclass(slots=True)
class UseTrack:
    """The busiest minute of one container."""

    first: float
    seen: float = 0.0
    cpu: MovingMean = field(default_factory=lambda: MovingMean(MINUTE_SECONDS))
    most_cores: float = 0.0
    most_bytes: float = 0.0


@dataclass(slots=True)
class Waste:
    quiet_seconds: float = 3600.0
    _tracks: dict[tuple[str, ...], UseTrack] = field(default_factory=dict)

    def look(self, look: NodeLook) -> list[Sighting]:
        found: dict[str, Sighting] = {}
        for one in look.containers:
            sighting = self._follow(one, look)
            if sighting:
                found[sighting.key] = sighting
        self._tracks = {key: track for key, track in self._tracks.items() if track.seen == look.at}
        return list(found.values())

    def _follow(self, one: ContainerLook, look: NodeLook) -> Sighting | None:
        cores, size = read_request(one, "cpu_request"), read_request(one, "memory_request")
        if cores < LEAST_CORES and size < LEAST_BYTES:
            return None
        track = self._tracks.setdefault(one.key, UseTrack(look.at))
        track.seen = look.at
        used = track.cpu.add(one.cpu, look.seconds)
        track.most_cores = max(track.most_cores, used if isfinite(used) else 0.0)
        track.most_bytes = max(track.most_bytes, one.held if isfinite(one.held) else size)
        if look.at - track.first < DAY_SECONDS:
            return None
        parts = list(list_waste(track, cores, size))
        return describe_waste(one, track, parts) if parts else None


def read_request(one: ContainerLook, name: str) -> float:
    """0 where none is known."""
    try:
        return float(one.entity.attribute(name) or 0)
    except ValueError:
        return 0.0


def list_waste(track: UseTrack, cores: float, size: float) -> list[str]:
    parts = []
    if cores >= LEAST_CORES and track.most_cores < LEAST_USED * cores:
        parts.append(f"{render_number(track.most_cores)} of {render_number(cores)} cores")
    if size >= LEAST_BYTES and track.most_bytes < LEAST_USED * size:
        parts.append(f"{render_bytes(track.most_bytes)} of {render_bytes(size)} memory")
    return parts


def describe_waste(one: ContainerLook, track: UseTrack, parts: list[str]) -> Sighting:
    subject = describe_subject(one.entity)
    return Sighting(
        "waste",
        "waste",
        subject,
        track.first,
        f"{subject.name} used at most {' and '.join(parts)} that it requests, in a day or more.",
        is_sure=True,
        advice=f"nodescope rightsize --container {subject.container or subject.workload}",
        cause=subject.name,
        evidence={"most_cores": track.most_cores, "most_bytes": track.most_bytes},
    )
