"""What happened to workloads as such: kills, restarts, new images; and whether that was so before."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.use.answers.containers import Life
from nodescope.use.answers.incidents.table import NodeTable, WorkloadRow

# So many restarts in a span are a loop.
LOOP_RESTARTS = 3
# A killed container that had filled this share of its own limit was killed for that.
OWN_LIMIT_SHARE = 0.9
# A loop that restarted at least at this share of its pace before the span is background.
SAME_PACE = 0.3


@dataclass(frozen=True, slots=True)
class Kill:
    """One OOM kill of a container."""

    row: int
    at_ms: int
    life: Life
    limit_bytes: float
    """Infinite where it is not known."""
    most_bytes: float | None = None
    """The most memory in use in the minute before, page cache included; None where it was not measured."""

    @property
    def was_full(self) -> bool:
        """It had filled its own limit; also where nothing says otherwise."""
        if self.most_bytes is None or self.limit_bytes == float("inf"):
            return True
        return self.most_bytes >= OWN_LIMIT_SHARE * self.limit_bytes


@dataclass(frozen=True, slots=True)
class Deploy:
    """A workload's containers came back with another image."""

    row: int
    at_ms: int
    image_before: str
    image_after: str


@dataclass(frozen=True, slots=True)
class Loop:
    """A container that restarts again and again."""

    row: int
    restarts: int
    from_ms: int
    was_before: bool
    known_ms: int
    """How long it was seen before the span."""


def find_deploys(table: NodeTable) -> list[Deploy]:
    """The newest in the span of each workload."""
    return [one for place, row in enumerate(table.rows) if (one := find_deploy(table, place, row))]


def find_deploy(table: NodeTable, place: int, row: WorkloadRow) -> Deploy | None:
    newest = row.lives[-1].image
    first = next((life for life in row.lives if life.image == newest), None)
    earlier = [life for life in row.lives if life.image and life.image != newest]
    if not newest or first is None or not earlier or first.first_ms < table.time_of(table.begin):
        return None
    return Deploy(place, first.first_ms, earlier[-1].image, newest)


def find_loops(table: NodeTable) -> list[Loop]:
    return [one for place, row in enumerate(table.rows) if (one := find_loop(table, place, row))]


def find_loop(table: NodeTable, place: int, row: WorkloadRow) -> Loop | None:
    """Of containers that came back in their own pod; a job's next run is another pod."""
    starts = list_restarts(row.lives)
    begin_ms, end_ms = table.time_of(table.begin), table.time_of(table.steps)
    inside = [one for one in starts if begin_ms <= one <= end_ms]
    if len(inside) < LOOP_RESTARTS:
        return None
    earlier = [one for one in starts if one < begin_ms]
    known_ms = begin_ms - min(life.first_ms for life in row.lives)
    pace = len(inside) / max(1, end_ms - begin_ms)
    was_before = bool(earlier) and len(earlier) >= SAME_PACE * pace * max(1, known_ms)
    return Loop(place, len(inside), inside[0], was_before, max(0, known_ms))


def list_restarts(lives: Sequence[Life]) -> list[int]:
    """When containers came back in their own pod."""
    seen: set[tuple[str, str]] = set()
    found = []
    for life in sorted(lives, key=lambda one: one.first_ms):
        place = (life.subject.label("l_pod_uid") or life.pod, life.container_name)
        if place in seen:
            found.append(life.first_ms)
        seen.add(place)
    return found
