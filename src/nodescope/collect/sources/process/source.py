"""
Processes: CPU time and memory of the busiest and the largest.

Reads   /proc/PID/stat, /proc/PID/cgroup, /proc/loadavg
Needs   Linux; the host's pid namespace to see more than its own
Docs    https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html

    4242 (tmux: server) S 1 4242 4242 0 -1 4194368 3096 ... 0 0 0 20 0 1 0 8931 ...

The top ones by CPU and by memory are shown, and read every tick, as are new
ones; the others in turns, each every fifth tick: their counters miss nothing.
New ones are told by the newest pid in /proc/loadavg, ended ones by their file.
The choice is stable: who is in leaves only when somebody is clearly ahead. A
pid that is used again is another process: its start time differs, and the old
descriptor answers "no such process".
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Block, Info, Table, Values
from nodescope.base.entity import Entity, Labels
from nodescope.base.errors import SourceAbsent
from nodescope.base.frame import Event
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.batch import FileFault, ReadSegment
from nodescope.collect.files.file_rows import FileRows
from nodescope.collect.files.layout import ProcessStat
from nodescope.collect.run.source import Context, Tick
from nodescope.collect.sources.process.new_pids import NewPids

# An outsider must be this much ahead of the last insider to take its place.
LEAD = 1.25
# CPU use is remembered with this half-life, in ticks: a burst keeps a process
# in sight for some minutes, an hour-old burst does not.
HALF_LIFE_TICKS = 30.0
# A name may change by exec, a cgroup by the runtime's move: both in the first
# seconds, so a process is looked at again after five ticks, ten, twenty, ...
RENAME_TICKS = 5
# ... and from then on at this pace. All looks but the first are at multiples of five: most ticks have none.
SETTLED_TICKS = 60
# Texts of /proc/PID/cgroup whose container is remembered; a node has one for each of its cgroups.
OWNERS_MOST = 4096
# Who is not shown is read every so many readings ...
TURN_READINGS = 5
# ... once it is older than this: a burst soon after the start is not missed.
YOUNG_TICKS = 10
# All pids are listed at this pace, whatever the newest pid says: a restored
# process (CRIU) may have taken a pid out of turn.
LIST_TICKS = 30

INFO = Info("cpu_process_info", "Whose process it is; always 1.", ("namespace", "pod", "container"))


def columns(context: Context) -> tuple[Metric, ...]:
    tick = 1 / context.ticks_per_second
    return (
        Metric("process.utime", "counter", "CPU time in user mode.", unit="seconds", scale=tick),
        Metric("process.stime", "counter", "CPU time in the kernel.", unit="seconds", scale=tick),
        Metric("process.num_threads", "gauge", "Threads."),
        Metric("process.starttime", "gauge", "Start, in clock ticks since boot."),
        Metric(
            "process.rss",
            "gauge",
            "Resident memory.",
            "cpu_process_rss_bytes",
            unit="bytes",
            scale=float(context.page_bytes),
        ),
        Metric(
            "process.cpu",
            "counter",
            "CPU time used, since its start.",
            "cpu_process_cpu_seconds_total",
            unit="seconds",
            scale=tick,
        ),
    )


# Field numbers of proc(5) for the columns above; `process.cpu` is their sum.
FIELDS = (14, 15, 20, 22, 24)
UTIME, STIME, THREADS, START, RSS, CPU = range(6)
# The start time is field 22, and the first behind the name is field 3.
START_TOKEN = 19
STAT_BYTES = 1024


@dataclass(slots=True)
class Process:
    """One pid as long as it is the same process."""

    pid: int
    start: str
    shown: Entity | None = None
    """With name and owner, once it was chosen."""
    look_tick: int = 0
    """When it is looked at again."""


class Everyone:
    """The segment: all processes are looked at, only the chosen ones leave as a block."""

    def __init__(
        self,
        context: Context,
        table: Table,
        layout: ProcessStat,
        due: Callable[[], NDArray[np.intp]],
        choose: Callable[[Values], None],
    ) -> None:
        self.table = Table("process.all", "process", ("process",), layout.metrics)
        self.cost_ns = 0
        self.rows = FileRows(self.table.name, layout, context.root, context.descriptors)
        self.faults: list[FileFault] = []
        self.shown_table = table
        self.chosen_rows: list[int] = []
        self.chosen: tuple[Entity, ...] = ()
        self.due = due
        self.choose = choose
        self._values: Values = np.empty((0, len(FIELDS)))

    def read(self) -> None:
        self._values = self.rows.read(self.due())
        self.faults = self.rows.faults

    def block(self, mono_ns: int) -> Block | None:
        values = self._values
        self.choose(values)
        picked = values[self.chosen_rows]
        total = picked[:, UTIME] + picked[:, STIME]
        cells = np.column_stack([picked, total])
        ended = np.isnan(total)
        if not ended.any():
            return Block(self.shown_table, self.chosen, cells, mono_ns)
        living = tuple(entity for entity, has_ended in zip(self.chosen, ended) if not has_ended)
        return Block(self.shown_table, living, cells[~ended], mono_ns)

    def close(self) -> None:
        self.rows.close()


class ProcessSource:
    """Keeps the set of processes and chooses who is shown."""

    name = "process"

    def __init__(self, context: Context) -> None:
        if not context.root.exists("proc/stat"):
            raise SourceAbsent("no /proc: this is not Linux")
        self._context = context
        self._pidlist = context.root.pidlist("proc")
        self._new_pids = NewPids(context.root)
        self._pids = b""
        metrics = columns(context)
        self._layout = ProcessStat(dict(zip(FIELDS, metrics)))
        table = Table("process", "process", ("process",), metrics, INFO)
        self._everyone = Everyone(context, table, self._layout, self._due, self._choose)
        self._order: list[Process] = []
        """By row."""
        # Beside the rows: recent CPU use, the last reading, and who is shown.
        self._heat = np.empty(0)
        self._cpu_before = np.empty(0)
        self._inside = np.empty(0, dtype=np.bool_)
        self._fresh = np.empty(0, dtype=np.bool_)
        """Who was read in this tick."""
        self._starts = np.empty(0)
        self._met_ticks = np.empty(0)
        self._tick_number = 0
        self._readings = 0
        self._look_tick = 0
        """When the first of those shown is looked at again."""
        self._has_newcomers = False
        self._is_complete = False
        """Whether every pid that is listed is a process that we know."""
        self._owners: dict[str, Labels] = {}
        """By text of /proc/PID/cgroup, as long as the containers and their names are these."""
        self._owners_of = (-1, -1)

    def refresh(self, tick: Tick) -> Iterable[Event]:
        """Processes that came and went: by the pids given out, or by the names in /proc."""
        self._tick_number = tick.number
        rows = self._everyone.rows
        born = self._new_pids.read()
        if born is None or tick.number % LIST_TICKS == 0:
            self._list()
        elif born or rows.gone:
            # Whose file has ended may have left its pid to another.
            ended = [self._order[row].pid for row in rows.gone]
            kept = [row for row in range(len(self._order)) if row not in rows.gone]
            known = {self._order[row].pid for row in kept}
            self._change(kept, sorted({*born, *ended} - known))
        return ()

    def _list(self) -> None:
        gone = self._everyone.rows.gone
        pids = self._pidlist.read()
        if pids == self._pids and not gone and self._is_complete:
            return
        self._pids = pids
        now = set(np.frombuffer(pids, dtype=np.int32).tolist())
        kept = [row for row, process in enumerate(self._order) if process.pid in now and row not in gone]
        known = {self._order[row].pid for row in kept}
        self._change(kept, sorted(now - known))
        self._is_complete = len(self._order) == len(now)

    def _change(self, kept: list[int], pids: list[int]) -> None:
        """These rows stay; these pids may be processes that we do not know."""
        came = [new for pid in pids if (new := self._meet(pid))]
        if not came and len(kept) == len(self._order):
            return
        self._order = [self._order[row] for row in kept] + [process for process, _ in came]
        added = [(f"proc/{process.pid}/stat", descriptor) for process, descriptor in came]
        self._everyone.rows.change(kept, added)
        self._rearrange(kept)

    def _meet(self, pid: int) -> tuple[Process, int] | None:
        """A new process and its open file; None when it has ended already."""
        root = self._context.root
        try:
            descriptor = root.open(f"proc/{pid}/stat")
        except OSError:
            return None
        try:
            data = os.pread(descriptor, STAT_BYTES, 0)
        except OSError:
            data = b""
        tokens = data[data.rfind(b")") + 1 :].split()
        if len(tokens) <= START_TOKEN or not tokens[START_TOKEN].isdigit():
            os.close(descriptor)
            return None
        return Process(pid, tokens[START_TOKEN].decode()), descriptor

    # -- choosing ---------------------------------------------------------

    def _due(self) -> NDArray[np.intp]:
        """The rows to read now: the shown, the young, and every fifth of the rest."""
        # By readings, not by ticks: the budget may let only every fifth tick read.
        self._readings += 1
        turn = np.arange(len(self._order)) % TURN_READINGS == self._readings % TURN_READINGS
        young = self._met_ticks > self._tick_number - YOUNG_TICKS
        self._fresh = self._inside | young | turn
        return np.flatnonzero(self._fresh)

    def _choose(self, values: Values) -> None:
        """The top by CPU and the top by memory; insiders have a head start."""
        everyone = self._everyone
        others = values[:, START] != self._starts
        if others.any():
            # A pid that is used again, read by its path: not the process we know.
            strangers = others & ~np.isnan(values[:, START])
            values[strangers] = np.nan
            everyone.rows.gone.update(np.flatnonzero(strangers).tolist())
            self._warm(np.nan_to_num(values[:, UTIME] + values[:, STIME]))
            sizes = np.nan_to_num(values[:, RSS])
        else:
            self._warm(values[:, UTIME] + values[:, STIME])
            sizes = values[:, RSS]
        # Nobody enters with an old reading: it would be stamped with this tick's time.
        head_start = np.where(self._inside, LEAD, self._fresh)
        rows = self._rank(self._heat * head_start, sizes * head_start)
        is_same = rows == everyone.chosen_rows and self._look_tick > 0
        if is_same and self._tick_number < self._look_tick:
            return
        if not is_same:
            self._inside[:] = False
            self._inside[rows] = True
            everyone.rows.favour(rows)
        order, number = self._order, self._tick_number
        chosen = [order[row] for row in rows]
        for row, process in zip(rows, chosen):
            # Most are known: nothing is called for them.
            if process.look_tick <= number:
                self._look_at(process, int(self._met_ticks[row]))
        shown = tuple([process.shown for process in chosen if process.shown])
        if shown != everyone.chosen:
            everyone.chosen = shown
        everyone.chosen_rows = rows
        self._look_tick = min([process.look_tick for process in chosen], default=number + 1)

    def _rank(self, by_cpu: Values, by_memory: Values) -> list[int]:
        """The rows of the largest by each, in ascending order."""
        top, limit = self._context.settings.process_top, self._context.limit("process")
        lists = _largest(by_cpu, top), _largest(by_memory, top)
        # Not union1d, which sorts, and takes longer than both lists.
        is_top = np.zeros(len(by_cpu), dtype=np.bool_)
        for found in lists:
            is_top[found] = True
        rows: list[int] = np.flatnonzero(is_top).tolist()
        if len(rows) <= limit:
            return rows
        # By turns, so that a limit cuts both lists alike, and the last of each.
        best = (_descending(scores, found) for scores, found in zip((by_cpu, by_memory), lists))
        ranked = dict.fromkeys(row for pair in zip_longest(*best) for row in pair)
        ranked.pop(None, None)
        return sorted(list(ranked)[:limit])

    def _warm(self, totals: Values) -> None:
        """CPU use of late; a process seen for the first time starts with its whole past."""
        grown = np.maximum(0.0, totals - self._cpu_before)
        if self._has_newcomers:
            # A long past counts little: one tick of CPU now beats a second long ago.
            grown = np.where(np.isnan(self._cpu_before), totals * 0.01, grown)
            self._has_newcomers = False
        self._heat *= 0.5 ** (1 / HALF_LIFE_TICKS)
        self._heat += grown
        self._cpu_before = totals

    def _rearrange(self, kept: list[int]) -> None:
        """The rows changed: what is remembered of each moves to its new place."""
        self._has_newcomers = True
        self._look_tick = 0
        fresh = len(self._order) - len(kept)
        starts = [float(process.start) for process in self._order[len(kept) :]]
        self._starts = np.concatenate([self._starts[kept], starts])
        self._met_ticks = np.concatenate([self._met_ticks[kept], np.full(fresh, self._tick_number)])
        self._heat = np.concatenate([self._heat[kept], np.zeros(fresh)])
        self._cpu_before = np.concatenate([self._cpu_before[kept], np.full(fresh, np.nan)])
        self._inside = np.concatenate([self._inside[kept], np.zeros(fresh, dtype=np.bool_)])

    def _look_at(self, process: Process, met_tick: int) -> None:
        """Its name and owner, and when they are read again."""
        # Known for as long again: one that enters late has settled long ago.
        patience = max(RENAME_TICKS, min(self._tick_number - met_tick, SETTLED_TICKS))
        look_tick = self._tick_number + patience
        process.look_tick = look_tick - (look_tick % RENAME_TICKS if patience > RENAME_TICKS else 0)
        shown = self._describe(process)
        if shown != process.shown:
            process.shown = shown

    def _describe(self, process: Process) -> Entity:
        root = self._context.root
        stat = root.read_text(f"proc/{process.pid}/stat") or ""
        name = clean_text(stat[stat.find("(") + 1 : stat.rfind(")")])
        labels = (("pid", str(process.pid)), ("name", name))
        owner = self._remember_owner(root.read_text(f"proc/{process.pid}/cgroup") or "")
        return Entity("process", (str(process.pid), process.start), labels, owner)

    def _remember_owner(self, text: str) -> Labels:
        """Most processes share their text with others, and have it again at the next look."""
        now = (self._context.live_containers.version, self._context.names.version)
        if now != self._owners_of or len(self._owners) >= OWNERS_MOST:
            self._owners, self._owners_of = {}, now
        known = self._owners.get(text)
        if known is None:
            known = self._owners[text] = self._find_owner(text)
        return known

    def _find_owner(self, text: str) -> Labels:
        """Namespace, pod and container from /proc/PID/cgroup; empty for the host's own."""
        # Not splitlines: a cgroup's name may hold any line break but the line feed.
        for line in text.split("\n"):
            cgroup, member = self._context.live_containers.identify(line.split(":", 2)[-1])
            if cgroup.container_id:
                name = self._context.names.lookup(cgroup)
                if member:
                    name_of = dict(member.entity.labels)
                    words = (name_of["namespace"], name_of["pod"], name_of["container"])
                else:
                    words = (name.namespace, name.pod, name.container)
                details = tuple(zip(INFO.labels, words))
                return (*details, ("container_id", cgroup.container_id), ("pod_uid", cgroup.pod_uid))
        return tuple((label, "") for label in INFO.labels)

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(self._everyone, 1)]

    def dropped(self) -> dict[str, int]:
        return {"process": max(0, len(self._order) - len(self._everyone.chosen))}

    def close(self) -> None:
        for opened in (self._everyone, self._pidlist, self._new_pids):
            opened.close()


def _largest(scores: Values, count: int) -> NDArray[np.intp]:
    """Row numbers of the largest scores above zero, in any order."""
    rows = np.argpartition(scores, -count)[-count:] if len(scores) > count else np.arange(len(scores))
    above: NDArray[np.intp] = rows[scores[rows] > 0]
    return above


def _descending(scores: Values, rows: NDArray[np.intp]) -> list[int]:
    ranked: list[int] = rows[np.argsort(-scores[rows], kind="stable")].tolist()
    return ranked
