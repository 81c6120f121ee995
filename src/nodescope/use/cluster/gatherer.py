"""
Asks all nodes on threads and keeps what they said; who looks never waits for a node.

A page asks for a range, gets what is known at once, and looks again while
nodes are being asked. A node that hangs holds one thread until its deadline
and nobody else; from then on it is shown with its reason and asked again
after a pause. A node that is no longer listed stays, with its last time.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

from nodescope.base.clock import Clock
from nodescope.base.errors import NodescopeError
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange, render_time
from nodescope.use.answers.minutes.node_minutes import CellRequest
from nodescope.use.cluster.asked_node import AskedNode, CellsWanted, StoreNode, WorkloadOnNode
from nodescope.use.cluster.grid import NodeCells
from nodescope.use.nodes.directory import NodeDirectory, NodeEntry

# Requests in flight: enough to hide the way to 100 nodes, also while a few of them hang.
AT_ONCE = 32
# Folders are read by this machine's own cores.
FOLDERS_AT_ONCE = 2
# Rows of a store are fetched over the network, and unpacked here. One that hangs keeps nobody waiting.
STORES_AT_ONCE = 8
# A node that failed is asked again after this, twice as long each time.
PAUSE_SECONDS, PAUSE_MOST_SECONDS = 5.0, 60.0
# The newest cells, which an open page wants again and again, are asked of a node at most so often.
AGAIN_SECONDS = 10.0
# Of a node that records nothing now, an archive or one whose agent has stopped, nothing new is expected.
STILL_SECONDS = 60.0
# The newest sample of a live node is not older than this.
LIVE_MS = 600_000
NODES_MOST = 2000
# A node that is no longer listed is shown for a day.
GONE_SECONDS = 86_400.0
# Rankings of workloads that are kept: each metric and span of a page that was looked at.
ROUNDS_MOST = 6

Reply = TypeVar("Reply")
log = Log("cluster")


@dataclass(slots=True)
class AskedState:
    """One node: what is known of it, and how the last question went."""

    cells: NodeCells = field(default_factory=NodeCells)
    reason: str = ""
    """Why it has not answered; empty when it has, or was not asked yet."""
    address: str = ""
    answered_ns: int = 0
    """By the wall clock; 0: never."""
    heard_ns: int = -(2**62)
    """The same, by the monotonic clock."""
    asking_ns: int = 0
    """Since when it is to be asked, by the monotonic clock; 0: it is not."""
    started_ns: int = 0
    """Since when it is being asked: its deadline begins when its turn comes, not while it waits for others."""
    pause_until_ns: int = 0
    failures: int = 0
    gone_ns: int = 0
    """Since when it is not listed, by the wall clock; 0: it is."""


@dataclass(slots=True)
class NodeRound(Generic[Reply]):
    """One question put to all nodes: who has answered, who is asked, who could not."""

    begun_ns: int
    replies: dict[str, Reply] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    away: dict[str, str] = field(default_factory=dict)
    failed_ns: dict[str, int] = field(default_factory=dict)
    """When those that are away could not answer, by the monotonic clock."""

    def is_settled(self, node: str, heard_ns: int) -> bool:
        """It has answered or is being asked; or it could not, and has not been heard of since."""
        if node in self.replies or node in self.asking:
            return True
        return node in self.away and heard_ns <= self.failed_ns[node]

    def give_up(self, node: str, reason: str, now_ns: int) -> None:
        self.asking.discard(node)
        self.away[node], self.failed_ns[node] = reason, now_ns


class Gatherer:
    """What is known of all nodes; every method may be called from any thread and returns at once."""

    def __init__(
        self,
        directory: NodeDirectory[AskedNode],
        clock: Clock,
        deadline_seconds: float,
        viewers: Executor | None = None,
        folders: Executor | None = None,
        stores: Executor | None = None,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self.deadline_seconds = deadline_seconds
        self._viewers = viewers or ThreadPoolExecutor(AT_ONCE, "ask-viewer")
        self._folders = folders or ThreadPoolExecutor(FOLDERS_AT_ONCE, "ask-folder")
        self._stores = stores or ThreadPoolExecutor(STORES_AT_ONCE, "ask-store")
        self._lock = Lock()
        self._states: dict[str, AskedState] = {}
        self._rounds: OrderedDict[tuple[str, int, int], NodeRound[list[WorkloadOnNode]]] = OrderedDict()
        self.version = 0
        """Counts what nodes said: an answer of the same version is the same answer."""

    def trouble(self) -> str:
        return self._directory.trouble()

    def entry(self, node: str) -> NodeEntry[AskedNode] | None:
        return self._directory.entries().get(node)

    def names(self) -> list[str]:
        return sorted(self._directory.entries())

    # -- who there is ---------------------------------------------------------------

    def states(self) -> dict[str, AskedState]:
        """By name. What the directory lists, and what it listed within a day."""
        entries = self._directory.entries()
        with self._lock:
            self._follow(entries)
            return dict(sorted(self._states.items()))

    def _follow(self, entries: Mapping[str, NodeEntry[AskedNode]]) -> None:
        now_ns = self._clock.wall_ns()
        for name, entry in list(entries.items())[:NODES_MOST]:
            state = self._states.setdefault(name, AskedState())
            state.gone_ns, state.address = 0, entry.address
            if entry.reason:
                state.reason = entry.reason
        for name in [one for one in self._states if one not in entries]:
            state = self._states[name]
            state.gone_ns = state.gone_ns or now_ns
            # One that was never heard of leaves nothing to show.
            if not state.answered_ns or now_ns - state.gone_ns > GONE_SECONDS * 1e9:
                del self._states[name]
            else:
                since = render_time(state.gone_ns / 1e9)
                state.reason = f"not listed any more since {since}: its viewer or its node is gone"

    def describe(self, state: AskedState) -> tuple[str, str]:
        """ok, asking or away; and why."""
        if state.started_ns:
            waited = (self._clock.mono_ns() - state.started_ns) / 1e9
            if waited > self.deadline_seconds:
                return "away", f"no answer within {self.deadline_seconds:g} s"
        if state.reason:
            return "away", state.reason
        return ("ok", "") if state.answered_ns else ("asking", "")

    # -- cells ----------------------------------------------------------------------

    def want_cells(self, cells: CellRequest) -> int:
        """Asks every node for what is missing of these cells; how many are being asked now."""

        def plan(state: AskedState) -> list[CellsWanted]:
            window = state.cells.window(cells.step_ms)
            pieces = window.plan(cells)
            if self._is_fresh(state) and window.to_ms >= cells.to_ms:
                # All of it is there, and the newest of it is new: a zoom asks nobody.
                pieces = [piece for piece in pieces if piece.from_ms < window.from_ms]
            return [CellsWanted(cells.step_ms, piece) for piece in pieces]

        return self._ask_all(plan)

    def _is_fresh(self, state: AskedState) -> bool:
        is_live = self._clock.wall_ns() // 1_000_000 - state.cells.newest_ms < LIVE_MS
        seconds = AGAIN_SECONDS if is_live else STILL_SECONDS
        return self._clock.mono_ns() - state.heard_ns < seconds * 1e9

    def want_newest(self, step_ms: int, seconds: float) -> int:
        """Asks every node that has said nothing yet for the newest that it has."""

        def plan(state: AskedState) -> list[CellsWanted]:
            return [] if state.answered_ns else [CellsWanted(step_ms, None, seconds)]

        return self._ask_all(plan)

    def _ask_all(self, plan: Callable[[AskedState], list[CellsWanted]]) -> int:
        entries = self._directory.entries()
        now_ns = self._clock.mono_ns()
        submitted = []
        with self._lock:
            self._follow(entries)
            for name, state in self._states.items():
                entry = entries.get(name)
                if entry is None or entry.reason or state.asking_ns or now_ns < state.pause_until_ns:
                    continue
                if wanted := plan(state):
                    state.asking_ns = now_ns
                    submitted.append((entry, state, wanted))
        # Outside the lock: an executor may run it at once.
        for entry, state, wanted in submitted:
            future = self._executor(entry).submit(self._ask_one, entry, state, wanted)
            future.add_done_callback(partial(self._note_defect, state))
        with self._lock:
            return sum(1 for state in self._states.values() if state.asking_ns)

    def _executor(self, entry: NodeEntry[AskedNode]) -> Executor:
        if isinstance(entry.backend, StoreNode):
            return self._stores
        return self._folders if entry.backend.is_local else self._viewers

    def _ask_one(self, entry: NodeEntry[AskedNode], state: AskedState, wanted: Iterable[CellsWanted]) -> None:
        with self._lock:
            state.started_ns = self._clock.mono_ns()
        try:
            found = [entry.backend.read_minutes(one) for one in wanted]
        except (NodescopeError, OSError) as error:
            self._note_failure(state, clean_text(str(error) or type(error).__name__, 300))
            return
        with self._lock:
            for one in found:
                state.cells.add(one)
            state.reason, state.failures = "", 0
            state.asking_ns = state.started_ns = 0
            state.answered_ns, state.heard_ns = self._clock.wall_ns(), self._clock.mono_ns()
            self.version += 1

    def _note_failure(self, state: AskedState, reason: str) -> None:
        with self._lock:
            pause = min(PAUSE_MOST_SECONDS, PAUSE_SECONDS * 2**state.failures)
            state.reason, state.asking_ns, state.started_ns = reason, 0, 0
            state.failures = min(state.failures + 1, 10)
            state.pause_until_ns = self._clock.mono_ns() + round(pause * 1e9)
            self.version += 1

    def _note_defect(self, state: AskedState, future: "Future[None]") -> None:
        if (reason := explain_defect(future)) is not None:
            self._note_failure(state, reason)

    # -- workloads ------------------------------------------------------------------

    def rank(self, metric: str, span: TimeRange, only: str = "") -> NodeRound[list[WorkloadOnNode]]:
        """What workloads used on each node, or on one; nodes that have not answered yet are being asked."""
        key = (metric, span.from_ms, span.to_ms)
        every = self._directory.entries()
        entries = {name: entry for name, entry in every.items() if only in ("", name)}
        with self._lock:
            known = self._rounds.get(key)
            if known is None:
                known = self._rounds[key] = NodeRound(self._clock.mono_ns())
                while len(self._rounds) > ROUNDS_MOST:
                    self._rounds.popitem(last=False)
            self._rounds.move_to_end(key)
            fresh = []
            for name, entry in entries.items():
                state = self._states.get(name, AskedState())
                if known.is_settled(name, state.heard_ns):
                    continue
                if reason := entry.reason or state.reason:
                    known.give_up(name, reason, self._clock.mono_ns())
                else:
                    known.away.pop(name, None)
                    known.asking.add(name)
                    fresh.append(entry)
        for entry in fresh:
            future = self._executor(entry).submit(self._rank_one, entry, known, metric, span)
            future.add_done_callback(partial(self._note_rank_defect, entry.node, known))
        return known

    def _rank_one(
        self,
        entry: NodeEntry[AskedNode],
        known: NodeRound[list[WorkloadOnNode]],
        metric: str,
        span: TimeRange,
    ) -> None:
        try:
            rows = entry.backend.rank(metric, span)
        except (NodescopeError, OSError) as error:
            self._note_no_rank(entry.node, known, clean_text(str(error) or type(error).__name__, 300))
            return
        with self._lock:
            known.asking.discard(entry.node)
            known.replies[entry.node] = rows
            self.version += 1

    def _note_no_rank(self, node: str, known: NodeRound[list[WorkloadOnNode]], reason: str) -> None:
        with self._lock:
            known.give_up(node, reason, self._clock.mono_ns())
            self.version += 1

    def _note_rank_defect(
        self, node: str, known: NodeRound[list[WorkloadOnNode]], future: "Future[None]"
    ) -> None:
        if (reason := explain_defect(future)) is not None:
            self._note_no_rank(node, known, reason)

    def copy_round(
        self, known: NodeRound[list[WorkloadOnNode]]
    ) -> tuple[dict[str, list[WorkloadOnNode]], int, dict[str, str]]:
        """Who has answered, how many are asked, who is away: as it is now."""
        with self._lock:
            return dict(known.replies), len(known.asking), dict(known.away)

    def close(self) -> None:
        for executor in (self._viewers, self._folders, self._stores):
            executor.shutdown(wait=False, cancel_futures=True)


def explain_defect(future: "Future[None]") -> str | None:
    """An error that no node is to blame for: said like the others, and logged."""
    error = None if future.cancelled() else future.exception()
    if error is None:
        return None
    log.warning("an answer could not be read", error=f"{type(error).__name__}: {error}")
    return f"its answer could not be read here: {type(error).__name__}"
