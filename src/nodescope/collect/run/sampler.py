"""
The sampler: one tick a second on a thread of its own, at absolute deadlines.

A late tick does not move the next one; ticks that could not be taken are
counted, not caught up with. One tick: refresh the sets of entities, one batch
call over all due segments, take what the call sources have, make the frame,
hand it to the sinks.
"""

import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np

from nodescope.base.block import Block
from nodescope.base.clock import Clock, thread_cpu_ns
from nodescope.base.frame import OK, Event, Frame, Outcome
from nodescope.base.log import Log
from nodescope.base.self_counters import SamplerCounters
from nodescope.base.status import SamplerStatus, TableStatus
from nodescope.collect.files.batch import FileFault, ReadSegment, read_segments
from nodescope.collect.run.budget import Budget, count_per_second
from nodescope.collect.run.call_runner import NOT_ASKED, CallRunner
from nodescope.collect.run.guard import check_all, run_guarded
from nodescope.collect.run.source import BatchSource, Context, MakeBatchSource, OpenFiles, Tick

log = Log("sampler")

# A source that was absent or could not be opened is tried again at this pace.
REOPEN_TICKS = 60
# Faults that say "nothing to read here", not "reading went wrong".
QUIET = frozenset({"gone", "not_offered"})
# Events of others that wait for the next tick; the oldest leave.
TOLD_MOST = 1000


class Sink(Protocol):
    """Where frames go. Must return at once and never raise."""

    def accept(self, frame: Frame) -> None: ...


def take_block(segment: ReadSegment, mono_ns: int) -> Block | None:
    """What a segment read; nothing when its reading broke off."""
    if segment.faults and any(fault.status == "raised" for fault in segment.faults):
        return None
    block = segment.block(mono_ns)
    # A dozen times a tick: what it promises is looked at before it is listed.
    if block is None or type(block) is Block:
        return block
    return check_all(Block, (block,))[0]


def refresh_source(source: BatchSource, tick: Tick) -> tuple[Event, ...]:
    return check_all(Event, source.refresh(tick))


class SourceSlot:
    """A batch source, once it is made, and how it stands."""

    def __init__(self, make: MakeBatchSource) -> None:
        self.name = make.name
        self.source: BatchSource | None = None
        self.outcome = Outcome("absent", NOT_ASKED)
        self.refresh_cost_ns = 0
        self.is_fixed = False
        """Whether its entities are always the same: then there is nothing to refresh."""
        self.segments: Sequence[tuple[ReadSegment, int]] = ()
        """Of a source they are the same as long as it is open."""
        self._make = make

    def open(self, context: Context) -> None:
        self.source, self.outcome = run_guarded(self.name, lambda: self._make(context), None)
        self.is_fixed = isinstance(self.source, OpenFiles)
        self.segments = tuple(self.source.segments()) if self.source else ()


class Sampler:
    """Owns the sources; everything downstream sees frames only."""

    def __init__(
        self,
        batch_sources: Sequence[MakeBatchSource],
        callers: Sequence[CallRunner],
        sinks: Sequence[Sink],
        context: Context,
        clock: Clock,
    ) -> None:
        self.counters = SamplerCounters(containers=context.container_counters)
        self.interval_ns = round(context.settings.interval_seconds * 1e9)
        interval_seconds = context.settings.interval_seconds
        self.budget = Budget(
            context.settings.budget_ratio * interval_seconds, count_per_second(interval_seconds)
        )
        self.outcomes: dict[str, Outcome] = {}
        self.told: deque[Event] = deque(maxlen=TOLD_MOST)
        """Events of other threads: the next frame takes them along."""
        self.faults: dict[str, list[FileFault]] = {}
        self._slots = [SourceSlot(make) for make in batch_sources]
        self._callers = list(callers)
        self._sinks = list(sinks)
        self._context = context
        self._clock = clock
        self._number = 0
        self.stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def connect(self, sink: Sink) -> None:
        """One more sink, before the start."""
        self._sinks.append(sink)

    # -- the loop ---------------------------------------------------------

    def start(self) -> None:
        for caller in self._callers:
            caller.start()
        self._thread = threading.Thread(target=self.run, name="sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        for caller in self._callers:
            caller.stop()
        if self._thread:
            self._thread.join(timeout=5)
        for caller in self._callers:
            caller.join()
        for slot in self._slots:
            if slot.source:
                slot.source.close()

    def run(self) -> None:
        deadline_ns = self._clock.mono_ns()
        while not self._clock.wait_until(deadline_ns, self.stopping):
            late_ns = self._clock.mono_ns() - deadline_ns
            self.counters.late_seconds.observe(late_ns / 1e9)
            _, outcome = run_guarded("tick", self.tick, None)
            if outcome.state != OK.state:
                # The next one may do better; this one is lost, and counted.
                self.counters.missed += 1
            deadline_ns += self.interval_ns
            behind_ns = self._clock.mono_ns() - deadline_ns
            if behind_ns > 0:
                # Whole ticks that have passed meanwhile; the grid stays.
                skipped = behind_ns // self.interval_ns
                self.counters.missed += skipped
                deadline_ns += skipped * self.interval_ns

    def status(self) -> SamplerStatus:
        """A snapshot for whoever asks, from any thread."""
        slowed = self.budget.slowed()
        tables = {
            name: TableStatus(
                pace.tier,
                pace.cost_seconds,
                name in slowed,
                tuple(str(fault) for fault in self.faults.get(name, [])[:3]),
            )
            for name, pace in sorted(self.budget.paces.copy().items())
        }
        interval_seconds = self.interval_ns / 1e9
        load_ratio = self.budget.load_seconds / interval_seconds
        files = self._context.descriptors.status()
        return SamplerStatus(interval_seconds, dict(self.outcomes), tables, load_ratio, self.counters, files)

    # -- one tick ---------------------------------------------------------

    def tick(self) -> Frame:
        tick = Tick(self._number, self._clock.wall_ns(), self._clock.mono_ns())
        self.counters.loop_mono_ns = tick.mono_ns
        events = self._refresh(tick)
        while self.told:
            events.append(self.told.popleft())
        due = self._due(tick.number)
        read_segments([segment for _, segment in due])
        blocks = self._gather(due)
        blocks += self._take_calls()
        frame = Frame(
            tick.number, tick.at_ns, tick.mono_ns, tuple(blocks), dict(self.outcomes), tuple(events)
        )
        self._count(frame)
        self._number += 1
        moved = self.budget.adjust(self._number)
        if moved:
            self._apply_pace(*moved)
        for sink in self._sinks:
            sink.accept(frame)
        return frame

    def _refresh(self, tick: Tick) -> list[Event]:
        events: list[Event] = []
        before_ns = thread_cpu_ns()
        for slot in self._slots:
            if slot.source is None:
                if tick.number % REOPEN_TICKS == 0:
                    slot.open(self._context)
                    self._register(slot)
                self._note_outcome(slot.name, slot.outcome)
                if slot.source is None:
                    continue
            if slot.is_fixed:
                self.outcomes[slot.name] = OK
                continue
            nothing: tuple[Event, ...] = ()
            happened, outcome = run_guarded(slot.name, partial(refresh_source, slot.source, tick), nothing)
            events.extend(happened)
            after_ns = thread_cpu_ns()
            slot.refresh_cost_ns, before_ns = after_ns - before_ns, after_ns
            self._note_outcome(slot.name, outcome)
        return events

    def _note_outcome(self, name: str, outcome: Outcome) -> None:
        self.outcomes[name] = outcome
        if outcome.state == "failed":
            self.counters.errors[name, outcome.detail] += 1

    def _register(self, slot: SourceSlot) -> None:
        for segment, tier in slot.segments:
            self.budget.register(segment.table.name, tier)

    def _due(self, number: int) -> list[tuple[SourceSlot, ReadSegment]]:
        outcomes, is_due = self.outcomes, self.budget.is_due
        return [
            (slot, segment)
            for slot in self._slots
            if outcomes[slot.name].state == "ok"
            for segment, _ in slot.segments
            if is_due(segment.table.name, number)
        ]

    def _gather(self, due: Sequence[tuple[SourceSlot, ReadSegment]]) -> list[Block]:
        """Blocks from what was read, costs to the budget, faults to outcomes."""
        blocks = []
        mono_ns = self._clock.mono_ns()
        spent_ns: dict[str, int] = {}
        for slot, segment in due:
            name, table, found = slot.name, segment.table.name, segment.faults
            spent_ns[name] = spent_ns.get(name, slot.refresh_cost_ns) + segment.cost_ns
            self.budget.note(table, segment.cost_ns / 1e9)
            if found or table not in self.faults or self.faults[table]:
                self.faults[table] = [one for one in found if one.status not in QUIET]
            block, outcome = run_guarded(name, partial(take_block, segment, mono_ns), None)
            if block is not None:
                blocks.append(block)
            if outcome.state == "ok":
                self._judge(slot, segment, block)
            else:
                self._note_outcome(name, outcome)
        for name, cost_ns in spent_ns.items():
            outcome = self.outcomes[name]
            self.outcomes[name] = Outcome(outcome.state, outcome.reason, cost_ns / 1e9, outcome.detail)
        return blocks

    def _judge(self, slot: SourceSlot, segment: ReadSegment, block: Block | None) -> None:
        """
        A source is failed when its main table gave nothing; other faults are in /status.

        One container's unreadable file must not hide all the others.
        """
        loud = self.faults[segment.table.name]
        if not loud:
            return
        for fault in loud:
            self.counters.errors[slot.name, fault.status] += 1
        first, _ = slot.segments[0]
        if segment is first and (block is None or np.isnan(block.values).all()):
            more = f" (and {len(loud) - 1} more)" if len(loud) > 1 else ""
            self.outcomes[slot.name] = Outcome("failed", f"{loud[0]}{more}", detail=loud[0].status)

    def _take_calls(self) -> list[Block]:
        blocks: list[Block] = []
        mono_ns = self._clock.mono_ns()
        for caller in self._callers:
            if caller.name in self.outcomes and not caller.has_news(mono_ns):
                continue
            taken = caller.take()
            blocks.extend(taken.blocks)
            self.outcomes[caller.name] = taken.outcome
            if taken.fresh:
                self._note_call(caller, taken.outcome)
        return blocks

    def _note_call(self, caller: CallRunner, outcome: Outcome) -> None:
        name = caller.name
        if outcome.state == "failed":
            self.counters.errors[name, outcome.detail] += 1
        if outcome.detail == "hung":
            # What it costs is not known before it answers.
            return
        self.budget.register(name, 1)
        # Per tick of its own pace, so that calls and files share one scale.
        share = self.interval_ns / 1e9 / max(caller.pace_seconds, self.interval_ns / 1e9)
        self.budget.note(name, outcome.cost_seconds * share)
        self.counters.cost_seconds[name] += outcome.cost_seconds

    def _apply_pace(self, table: str, tier: int) -> None:
        for caller in self._callers:
            if caller.name == table:
                caller.pace_ratio = tier
        log.warning(
            "pace changed", table=table, every_ticks=tier, budget_ratio=self._context.settings.budget_ratio
        )

    def _count(self, frame: Frame) -> None:
        counters = self.counters
        counters.ticks += 1
        counters.newest_mono_ns = frame.mono_ns
        for slot in self._slots:
            counters.cost_seconds[slot.name] += frame.outcomes[slot.name].cost_seconds
            if slot.source:
                for scope, count in slot.source.dropped().items():
                    counters.over_limit[scope] = count
                    counters.dropped[scope] += count
        for name, outcome in frame.outcomes.items():
            if outcome.state == OK.state:
                counters.last_ok_mono_ns[name] = frame.mono_ns
