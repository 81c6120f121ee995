"""
From the series that was measured to the series of the answer.

Mostly they are the same. A pod's interfaces are summed to each of its
containers, a node's cores, disks and interfaces to the node. Pieces of one
moment are added up (or averaged) sample by sample, before they are put into
buckets.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.metric_names import VIRTUAL
from nodescope.keep.label_columns import IDENTITY, LABELS, Identity, Subject, identify
from nodescope.read.files.catalog import Catalog
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import Points
from nodescope.read.query.resolve import ResolvedMetric

POD = IDENTITY.index("l_pod_uid")
DEVICE = IDENTITY.index("l_device")
# A container's first and last sample lie within a second of its pod's.
SLACK_MS = 1000


class Targets:
    """The series of one answer about one node."""

    def __init__(
        self,
        resolved: ResolvedMetric,
        node: str,
        catalog: Catalog,
        tail: LiveTail | None,
        containers: Sequence[str] | None,
    ) -> None:
        self._resolved = resolved
        self._node = node
        self._known = [catalog.subjects, tail.subjects if tail else {}]
        self._pods: dict[str, dict[Identity, Subject]] | None = None
        self._wanted = None if containers is None else set(containers)
        self._spans: dict[Identity, tuple[int, int]] = {}

    def of(self, identity: Identity) -> list[Identity]:
        """The series of the answer that this input belongs to; often the same one."""
        resolved = self._resolved
        if not resolved.of:
            return [identity]
        if resolved.of == "pod":
            return self._of_pod(identity)
        if resolved.of == "network" and identity[DEVICE].startswith(VIRTUAL):
            return []
        return [identify(self._label(l_scope=resolved.scope))]

    def _of_pod(self, identity: Identity) -> list[Identity]:
        uid = identity[POD]
        if self._resolved.scope == "pod":
            return [identify(self._label(l_scope="pod", l_pod_uid=uid))]
        return [one.identity for one in self._containers_of(uid)]

    def _containers_of(self, uid: str) -> list[Subject]:
        if self._pods is None:
            self._pods = {}
            for subject in (one for known in self._known for one in known.values()):
                pod, scope = subject.label("l_pod_uid"), subject.label("l_scope")
                is_wanted = self._wanted is None or subject.label("l_container_id") in self._wanted
                if pod and scope == "container" and is_wanted:
                    self._pods.setdefault(pod, {}).setdefault(subject.identity, subject)
                    self._note_span(subject)
        return list(self._pods.get(uid, {}).values())

    def _note_span(self, subject: Subject) -> None:
        first, last = self._spans.get(subject.identity, (2**62, 0))
        # In the tail a container's end is not known yet.
        end = 2**62 if subject is self._known[1].get(subject.identity) else subject.last_ms
        self._spans[subject.identity] = min(first, subject.first_ms), max(last, end)

    def clip(self, target: Identity, time_ms: Integers) -> NDArray[np.bool_]:
        """Of a pod's samples those in which the container was there."""
        if target not in self._spans:
            return np.ones(len(time_ms), bool)
        first, last = self._spans[target]
        return (time_ms >= first - SLACK_MS) & (time_ms <= last + SLACK_MS)

    def subject(self, target: Identity) -> Subject:
        """With every name that is known of it."""
        for known in self._known:
            found = known.get(target)
            if found is not None and self._is_here(found):
                return found
        words = {name: word or None for name, word in zip(IDENTITY, target)}
        labels = dict(zip(LABELS, self._label(**words)))
        pod = self._resolved.of == "pod" and self._containers_of(target[POD])
        if pod:
            labels |= {name: pod[0].label(name) for name in ("l_pod_name", "l_namespace", "l_qos_class")}
        return Subject(tuple(labels.get(name) for name in LABELS))

    def _is_here(self, subject: Subject) -> bool:
        return not self._node or subject.label("l_node_name") in (None, "", self._node)

    def _label(self, **words: str | None) -> tuple[str | None, ...]:
        return tuple({"l_node_name": self._node or None, **words}.get(name) for name in LABELS)

    # -- pieces of one moment -------------------------------------------------

    def join_samples(self, parts: Sequence[tuple[Integers, Floats]]) -> tuple[Integers, Floats]:
        if len(parts) == 1:
            return parts[0]
        time_ms, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        value = self._gather(places, np.concatenate([part[1] for part in parts]), len(time_ms))
        return time_ms, value

    def join_minutes(self, parts: Sequence[Points]) -> Points:
        """The extremes of the pieces add up to bounds of the whole; the mean is exact."""
        if len(parts) == 1:
            return parts[0]
        time_ms, places = np.unique(np.concatenate([part.time_ms for part in parts]), return_inverse=True)
        low, mean, high = (
            self._gather(places, np.concatenate([getattr(part, name) for part in parts]), len(time_ms))
            for name in ("minimum", "mean", "maximum")
        )
        count = np.zeros(len(time_ms), np.int64)
        np.maximum.at(count, places, np.concatenate([part.count for part in parts]))
        return Points(time_ms, low, mean, high, count)

    def _gather(self, places: Integers, value: Floats, size: int) -> Floats:
        good = np.isfinite(value)
        total = np.bincount(places[good], value[good], size)
        number = np.bincount(places[good], minlength=size)
        whole = np.where(number > 0, total, np.nan)
        return whole / np.maximum(number, 1) if self._resolved.join == "mean" else whole
