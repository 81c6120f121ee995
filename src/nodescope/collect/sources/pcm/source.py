"""
Hardware counters of Intel processors: instructions, caches, memory, energy, C-states.

Reads   `pcm 1 -csv -f` as a child process, or pcm-sensor-server at pcm_url
Needs   Intel's pcm (apt install pcm), root or CAP_SYS_ADMIN and CAP_SYS_RAWIO, the msr module
Docs    https://github.com/intel/pcm

    System,System,System,System,System,Core0 (Socket 0),Core0 (Socket 0),
    Date,Time,IPC,INST,ACYC,IPC,L3MISS,
    2025-07-19,18:27:08.085,0.95,59.83,63.29,1.21,0.01,

The thread of this source waits for rows; the tick takes what there is. A pcm
that ended is started again with back-off, one that cannot work here is said to
be absent with the remedy. Beside another PCM ours is not run.
"""

import shlex
from collections.abc import Callable
from itertools import groupby
from typing import Any

from nodescope.base.block import Block
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.log import Log
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.pcm.columns import LEVELS, ColumnPlan, build_plan, derive_gauges, derive_pairs
from nodescope.collect.sources.pcm.conflict import describe_others, find_others
from nodescope.collect.sources.pcm.csv_stream import PcmHeader, PcmRow, parse_cells, parse_header
from nodescope.collect.sources.pcm.failure import Failure, classify_exit
from nodescope.collect.sources.pcm.interval import IntervalClock
from nodescope.collect.sources.pcm.process import PcmProcess, build_command, find_program, read_version
from nodescope.collect.sources.pcm.sensor_server import Reading, read_server
from nodescope.collect.sources.pcm.totals import PcmTotals

log = Log("pcm")

NOT_INSTALLED = (
    "no pcm on this machine: install it (Debian: apt install pcm; Intel processors only), "
    "set pcm_command, or read a pcm-sensor-server with --pcm-url"
)
# After a failure: at once it would only fail again; a minute is what an
# absent source waits, too.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
# A run of this many rows was a good one: the next failure is a first again.
GOOD_ROWS = 30
# Looking through the process table costs a millisecond; another PCM that came
# meanwhile is found within this many rows.
CONFLICT_ROWS = 10
# pcm was found unable to work here: asked again an hour later, for a msr
# module or a vPMU does not appear by itself every minute.
VERDICT_ASKS = 60


class PcmSource(CallDefaults):
    """Rows of pcm, or answers of its server, into one set of totals."""

    name = "pcm"
    pace_seconds = 0.0
    deadline_seconds = 30.0

    def __init__(
        self, context: Context, find_others: Callable[..., list[tuple[int, str]]] = find_others
    ) -> None:
        self.note = ""
        self._context = context
        self._find_others = find_others
        self._totals = PcmTotals(context.settings.mem_bw_peak_bytes or None)
        self._clock = IntervalClock()
        self._process: PcmProcess | None = None
        self._program: list[str] = []
        self._version: int | None = None
        self._plan: ColumnPlan | None = None
        self._lines: list[str] = []
        self._header = PcmHeader(",", (), is_closed=True)
        self._runs = 0
        self._rows_of_run = 0
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._verdict: tuple[Failure, int] | None = None
        self._mark: tuple[float, ...] = ()
        self._newest_mono_ns = 0
        self._is_stopping = False
        if context.root.is_fixture:
            if not context.root.exists("calls/pcm.json"):
                raise SourceAbsent("not captured on this fixture node")
        elif not context.settings.pcm_url:
            self._find_pcm()

    # -- what is asked ------------------------------------------------------

    def _find_pcm(self) -> None:
        command = shlex.split(self._context.settings.pcm_command)
        found = find_program(command) if command else None
        if found is None:
            raise SourceAbsent(NOT_INSTALLED)
        if self._verdict:
            failure, asks = self._verdict
            self._verdict = (failure, asks - 1) if asks > 1 else None
            raise SourceAbsent(failure.reason)
        if self._program != [found, *command[1:]]:
            self._program = [found, *command[1:]]
            self._version = read_version(self._program)

    def read(self) -> Any:
        """{"tables": [{"header": [...], "rows": [...]}]} of pcm, {"server": text} of its server."""
        return self._context.root.call("pcm", self._ask)

    def _ask(self) -> dict[str, Any]:
        settings = self._context.settings
        if settings.pcm_url:
            self.pace_seconds = settings.interval_seconds
            return {"server": read_server(settings.pcm_url).decode("utf-8", "replace")}
        process = self._process or self._start()
        if self._rows_of_run % CONFLICT_ROWS == CONFLICT_ROWS - 1:
            self._refuse_others(process.pid)
        answer = process.read()
        if isinstance(answer, list):
            self._count_run(len(answer))
            return {"tables": group_rows(answer)}
        raise self._explain(process, answer)

    # -- pcm as a process ---------------------------------------------------

    def _start(self) -> PcmProcess:
        settings = self._context.settings
        self._find_pcm()
        self._refuse_others(None)
        command = build_command(
            self._program, self._version, settings.interval_seconds, per_core=settings.pcm_per_core
        )
        process = self._process = PcmProcess(command, settings.interval_seconds)
        self._rows_of_run = 0
        self._runs += 1
        self._totals.restarts = self._runs - 1
        log.info("pcm started", pid=process.pid, version=self._version, run=self._runs)
        return process

    def _count_run(self, rows: int) -> None:
        self._rows_of_run += rows
        self.pace_seconds = 0.0
        if self._rows_of_run >= GOOD_ROWS:
            self._pause_seconds = FIRST_PAUSE_SECONDS

    def _refuse_others(self, own_pid: int | None) -> None:
        others = self._find_others(self._context.root, own_pid)
        if others:
            self._end_run()
            self._back_off()
            raise SourceFailed(describe_others(others))

    def _explain(self, process: PcmProcess, status: int | None) -> Exception:
        """Why there are no rows, as the outcome of this source; the run is over."""
        if status is None and not self._is_stopping:
            self._end_run()
            self._back_off()
            kind = "no row" if process.has_rows else "not even a first row"
            return SourceFailed(f"pcm stalled: {kind} for too long; it is stopped and started again")
        failure = classify_exit(status or 0, f"{process.remark}")
        is_first = not process.has_rows
        self._end_run()
        if failure.detail == "option" and self._version is None and is_first:
            # It did not tell its version and does not know -f: an old one.
            self._version = 0
        if failure.state == "absent" and is_first:
            self._verdict = (failure, VERDICT_ASKS)
            return SourceAbsent(failure.reason)
        self._back_off()
        return SourceFailed(f"{failure.reason}{self._describe_leftovers()}")

    def _describe_leftovers(self) -> str:
        """A pcm that was killed could not tidy up."""
        groups = [
            name for name in self._context.root.folders("sys/fs/resctrl/mon_groups") if name.startswith("pcm")
        ]
        return f"; it left {len(groups)} groups in /sys/fs/resctrl/mon_groups" if groups else ""

    def _end_run(self) -> None:
        if self._process:
            self._totals.dropped.update(self._process.ignored)
            self._process.stop()
            self._process = None
        self._clock.restart()

    def _back_off(self) -> None:
        self.pace_seconds = self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)

    # -- what is made of it -------------------------------------------------

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        """One block per row and level: a burst of rows keeps its intervals apart."""
        if "server" in answer:
            return self._parse_server(answer["server"], mono_ns)
        rows = [
            PcmRow(self._header_of(table["header"]), tuple(fields))
            for table in answer["tables"]
            for fields in table["rows"]
        ]
        blocks: list[Block] = []
        for row, row_mono_ns in zip(rows, self._spread(len(rows), mono_ns)):
            blocks += self._parse_row(row, row_mono_ns)
        self.note = "; ".join(part for part in (self._describe_pcm(), self._totals.describe_peak()) if part)
        return tuple(blocks)

    def _spread(self, count: int, mono_ns: int) -> list[int]:
        """
        When each row of a burst was measured: the last one now, the others evenly before it.

        Two blocks of one table never have one time; the archive would have a row twice.
        """
        length_ns = round(self._context.settings.interval_seconds * 1e9)
        start_ns = max(self._newest_mono_ns, mono_ns - count * length_ns)
        self._newest_mono_ns = mono_ns
        return [start_ns + (mono_ns - start_ns) * (number + 1) // count for number in range(count)]

    def _parse_row(self, row: PcmRow, mono_ns: int) -> tuple[Block, ...]:
        totals = self._totals
        plan = self._plan_of(row.header)
        cells = parse_cells(row, totals.missing)
        ticks = float(cells[plan.ticks_at]) if plan.ticks_at >= 0 else 0.0
        try:
            seconds = self._clock.measure(row.fields[0], row.fields[1], ticks)
        except ValueError:
            seconds = "bad_date"
        if isinstance(seconds, str):
            totals.dropped[seconds] += 1
        # A row of unknown length still shows which columns there are.
        length = seconds if isinstance(seconds, float) else 1.0
        totals.add(derive_pairs(plan, cells, length), length, is_counted=isinstance(seconds, float))
        for level, gauges in derive_gauges(plan, cells).items():
            totals.levels[level].gauges = gauges
        return self._with_line_counts(mono_ns)

    def _with_line_counts(self, mono_ns: int) -> tuple[Block, ...]:
        """The run's own count of lines is added to the totals when the run ends."""
        kept = self._totals.dropped
        if self._process:
            self._totals.dropped = kept + self._process.ignored
        blocks = self._totals.blocks(mono_ns)
        self._totals.dropped = kept
        return blocks

    def _header_of(self, lines: list[str]) -> PcmHeader:
        """The header is the same for hours: read once, and again when it changes."""
        if lines != self._lines:
            self._lines = lines
            self._header = parse_header(*lines)
        return self._header

    def _plan_of(self, header: PcmHeader) -> ColumnPlan:
        if self._plan is not None and self._plan.header is header:
            return self._plan
        self._plan = build_plan(header)
        levels = self._plan.levels
        things = {
            level: [(name, levels[level].sockets.get(name, "")) for name in levels[level].names]
            for level in LEVELS
        }
        self._totals.arrange(things | {"system": [("system", "")]})
        return self._plan

    def _parse_server(self, text: str, mono_ns: int) -> tuple[Block, ...]:
        reading = Reading(text)
        if reading.mark == self._mark:
            self._totals.dropped["duplicate"] += 1
            return ()
        is_counted = bool(self._mark)
        self._mark = reading.mark
        self._totals.missing.update(reading.missing)
        self._totals.arrange(reading.things)
        self._totals.add(reading.pairs, reading.seconds, is_counted=is_counted)
        for level, gauges in reading.gauges.items():
            self._totals.levels[level].gauges = gauges
        self.note = "; ".join(part for part in ("pcm-sensor-server", self._totals.describe_peak()) if part)
        return self._totals.blocks(mono_ns)

    def _describe_pcm(self) -> str:
        return f"pcm {self._version}" if self._version else "pcm"

    def interrupt(self) -> None:
        self._is_stopping = True
        if self._process:
            self._process.interrupt()

    def close(self) -> None:
        self._end_run()


def group_rows(rows: list[PcmRow]) -> list[dict[str, Any]]:
    """Rows under their header, as plain data that a capture can save."""
    return [
        {"header": write_header(header), "rows": [list(row.fields) for row in group]}
        for header, group in groupby(rows, key=lambda row: row.header)
    ]


def write_header(header: PcmHeader) -> list[str]:
    """Header lines as pcm writes them."""
    separator = header.separator
    end = separator if header.is_closed else ""
    return [
        separator.join(column.group for column in header.columns) + end,
        separator.join(column.metric for column in header.columns) + end,
    ]
