"""
Workloads as people speak of them: all pods of a Deployment with their restarts; how one is found by a name.

    for one in group_workloads(lives):
        print(one.workload.full_name, one.workload.kind, len(one.pods), one.restarts)

A question about `catalog` means the Deployment. One pod (`catalog-66b6c48dd5-x2k4p`), one of its
containers (`catalog/proxy`) and one life (an id) are the special cases.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from nodescope.base.time_range import TimeRange
from nodescope.base.workload import UNSURE, Workload
from nodescope.base.workload.pod_name import ALPHABET
from nodescope.use.answers.containers import (
    Container,
    ContainerAmbiguous,
    ContainerUnknown,
    Life,
    group_lives,
    join_names,
    match_lives,
)

# Jobs that one program makes: a number or random characters behind a common name.
_GENERATED = re.compile(rf"(.+)-(?:[0-9]+|[{ALPHABET}]{{5}}|[0-9a-f]{{6,40}})")
# Containers that others put beside the one that does the work.
SIDECAR = re.compile(r"istio|linkerd|envoy|proxy|sidecar|exporter|agent|fluent|vault|^init|reloader")
# So many names that differ only there are one workload; two may be a coincidence.
FAMILY_LEAST = 3


@dataclass(frozen=True, slots=True)
class WorkloadLives:
    """A workload with its containers, on all nodes; those that ended included."""

    workload: Workload
    containers: tuple[Container, ...]
    """One for each name in each pod, oldest first."""
    part: str = ""
    """Where only a pod or a container of it is meant, its name."""

    @property
    def lives(self) -> tuple[Life, ...]:
        """Of all its containers, oldest first."""
        found = (life for one in self.containers for life in one.lives)
        return tuple(sorted(found, key=lambda life: (life.first_ms, life.id)))

    @property
    def name(self) -> str:
        """For people: the workload's, or of the part that is meant."""
        return self.part or self.workload.name

    @property
    def full_name(self) -> str:
        return replace(self.workload, name=self.name).full_name

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({one.node for one in self.containers}))

    @property
    def pods(self) -> tuple[str, ...]:
        """Names of its pods, oldest first; where there are none, of its containers."""
        return tuple(dict.fromkeys(one.newest.pod or one.name for one in self.containers))

    @property
    def images(self) -> tuple[str, ...]:
        """In the order in which they were first seen."""
        return tuple(dict.fromkeys(life.image for life in self.lives if life.image))

    @property
    def first_ms(self) -> int:
        return min(one.first_ms for one in self.containers)

    @property
    def last_ms(self) -> int:
        return max(one.last_ms for one in self.containers)

    @property
    def restarts(self) -> int:
        """Of containers within their pods; a new pod is no restart."""
        return sum(one.restarts for one in self.containers)

    def within(self, span: TimeRange) -> list[Life]:
        return [life for life in self.lives if life.is_within(span)]

    def name_single(self) -> "WorkloadLives":
        """One container in one pod, called by its own names, which tell its workload as well."""
        only = self.containers[0]
        is_single = len(self.containers) == 1 and only.newest.pod
        return replace(self, part=only.name) if is_single else self

    def choose_main(self) -> "WorkloadLives":
        """Of several containers in each pod, the one that a question about the workload means."""
        parts = self.parts()
        if len(parts) == 1 or self.part:
            return self
        name = min(parts, key=lambda one: (rate_sidecar(one, self.workload.name), one))
        return replace(parts[name], part="")

    def parts(self) -> dict[str, "WorkloadLives"]:
        """By the name of a container in its pods: `app` and `proxy` of one Deployment are two parts."""
        found: dict[str, list[Container]] = {}
        for one in self.containers:
            found.setdefault(one.newest.container_name, []).append(one)
        return {
            name: replace(self, containers=tuple(group), part=f"{self.workload.name}/{name}")
            for name, group in found.items()
        }


def rate_sidecar(container: str, workload: str) -> int:
    """0: called as its workload; 1: nothing is known against it; 2: a well-known sidecar; 3: a sandbox has no name."""
    if not container:
        return 3
    if container == workload:
        return 0
    return 2 if SIDECAR.search(container) else 1


def group_workloads(lives: Iterable[Life]) -> list[WorkloadLives]:
    """One for each namespace, kind and name, over all nodes; sorted by name."""
    groups: dict[tuple[str, str], list[tuple[Workload, Container]]] = {}
    for one in group_lives(lives):
        workload = best_known(one)
        groups.setdefault((workload.namespace, workload.name), []).append((workload, one))
    found = [make_workload(members) for members in groups.values()]
    return sorted(join_families(found), key=lambda one: (one.full_name, one.workload.kind))


def name_apart(groups: Sequence[WorkloadLives]) -> list[WorkloadLives]:
    """Each by its workload's name; where two namespaces have the same, one with a single pod by that pod's."""
    names = Counter(one.name for one in groups)
    return [one.name_single() if names[one.name] > 1 else one for one in groups]


def best_known(container: Container) -> Workload:
    """What the API said of any of its lives goes before what a name tells."""
    found = [life.workload for life in reversed(container.lives)]
    return next((one for one in found if one.known_by == "api"), found[0])


def make_workload(members: Sequence[tuple[Workload, Container]]) -> WorkloadLives:
    told = next((one for one, _ in members if one.known_by == "api"), members[0][0])
    containers = sorted((one for _, one in members), key=lambda one: (one.first_ms, one.name))
    return WorkloadLives(told, tuple(containers))


def join_families(workloads: Sequence[WorkloadLives]) -> list[WorkloadLives]:
    """Jobs that differ only in a number or in random characters, and run the same containers, are one."""
    families: dict[tuple[object, ...], list[WorkloadLives]] = {}
    for one in workloads:
        stem = _GENERATED.fullmatch(one.name) if one.workload.kind in (UNSURE, "Job", "pod") else None
        parts = frozenset(container.newest.container_name for container in one.containers)
        key = (one.workload.namespace, stem[1], parts) if stem else (one.full_name, one.workload.kind)
        families.setdefault(key, []).append(one)
    return [
        joined
        for family in families.values()
        for joined in ([join_family(family)] if len(family) >= FAMILY_LEAST else family)
    ]


def join_family(family: Sequence[WorkloadLives]) -> WorkloadLives:
    first = family[0].workload
    stem = _GENERATED.fullmatch(first.name)
    name = stem[1] if stem else first.name
    kind = "Job" if any(one.workload.kind == "Job" for one in family) else first.kind
    containers = sorted((one for each in family for one in each.containers), key=lambda one: one.first_ms)
    return WorkloadLives(replace(first, name=name, kind=kind), tuple(containers))


# -- finding one ---------------------------------------------------------------------


def find_target(lives: Sequence[Life], text: str, shortest_id: int = 1) -> WorkloadLives:
    """
    What is meant: an id or a pod's own name means that one; else the workload of that name with all its pods.

    The workload of what is found is carried in each case, so that an answer about one pod can name it.
    """
    workloads = group_workloads(lives)
    if exact := match_exact(lives, text):
        return narrow(workloads, exact, text)
    named = match_workloads(workloads, text)
    if len(named) == 1:
        return named[0]
    if named:
        raise ContainerAmbiguous(text, [one.containers[-1].newest for one in named])
    return find_other(lives, workloads, text, shortest_id)


def match_exact(lives: Sequence[Life], text: str) -> list[Life]:
    """By whole id, pod, or pod/container, each with or without its namespace."""
    tests: tuple[Callable[[Life], tuple[str, ...]], ...] = (
        lambda one: (one.id,),
        lambda one: (join_names(one.pod, one.container_name), join_names(one.namespace, one.name)),
        lambda one: (one.pod, join_names(one.namespace, one.pod)),
    )
    found = ([one for one in lives if text and text in names(one)] for names in tests)
    return next((matches for matches in found if matches), [])


def match_workloads(workloads: Sequence[WorkloadLives], text: str) -> list[WorkloadLives]:
    """By name (also as kind/name), then as workload/container, each with or without its namespace; else by a container's name."""
    if named := [one for one in workloads if text and text in (one.name, one.full_name)]:
        return named
    if named := [one for one in workloads if text.lower() == f"{one.workload.kind}/{one.name}".lower()]:
        return named
    stem, _, last = text.rpartition("/")
    parts = [
        part
        for one in workloads
        if stem in (one.name, one.full_name)
        for name, part in one.parts().items()
        if name == last
    ]
    return parts or [
        part
        for one in workloads
        for name, part in one.parts().items()
        if name and text in (name, join_names(one.workload.namespace, name))
    ]


def find_other(
    lives: Sequence[Life], workloads: Sequence[WorkloadLives], text: str, shortest_id: int
) -> WorkloadLives:
    """By the beginning of an id or of a name; ambiguous only between two workloads."""
    matches = match_lives(lives, text, shortest_id)
    if not matches:
        raise ContainerUnknown(text, lives)
    whole = [one for one in workloads if one.name.startswith(text)]
    return whole[0] if len(whole) == 1 else narrow(workloads, matches, text)


def narrow(workloads: Sequence[WorkloadLives], lives: Sequence[Life], text: str) -> WorkloadLives:
    """The one workload of these lives, with only them; named by the pod or container that they are."""
    wanted = {(life.node, life.id) for life in lives}
    owners = [one for one in workloads if any((life.node, life.id) in wanted for life in one.lives)]
    if len(owners) > 1:
        raise ContainerAmbiguous(text, lives)
    containers = tuple(sorted(group_lives(lives), key=lambda one: one.first_ms))
    named = {one.name for one in containers}, {one.newest.pod for one in containers}
    part = next((names.pop() for names in named if len(names) == 1), "")
    return replace(owners[0], containers=containers, part=part)
