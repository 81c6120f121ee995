"""
A list that keeps itself up to date: list once, then watch, on a thread of its own.

    list  ->  watch from its resourceVersion, bookmarks moving it on
                 |  the server ends it (timeoutSeconds)   watch again, at once
                 |  connection lost, 429, 5xx             wait, watch from where we were
                 |  410: that version is forgotten        list again
                 `  401, 403, 404                         wait longer, list again

What is known stays while the server is away.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.base.log import Log
from nodescope.kube.client import Client
from nodescope.serve.step_thread import GrowingPause, StepThread

log = Log("kube")

# A watch is renewed by the server after this long, give or take a fifth, so
# that not all nodes of a cluster renew theirs at once.
WATCH_SECONDS = 300
# The server ends a watch on time; silence beyond that is a dead connection.
GRACE_SECONDS = 15.0
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# A missing right is seldom granted soon; but a server that has just started may
# refuse for a moment what it will allow, so the pause grows up to this, too.
REFUSED_PAUSE_SECONDS = 60.0
PAGE = 100
# HTTP's status for a version that the server no longer has.
GONE = 410


class WatchListener(Protocol):
    """What a watch reports to, on the watching thread."""

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        """
        The whole list; what is not in it is gone.

        Items come page by page while they are taken: keep what is needed of each, not the items.
        Taking the next one may raise; what was known before must then still be there.
        """
        ...

    def change(self, item: Mapping[str, Any]) -> None: ...

    def remove(self, item: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class WatchState:
    """The state of a watch, for /status and /metrics."""

    status: str = "starting"
    """starting, current, away (names are kept) or refused."""
    reason: str = ""
    http_status: int = 0
    lists: int = 0
    watches: int = 0
    events: int = 0
    errors: int = 0


@dataclass(slots=True)
class ListPages:
    """A list, one page in memory at a time."""

    client: Client
    path: str
    query: Mapping[str, str]
    version: str = ""
    """Of the whole list, known with its last page."""
    page: int = PAGE

    def items(self) -> Iterator[Mapping[str, Any]]:
        query = {**self.query, "limit": str(self.page)}
        while True:
            page = self.client.read(self.path, query)
            about = page.get("metadata") or {}
            items = page.pop("items", None) or []
            # Each is let go once it was taken.
            items.reverse()
            while items:
                yield items.pop()
            if not about.get("continue"):
                break
            query["continue"] = about["continue"]
        self.version = str(about.get("resourceVersion") or "")


@dataclass(slots=True)
class ObjectWatch:
    """Keeps a listener up to date with one resource."""

    client: Client
    path: str
    query: Mapping[str, str]
    listener: WatchListener
    clock: Clock
    chance: Callable[[], float] = random.random
    state: WatchState = WatchState()
    _version: str = ""
    _pause: GrowingPause = field(init=False)
    _thread: StepThread = field(init=False)

    def __post_init__(self) -> None:
        self._pause = GrowingPause(FIRST_PAUSE_SECONDS, self.chance)
        self._thread = StepThread("kube-watch", self.step, self.client, self.clock)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    @property
    def is_running(self) -> bool:
        return self._thread.is_running

    @property
    def _is_stopped(self) -> bool:
        return self._thread.stopped.is_set()

    def step(self) -> float:
        """One list or one watch; how long to wait before the next."""
        try:
            if not self._version:
                self._list()
            self._watch()
        except KubernetesRefused as error:
            self._version = ""
            if error.status == GONE:
                return self._pause.grow(LONGEST_PAUSE_SECONDS)
            self._note("refused", str(error), error.status)
            return self._pause.grow(REFUSED_PAUSE_SECONDS)
        except (KubernetesAway, OSError) as error:
            if self._is_stopped:
                return 0.0
            self._note("away", str(error))
            wanted_seconds = error.retry_after_seconds if isinstance(error, KubernetesAway) else None
            return max(self._pause.grow(LONGEST_PAUSE_SECONDS), wanted_seconds or 0.0)
        return 0.0

    def _note(self, status: str, reason: str, http_status: int = 0) -> None:
        if (self.state.status, self.state.reason) != (status, reason):
            log.warning("watch interrupted", path=self.path, status=status, reason=reason)
        self.state = replace(
            self.state, status=status, reason=reason, http_status=http_status, errors=self.state.errors + 1
        )

    def _list(self) -> None:
        pages = ListPages(self.client, self.path, self.query)
        items = pages.items()
        self.listener.replace(items)
        # The version to watch from comes with the last page, whoever left off before it.
        for _ in items:
            pass
        self._version = pages.version
        self.state = replace(self.state, lists=self.state.lists + 1)
        self._current()

    def _current(self) -> None:
        if self.state.status != "current":
            self.state = replace(self.state, status="current", reason="", http_status=0)

    def _watch(self) -> None:
        seconds = round(WATCH_SECONDS * (0.8 + 0.4 * self.chance()))
        query = {
            **self.query,
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        started_mono_ns = self.clock.mono_ns()
        events = self.state.events
        self.state = replace(self.state, watches=self.state.watches + 1)
        stream = self.client.stream(self.path, query, seconds + GRACE_SECONDS)
        self._current()
        for event in stream:
            self._pause.reset()
            self._take(event)
            if self._is_stopped:
                return
        if self._is_stopped:
            return
        if self.state.events == events and self.clock.mono_ns() - started_mono_ns < 1e9:
            # A watch that ends at once, again and again, must not become a busy loop.
            raise KubernetesAway("the watch ended as soon as it began")
        self._pause.reset()

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        item = event.get("object") or {}
        if kind == "ERROR":
            sentence = f"the watch ended: {item.get('message') or item.get('reason')}"
            raise KubernetesRefused(sentence, GONE) if item.get("code") == GONE else KubernetesAway(sentence)
        self._version = str((item.get("metadata") or {}).get("resourceVersion") or self._version)
        self.state = replace(self.state, events=self.state.events + 1)
        if kind in ("ADDED", "MODIFIED"):
            self.listener.change(item)
        elif kind == "DELETED":
            self.listener.remove(item)
