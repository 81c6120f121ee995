"""
The node's annotations, at its Node and at its Lease: written by merge-patch of our keys only, and seldom.

    first            read what an earlier run left, and take it over
    then             write on material change, at most every 10 s
    and              write every 60 s, so that a reader can tell stale from quiet

Every write of a Node is sent to every watcher of nodes in the cluster, so the
times are jittered and nothing is written before the first event. On one thread
for both; a server that is away costs nothing but the delay.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.base.log import Log
from nodescope.publish.annotated_object import LeaseObject, NodeObject
from nodescope.publish.annotation_content import AnnotationContent
from nodescope.serve.step_thread import GrowingPause, StepThread

log = Log("annotation")

LOOK_SECONDS = 1.0
LEAST_SECONDS = 10.0
HEARTBEAT_SECONDS = 60.0
# Jitter of the two times above: a thousand nodes must not write at the same instant.
JITTER_RATIO = 0.1
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
# A missing right is not granted within seconds.
REFUSED_PAUSE_SECONDS = 60.0


@dataclass(slots=True)
class AnnotationCounters:
    """What became of the writes, for /metrics and /status."""

    keys: tuple[str, ...] = ()
    """Annotations that this agent writes; empty where it writes none."""
    written: int = 0
    failed: int = 0
    bytes: int = 0
    """Length of the newest write."""
    restored: int = 0
    reason: str = ""
    """Why the newest attempt failed; empty when it did not."""


@dataclass(slots=True)
class Annotator:
    """Keeps the annotations of one object up to date."""

    place: NodeObject | LeaseObject
    contents: Sequence[AnnotationContent[Any]]
    clock: Clock
    counters: AnnotationCounters
    chance: Callable[[], float] = random.random
    _is_restored: bool = False
    _written_mono_ns: int | None = None
    _written_keys: frozenset[str] = frozenset()
    _spacing_ratio: float = 1.0
    _pause: GrowingPause = field(init=False)
    _reason: str = ""
    """Why our newest attempt failed, or what its place has to say."""

    def __post_init__(self) -> None:
        self.counters.keys += tuple(content.key for content in self.contents)
        # A server that has just started refuses for a moment what it will allow.
        self._pause = GrowingPause(FIRST_PAUSE_SECONDS, self.chance)

    def step(self) -> float:
        """What is due now; how long to wait before looking again."""
        try:
            if not self._is_restored:
                self._restore()
            self._write_if_due()
        except KubernetesAway as error:
            self._count_failure(str(error))
            return max(self._pause.grow(LONGEST_PAUSE_SECONDS), error.retry_after_seconds or 0.0)
        except KubernetesRefused as error:
            self._count_failure(self._explain(error))
            return self._pause.grow(REFUSED_PAUSE_SECONDS)
        self._pause.reset()
        self._tell(self.place.note)
        return LOOK_SECONDS

    def rehearse(self) -> str:
        """A dry run of a write: empty when the server would accept one, else why not."""
        try:
            self.place.write({}, rehearsed=True)
        except KubernetesRefused as error:
            return self._explain(error)
        except KubernetesAway as error:
            return str(error)
        finally:
            self.place.client.close()
        return ""

    def _explain(self, error: KubernetesRefused) -> str:
        """With the remedy; an account that the server does not know at all needs another one."""
        if error.status == 401:
            return str(error)
        return f"{error}; the account needs {self.place.needs}"

    def _restore(self) -> None:
        """Before the first write: it would overwrite what an earlier run left."""
        annotations = self.place.read()
        self._is_restored = True
        for content in self.contents:
            if content.key in annotations:
                self.counters.restored += content.restore(annotations[content.key])

    def _write_if_due(self) -> None:
        """All annotations in one write when any is due: a write costs more than its length."""
        texts = {content.key: text for content in self.contents if (text := content.look()) is not None}
        if not texts or not self._is_due(texts):
            return
        self.place.write(texts)
        self._written_mono_ns = self.clock.mono_ns()
        self._spacing_ratio = self.chance()
        self._written_keys |= texts.keys()
        for content in self.contents:
            if content.key in texts:
                content.settle()
        self.counters.written += 1
        self.counters.bytes = sum(len(text.encode()) for text in texts.values())

    def _is_due(self, texts: Mapping[str, str]) -> bool:
        if self._written_mono_ns is None or not self._written_keys >= texts.keys():
            # A key's first text is written at once, however short ago another was.
            return True
        age_seconds = (self.clock.mono_ns() - self._written_mono_ns) / 1e9
        if age_seconds >= HEARTBEAT_SECONDS * (1 - JITTER_RATIO * self._spacing_ratio):
            return True
        if age_seconds < LEAST_SECONDS * (1 + JITTER_RATIO * self._spacing_ratio):
            return False
        return any(content.is_material() for content in self.contents if content.key in texts)

    def _count_failure(self, reason: str) -> None:
        self.counters.failed += 1
        if reason != self._reason:
            log.warning("annotation not written", place=self.place.name, reason=reason)
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        """Counters are of both places: one's success is no word about the other."""
        if reason or self.counters.reason == self._reason:
            self.counters.reason = reason
        self._reason = reason


@dataclass(slots=True)
class AnnotatorTurns:
    """The annotators of one agent, which share a connection and so a thread."""

    annotators: Sequence[Annotator]
    clock: Clock
    _due_ns: dict[int, int] = field(default_factory=dict)

    def make_thread(self) -> StepThread:
        return StepThread("annotation", self.step, self.annotators[0].place.client, self.clock)

    def step(self) -> float:
        """Those that are due; how long until the next one is."""
        for index, annotator in enumerate(self.annotators):
            if self._due_ns.get(index, 0) <= self.clock.mono_ns():
                pause_seconds = annotator.step()
                self._due_ns[index] = self.clock.mono_ns() + round(pause_seconds * 1e9)
        return max(0.0, (min(self._due_ns.values()) - self.clock.mono_ns()) / 1e9)
