"""
A container as people mean it: a name in a pod of a node, over all its restarts; and how one is found.

Each restart has an id of its own in the archive: one life. Where a node has no
containers, its services stand in for them and are found in the same way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count
from nodescope.base.text import clean_path, clean_text, nearest_name
from nodescope.base.time_range import TimeRange
from nodescope.base.workload import Workload
from nodescope.read.series_name import Subject, id_of, name_of, scope_of, workload_of
from nodescope.use.answers.ranked.recorded import Recorded


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """How a container ended, as its runtime told the API."""

    code: int
    reason: str
    """Completed, Error, OOMKilled and so on."""


@dataclass(frozen=True, slots=True)
class Life:
    """A container (or service) of a node from its first to its last sample; a restart begins another."""

    id: str
    name: str
    """pod/container for people; a short id where names are not known."""
    node: str
    subject: Subject

    @property
    def scope(self) -> str:
        return scope_of(self.subject)

    @property
    def namespace(self) -> str:
        return self.subject.label("l_namespace") or ""

    @property
    def pod(self) -> str:
        return self.subject.label("l_pod_name") or ""

    @property
    def container_name(self) -> str:
        """Without its pod; a service's name."""
        return self.subject.label("l_container_name") or ("" if self.scope == "container" else self.name)

    @property
    def qos_class(self) -> str:
        return self.subject.label("l_qos_class") or ""

    @property
    def image(self) -> str:
        return self.subject.details.get("image") or ""

    @property
    def workload(self) -> Workload:
        return workload_of(self.subject, self.node)

    def request(self, resource: str) -> float | None:
        """Cores (`cpu`) or bytes (`memory`) that its specification requests; None where nobody said."""
        try:
            value = float(self.subject.details.get(f"{resource}_request") or "nan")
        except ValueError:
            return None
        return value if isfinite(value) else None

    @property
    def restarts(self) -> int:
        """As Kubernetes counts them; 0 where it does not say."""
        text = self.subject.details.get("restarts") or ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    def exit_before(self, before: "Life") -> ContainerExit | None:
        """How the run before this one ended, where the API said it of that very run."""
        words = (self.subject.details.get("previous_exit") or "").split()
        if len(words) != 3 or not before.id.startswith(words[2]) or not words[0].lstrip("-").isdigit():
            return None
        return ContainerExit(int(words[0]), words[1])

    @property
    def first_ms(self) -> int:
        return self.subject.first_ms

    @property
    def last_ms(self) -> int:
        return self.subject.last_ms

    def is_within(self, span: TimeRange) -> bool:
        return self.first_ms <= span.to_ms and self.last_ms >= span.from_ms


def make_life(subject: Subject, node: str, suffix: str = "") -> Life:
    """The suffix tells a service from one of the same name on another node."""
    return Life(id_of(subject, suffix), name_of(subject), node, subject)


# A container that missed so many seconds is gone: slow tables come every 30 s.
GONE_MS = 35_000


@dataclass(frozen=True, slots=True)
class Container:
    """One name in one pod, or in all pods of a workload, and its lives, oldest first."""

    lives: tuple[Life, ...]
    title: str = ""
    """The workload's name, where its lives are of a workload."""

    @property
    def newest(self) -> Life:
        return self.lives[-1]

    @property
    def node(self) -> str:
        return self.newest.node

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({life.node for life in self.lives}))

    @property
    def pods(self) -> tuple[str, ...]:
        """Oldest first; empty where it is in no pod."""
        return tuple(dict.fromkeys(life.pod for life in self.lives if life.pod))

    @property
    def name(self) -> str:
        return self.title or self.newest.name

    @property
    def full_name(self) -> str:
        namespace = self.newest.namespace
        return f"{namespace}/{self.name}" if namespace else self.name

    @property
    def first_ms(self) -> int:
        return self.lives[0].first_ms

    @property
    def last_ms(self) -> int:
        return self.newest.last_ms

    @property
    def restarts(self) -> int:
        """As Kubernetes counts them where it says so, and at least as many as were seen; a new pod is none."""
        return sum(max(len(lives) - 1, *(life.restarts for life in lives)) for lives in self.by_pod())

    def by_pod(self, lives: Sequence[Life] | None = None) -> list[list[Life]]:
        """These lives, or all, of each pod: one restarted where the one before it had ended."""
        found: dict[tuple[str, str], list[Life]] = {}
        for life in self.lives if lives is None else lives:
            found.setdefault((life.node, life.pod), []).append(life)
        return list(found.values())

    def within(self, span: TimeRange) -> list[Life]:
        return [life for life in self.lives if life.is_within(span)]


def group_lives(lives: Iterable[Life]) -> list[Container]:
    """
    Lives of one name in one pod belong together; a life without a name stands alone.

    Where a pod's containers have no names, lives that follow one another are restarts of one.
    """
    groups: dict[tuple[str, ...], list[Life]] = {}
    for life in lives:
        named = (life.node, life.namespace, life.pod, life.container_name)
        groups.setdefault(named if life.pod else (life.node, life.id), []).append(life)
    for key, group in list(groups.items()):
        if not key[-1] and overlaps(group):
            del groups[key]
            groups |= {(life.node, life.id): [life] for life in group}
    found = [Container(tuple(sorted(group, key=lambda life: life.first_ms))) for group in groups.values()]
    return sorted(found, key=lambda one: (one.node, one.newest.namespace, one.name))


def render_present(containers: Sequence[Container], newest_ms: Mapping[str, int]) -> str:
    """`100 containers on node demo-1, 99 of them running.`; by node its newest sample."""
    if not containers:
        return f"No container was seen on {render_nodes(list(newest_ms))}."
    running = sum(one.last_ms >= newest_ms[one.node] - GONE_MS for one in containers)
    where = render_nodes(sorted({one.node for one in containers}))
    # Where a node has no containers, its services stand in for them.
    noun = "service" if all(one.newest.scope == "service" for one in containers) else "container"
    return f"{render_count(len(containers), noun)} on {where}, {running} of them running."


def render_nodes(names: Sequence[str]) -> str:
    return f"node {clean_text(names[0])}" if len(names) == 1 else f"{len(names)} nodes"


def overlaps(lives: Sequence[Life]) -> bool:
    """Whether two of them were there at the same time."""
    ordered = sorted(lives, key=lambda life: life.first_ms)
    return any(after.first_ms <= before.last_ms for before, after in pairwise(ordered))


def overlap_seconds(life: Life, span: TimeRange) -> float:
    return max(0.0, (min(life.last_ms, span.to_ms) - max(life.first_ms, span.from_ms)) / 1000)


def there_share(lives: Sequence[Life], recorded: Recorded) -> float:
    """The part of the recorded time in which at least one of them was there."""
    return recorded.share(TimeRange(life.first_ms, life.last_ms) for life in lives)


# -- finding one ---------------------------------------------------------------------


class ContainerUnknown(RequestRejected):
    """No container is called so; carries the nearest name and how many were looked at."""

    def __init__(self, text: str, lives: Sequence[Life]) -> None:
        super().__init__(f'no container "{text}"')
        self.text = text
        self.lives = tuple(lives)

    def nearest(self) -> str | None:
        names = {name for one in self.lives for name in (one.container_name, one.pod, one.name) if name}
        return nearest_name(self.text, names)


class ContainerAmbiguous(RequestRejected):
    """Several containers are called so; carries them."""

    def __init__(self, text: str, candidates: Sequence[Life]) -> None:
        super().__init__(f'container "{text}" is ambiguous')
        self.text = text
        self.candidates = tuple(candidates)


def match_lives(lives: Sequence[Life], text: str, shortest_id: int = 1) -> list[Life]:
    """By id, exact name, the beginning of an id, name and namespace, the beginning of a pod's name, a name as it is told."""
    tests: tuple[Callable[[Life], bool], ...] = (
        lambda one: text == one.id,
        lambda one: text in (one.name, one.pod, one.container_name, join_names(one.namespace, one.name)),
        lambda one: len(text) >= shortest_id and one.id.startswith(text),
        lambda one: (
            text in (join_names(one.namespace, one.container_name), join_names(one.namespace, one.pod))
        ),
        lambda one: one.pod.startswith(text),
        # Of more than eighty letters, or with a quotation mark, only this is told.
        lambda one: text == clean_path(one.name),
    )
    found = ([one for one in lives if text and is_match(one)] for is_match in tests)
    return next((matches for matches in found if matches), [])


def join_names(*names: str) -> str:
    """With slashes between them; empty where one is not known."""
    return "/".join(names) if all(names) else ""


def find_life(lives: Sequence[Life], text: str) -> Life:
    """The one life that is meant."""
    matches = match_lives(lives, text)
    if len(matches) == 1:
        return matches[0]
    raise ContainerAmbiguous(text, matches) if matches else ContainerUnknown(text, lives)


def find_container(lives: Sequence[Life], text: str, shortest_id: int = 1) -> Container:
    """The one container that is meant, with those of its lives that match."""
    matches = match_lives(lives, text, shortest_id)
    containers = group_lives(matches)
    if len(containers) == 1:
        return containers[0]
    raise ContainerAmbiguous(text, matches) if matches else ContainerUnknown(text, lives)
