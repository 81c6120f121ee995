"""Which rows of a table are of which pod."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.entity import Entity

# Tables whose rows are remembered; containers have fewer, and some of them change now and then.
TABLES = 16


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """By its uid, which its cgroup carries; names may be unknown."""

    uid: str
    namespace: str = ""
    pod: str = ""
    workload: str = field(default="", compare=False)
    """namespace/name; empty where it is not known."""


def identify(entity: Entity) -> PodIdentity | None:
    """The pod of a container or of a GPU's process; None where it is of no pod."""
    uid = entity.attribute("pod_uid")
    if not uid:
        return None
    namespace, workload = entity.attribute("namespace") or "", entity.attribute("workload") or ""
    full_name = f"{namespace}/{workload}" if namespace and workload else workload
    return PodIdentity(uid, namespace, entity.attribute("pod") or "", full_name)


@dataclass(frozen=True, slots=True)
class PodRows:
    """Rows in the order of their pods, and where each pod's begin."""

    pods: Sequence[PodIdentity]
    order: Integers
    starts: Integers

    def add(self, cells: Floats) -> Floats:
        """Ticks x rows to ticks x pods; NaN where one of a pod's is."""
        if not len(self.starts):
            return np.zeros((len(cells), 0))
        found: Floats = np.add.reduceat(cells[:, self.order], self.starts, axis=1)
        return found

    def largest(self, cells: Floats) -> Floats:
        """NaN only where all of a pod's are."""
        if not len(self.starts):
            return np.zeros((len(cells), 0))
        found: Floats = np.fmax.reduceat(cells[:, self.order], self.starts, axis=1)
        return found


def group_rows(entities: Sequence[Entity]) -> PodRows:
    rows: dict[str, list[int]] = {}
    pods: dict[str, PodIdentity] = {}
    for row, entity in enumerate(entities):
        identity = identify(entity)
        if identity is not None:
            # The container with a name knows the pod's.
            if identity.uid not in pods or identity.pod:
                pods[identity.uid] = identity
            rows.setdefault(identity.uid, []).append(row)
    order = np.array([row for mine in rows.values() for row in mine], dtype=np.int64)
    lengths = [len(mine) for mine in rows.values()]
    starts = np.cumsum([0, *lengths[:-1]], dtype=np.int64) if lengths else np.zeros(0, dtype=np.int64)
    return PodRows([pods[uid] for uid in rows], order, starts)


@dataclass(slots=True)
class KnownRows:
    """The rows of each table are grouped again only when its containers changed: a table hands on the same tuple until then."""

    _known: dict[int, tuple[Sequence[Entity], PodRows]] = field(default_factory=dict)

    def find(self, entities: Sequence[Entity]) -> PodRows:
        known = self._known.get(id(entities))
        # The tuple is kept with its rows, so that no other one can have its place in memory meanwhile.
        if known is None or known[0] is not entities:
            if len(self._known) >= TABLES:
                self._known.clear()
            known = self._known[id(entities)] = (entities, group_rows(entities))
        return known[1]
