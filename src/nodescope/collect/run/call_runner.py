"""
A call source on its own thread: the tick takes what is there and never waits.

The thread asks at the source's pace. An answer that takes longer than the
source's deadline makes it failed until the answer comes; the thread is not
killed (nothing in Python can), it is left to finish. A source that never
waits for anything has no thread: the tick asks it, which costs less than
waking somebody.
"""

import threading
from dataclasses import dataclass, replace

from nodescope.base.block import Block
from nodescope.base.clock import Clock, thread_cpu_ns
from nodescope.base.entity import Entity
from nodescope.base.frame import Outcome
from nodescope.collect.run.guard import check_all, run_guarded
from nodescope.collect.run.source import CallSource, Context, MakeCallSource, Streaming

# An absent source is asked again at this pace: a driver may be loaded later.
# One whose asking costs nothing may name its own (`absent_pace_seconds`).
ABSENT_PACE_SECONDS = 60.0
# What a source says before its first answer.
NOT_ASKED = "not asked yet"
# Blocks of a stream that wait for a tick: rows come when they come, and two
# may fall between two ticks. Of too many the oldest are lost, never the newest.
WAITING_BLOCKS = 64
# Ticks come a little early or late: a source of their own pace is asked by every one.
SLACK_NS = 500_000_000
# A child process is asked to end, and given five seconds to.
CLOSE_SECONDS = 7.0


@dataclass(frozen=True, slots=True)
class CallResult:
    """What the tick gets: new blocks, the outcome, the cost since last taken."""

    blocks: tuple[Block, ...]
    outcome: Outcome
    fresh: bool


class CallRunner:
    """Makes one call source and asks it."""

    def __init__(self, make: MakeCallSource, context: Context, clock: Clock) -> None:
        self.name = make.name
        self.pace_ratio = 1
        """The budget slows a costly source by this factor."""
        self._make = make
        self._source: CallSource | None = None
        self._context = context
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._blocks: tuple[Block, ...] = ()
        self._outcome = Outcome("absent", NOT_ASKED)
        self._fresh = False
        self._is_told = False
        self._asked_mono_ns: int | None = None
        self._sets: dict[str, tuple[Entity, ...]] = {}
        """By table: entities that did not change stay the same object."""
        self._thread = threading.Thread(target=self._run, name=f"source-{make.name}", daemon=True)
        # Looked up once: looking through a protocol's names costs more than asking the source.
        self._is_prompt = getattr(make, "is_prompt", False)
        self._is_streaming = hasattr(make, "interrupt")
        self._due_mono_ns: int | None = None
        """When the tick asks a prompt source again; None while it is not started."""

    def start(self) -> None:
        if self._is_prompt:
            self._due_mono_ns = self._clock.mono_ns()
        else:
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if isinstance(self._source, Streaming):
            self._source.interrupt()

    def join(self) -> None:
        """Wait for a source that has something to tidy up; others are left to finish."""
        if self._due_mono_ns is not None:
            self._due_mono_ns = None
            self._close()
        if self._is_streaming and self._thread.is_alive():
            self._thread.join(timeout=CLOSE_SECONDS)

    def has_news(self, mono_ns: int) -> bool:
        """Whether there may be more to take than the outcome that was taken last: most ticks, there is not."""
        is_due = self._due_mono_ns is not None and mono_ns >= self._due_mono_ns
        return self._fresh or is_due or self._asked_mono_ns is not None

    def take(self) -> CallResult:
        """The newest answer, once; afterwards only its outcome until the next."""
        if self._due_mono_ns is not None and self._clock.mono_ns() >= self._due_mono_ns:
            self.ask()
            pace_ns = round(self._wait_seconds() * 1e9)
            self._due_mono_ns = self._clock.mono_ns() + pace_ns - min(pace_ns, SLACK_NS)
        if not self._fresh and self._asked_mono_ns is None:
            # Most ticks: nobody was asked since. An answer that comes right now is the next tick's.
            return CallResult((), self._outcome, fresh=False)
        with self._lock:
            asked = self._asked_mono_ns
            late_seconds = 0.0 if asked is None else (self._clock.mono_ns() - asked) / 1e9
            if late_seconds > (self._source or self._make).deadline_seconds:
                reason = f"no answer for {late_seconds:.0f} s; it is asked again when it comes back"
                told, self._is_told = self._is_told, True
                return CallResult((), Outcome("failed", reason, detail="hung"), fresh=not told)
            self._is_told = False
            taken = CallResult(self._blocks, self._outcome, self._fresh)
            self._blocks = ()
            self._fresh = False
            return taken

    def ask(self) -> None:
        """One question and its answer, for the next tick to take."""
        before_ns = thread_cpu_ns()
        with self._lock:
            self._asked_mono_ns = self._clock.mono_ns()
        blocks, outcome = self._ask()
        cost_seconds = (thread_cpu_ns() - before_ns) / 1e9
        with self._lock:
            self._asked_mono_ns = None
            waiting = self._blocks if self._is_streaming else ()
            self._blocks = (*waiting, *blocks)[-WAITING_BLOCKS:]
            note = getattr(self._source, "note", "") if outcome.state == "ok" else ""
            self._outcome = Outcome(outcome.state, outcome.reason, cost_seconds, outcome.detail, note)
            self._fresh = True

    def _run(self) -> None:
        while not self._stop.is_set():
            started_mono_ns = self._clock.mono_ns()
            self.ask()
            self._clock.wait_until(started_mono_ns + round(self._wait_seconds() * 1e9), self._stop)
        self._close()

    def _close(self) -> None:
        if self._source:
            self._source.close()

    @property
    def pace_seconds(self) -> float:
        """The source's own; it may change while it runs."""
        return (self._source or self._make).pace_seconds

    def _wait_seconds(self) -> float:
        if self._source and self._outcome.state != "absent":
            return self.pace_seconds * self.pace_ratio
        return float(getattr(self._make, "absent_pace_seconds", ABSENT_PACE_SECONDS))

    def _keep_set(self, block: Block) -> Block:
        """Who sees the same tuple again, need not name or render it again."""
        known = self._sets.get(block.table.name)
        if known != block.entities:
            self._sets[block.table.name] = block.entities
            return block
        return block if known is block.entities else replace(block, entities=known)

    def _ask(self) -> tuple[tuple[Block, ...], Outcome]:
        def ask() -> tuple[Block, ...]:
            source = self._source = self._source or self._make(self._context)
            blocks = check_all(Block, source.parse(source.read(), self._clock.mono_ns()))
            return tuple(self._keep_set(block) for block in blocks)

        nothing: tuple[Block, ...] = ()
        return run_guarded(self.name, ask, nothing)
