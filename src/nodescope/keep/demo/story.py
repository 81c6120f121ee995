"""What the demo is made of: the request, stories, containers, and seeded random numbers."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.entity import Entity
from nodescope.base.time_range import render_moment
from nodescope.keep.folder import MS_PER_HOUR

MIB = 2.0**20
FIRST_VERSION = "1.4.2"


@dataclass(frozen=True, slots=True)
class DemoStory:
    """What a service does: its demand of CPU (cores) and memory (bytes) at each second."""

    name: str
    namespace: str
    kind: str
    limit_bytes: float
    quota_cores: float
    """Infinite: no quota."""
    base_cores: float
    base_bytes: float
    phase: float
    """So that the services' waves do not coincide."""


@dataclass(slots=True)
class DemoLife:
    """One container: from its first second to its last, and its counters so far."""

    story: DemoStory
    container_id: str
    pod: str
    pod_uid: str
    start_ms: int
    end_ms: int
    """Exclusive."""
    ends_in_oom: bool = False
    restarts: int = 0
    version: str = FIRST_VERSION
    totals: dict[str, float] = field(default_factory=dict)
    peak_bytes: float = 0.0

    def entity(self) -> Entity:
        names = (
            ("namespace", self.story.namespace),
            ("pod", self.pod),
            ("container", self.story.name),
            ("image", f"registry.example/{self.story.name}:{self.version}"),
        )
        details = (
            ("container_id", self.container_id),
            ("pod_uid", self.pod_uid),
            ("qos", "Burstable" if math.isinf(self.story.quota_cores) else "Guaranteed"),
            ("restarts", str(self.restarts) if self.restarts else ""),
            ("owner", f"Deployment/{self.story.name}"),
        )
        return Entity("container", (self.container_id,), names, details)


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """What the command line asks for."""

    data: Path
    hours: float
    containers: int
    seed: int
    end_ms: int
    node: str
    number: int = 0
    """Its place in a fleet, from 0."""
    nodes: int = 1

    @property
    def start_ms(self) -> int:
        return self.end_ms - round(self.hours * MS_PER_HOUR)


def hexadecimal(*words: object) -> str:
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


def seeded_random(*words: object) -> np.random.Generator:
    """The same words give the same numbers."""
    return np.random.default_rng(int(hexadecimal(*words)[:15], 16))


NOISE_SECONDS = 4096


# A node of forty containers has some ninety kinds of noise; forty small files
# lie in one block of each.
@lru_cache(maxsize=512)
def noise_block(seed: int, node: str, name: str, number: int) -> Floats:
    return seeded_random(seed, node, name, number).standard_normal(NOISE_SECONDS)


def noise(request: DemoRequest, name: str, from_ms: int, count: int) -> Floats:
    """Unit noise that depends on the second, not on where a file begins."""
    first = from_ms // 1000
    blocks = range(first // NOISE_SECONDS, (first + count) // NOISE_SECONDS + 1)
    parts = [noise_block(request.seed, request.node, name, number) for number in blocks]
    offset = first % NOISE_SECONDS
    return np.concatenate(parts)[offset : offset + count]


def within(time_ms: Integers, from_ms: int, to_ms: int) -> NDArray[np.bool_]:
    return (time_ms >= from_ms) & (time_ms < to_ms)


@dataclass(slots=True)
class DemoNode:
    """Every container on the node, and what was planted in them."""

    lives: list[DemoLife]
    truth: list[dict[str, Any]]
    used: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    """By names, restarts included: the sum of its memory in every second, and the seconds."""


def make_life(
    request: DemoRequest,
    story: DemoStory,
    start_ms: int,
    end_ms: int,
    restarts: int = 0,
    version: str = FIRST_VERSION,
) -> DemoLife:
    """A restart keeps its pod; another version comes in another pod."""
    words = (request.seed, request.node, story.name) + ((version,) if version != FIRST_VERSION else ())
    uid = hexadecimal("pod", *words)
    return DemoLife(
        story,
        hexadecimal("container", *words, restarts),
        f"{story.name}-{uid[:9]}-{uid[9:14]}",
        f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}",
        start_ms,
        end_ms,
        restarts=restarts,
        version=version,
    )


def add_service(request: DemoRequest, node: DemoNode, story: DemoStory) -> DemoLife:
    """There from the first second to the last."""
    life = make_life(request, story, request.start_ms, request.end_ms)
    node.lives.append(life)
    return life


def span_of(from_ms: int, to_ms: int) -> dict[str, Any]:
    """As truth.json has it: for programs, and as studies print times."""
    when = f"{render_moment(from_ms)} to {render_moment(to_ms)}"
    return {"from": from_ms / 1000, "to": to_ms / 1000, "when": when}


def moment_of(at_ms: int) -> dict[str, Any]:
    return {"at": at_ms / 1000, "when": render_moment(at_ms)}


def note_truth(node: DemoNode, kind: str, lives: Sequence[DemoLife], metric_name: str, **facts: Any) -> None:
    life = lives[0]
    node.truth.append(
        {
            "kind": kind,
            "namespace": life.story.namespace,
            "pod": life.pod,
            "container": life.story.name,
            "container_ids": [one.container_id for one in lives],
            "metric": metric_name,
            **facts,
        }
    )
