"""
A container as people mean it: a name in a pod, over all its restarts.

Each restart has an id of its own in the archive; a question about "api" is
about all its lives in the span, and a restart between two of them is itself
something to tell.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.base.text import clean_text, nearest_name
from nodescope.base.time_range import TimeRange
from nodescope.use.mcp.nodes.backend import ArchivedLife, clean_name
from nodescope.use.mcp.nodes.fleet import Fleet, Seat
from nodescope.use.mcp.protocol.errors import ToolMisused

# Shorter beginnings of an id are as likely a name.
SHORTEST_ID = 4
NAMED_MATCHES = 6
IS_ID = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Resident:
    """A named container of a node and its lives, oldest first."""

    node: str
    namespace: str
    pod: str
    container: str
    qos_class: str
    image: str
    lives: tuple[ArchivedLife, ...]

    @property
    def name(self) -> str:
        return self.lives[-1].name

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def first_ms(self) -> int:
        return self.lives[0].first_ms

    @property
    def last_ms(self) -> int:
        return self.lives[-1].last_ms

    @property
    def restarts(self) -> int:
        """As Kubernetes counts them where it was asked, and at least as many as were seen."""
        return max(len(self.lives) - 1, *(life.restarts for life in self.lives))

    def within(self, span: TimeRange) -> list[ArchivedLife]:
        return [life for life in self.lives if life.first_ms <= span.to_ms and life.last_ms >= span.from_ms]


def gather_residents(lives: Iterable[ArchivedLife]) -> list[Resident]:
    """Lives of one name in one pod belong together; a life without a name stands alone."""
    groups: dict[tuple[str, ...], list[ArchivedLife]] = {}
    for life in lives:
        named = life.pod and life.container
        key = (
            (life.node, life.namespace, life.pod, life.container) if named else (life.node, life.container_id)
        )
        groups.setdefault(key, []).append(life)
    found = []
    for group in groups.values():
        group.sort(key=lambda life: life.first_ms)
        last = group[-1]
        found.append(
            Resident(
                last.node, last.namespace, last.pod, last.container, last.qos_class, last.image, tuple(group)
            )
        )
    return sorted(found, key=lambda one: (one.node, one.namespace, one.name))


def match_residents(text: str, residents: Iterable[Resident]) -> list[Resident]:
    """By id, then by exact name, then by the beginning of a pod's name."""
    everybody = list(residents)
    text = "/".join(clean_name(part) for part in text.split("/"))
    if len(text) >= SHORTEST_ID and IS_ID.fullmatch(text):
        by_id = [one for one in everybody if any(life.container_id.startswith(text) for life in one.lives)]
        if by_id:
            return by_id
    exact = [one for one in everybody if text in (one.container, one.pod, one.name, one.full_name)]
    by_namespace = [one for one in everybody if text == f"{one.namespace}/{one.container}"]
    return exact or by_namespace or [one for one in everybody if one.pod and one.pod.startswith(text)]


async def find_resident(fleet: Fleet, text: str, node: str | None) -> tuple[Seat, Resident]:
    """The one container that is meant, wherever it is; else how to say which."""
    seats = fleet.choose(node)
    replies = await fleet.ask(seats, lambda backend: backend.read_lives(None))
    replies.need_one()
    everybody = gather_residents(life for lives in replies.answers.values() for life in lives)
    matches = match_residents(text, everybody)
    if len(matches) == 1:
        return seats[matches[0].node], matches[0]
    if matches:
        raise ToolMisused(tell_ambiguous(text, matches))
    away = f" (not asked: {', '.join(list(replies.away)[:5])}, which did not answer)" if replies.away else ""
    raise ToolMisused(tell_unknown(text, everybody, node) + away)


def tell_ambiguous(text: str, matches: list[Resident]) -> str:
    nodes = sorted({one.node for one in matches})
    shown = clean_text(text, 80)
    if len(nodes) > 1:
        listed = ", ".join(nodes[:NAMED_MATCHES]) + (" and more" if len(nodes) > NAMED_MATCHES else "")
        return f'container "{shown}" is on {len(nodes)} nodes; add "node", one of: {listed}'
    listed = ", ".join(f'"{one.full_name}"' for one in matches[:NAMED_MATCHES])
    more = f" and {len(matches) - NAMED_MATCHES} more" if len(matches) > NAMED_MATCHES else ""
    return f'container "{shown}" is ambiguous; say which: {listed}{more}'


def tell_unknown(text: str, everybody: list[Resident], node: str | None) -> str:
    names = {name for one in everybody for name in (one.container, one.pod, one.name) if name}
    near = nearest_name(text, names)
    hint = f'; did you mean "{near[:120]}"?' if near else ""
    where = f" on node {node}" if node else ""
    return f'no container "{clean_text(text, 80)}"{where}{hint} (list_containers names all {len(everybody)})'
