"""
PCM's CSV: from the bytes that a pcm process writes to rows of numbers.

Two header lines, then one line per interval. The first header names the
group of each column, the second the metric; the key is the pair, because
metric names repeat. No quoting. Since 2020:

    System,System,System,System,Socket 0,Socket 0,Core0 (Socket 0),
    Date,Time,IPC,L3MISS,IPC,READ,IPC,
    2025-07-19,18:27:08.085,0.95,0.03,0.95,1.80,1.21,

What differs between generations and tools, all of it understood here:

    up to 201902     `;` as separator; the group stands once, blanks follow
                     (`System;;;Socket0;;`); numbers such as 3.41e+03
    202104-202302    the group cells of the four TMA columns are empty
    2020-2022        energy of the system is labelled `System Pack C-States`
    from 202401      with several sockets the Power Plane columns are labelled
                     PP0 PP0 PP1 PP1 x SKT0 SKT0 SKT1 SKT1, but hold
                     PP0 SKT0, PP1 SKT0, PP0 SKT1, PP1 SKT1
    renamed          MCDRAM_* is HBM_*, QPI is UPI, Socket0 is Socket 0
    pcm-memory       group of Date and Time empty, no separator at the end of
                     a line, blanks before numbers, empty cells
    pcm-pcie         one header `Skt,...` before every sample, no date
    merged           one header whose names are `Group - METRIC`: what people
                     keep after filtering

A line is written newline first: a line feed and the row, ending in a separator. So
the last row has no newline until the next comes; it is whole all the same
when it has as many fields as the header and ends in a separator. Rows may be
torn, doubled, followed by `DEBUG: ...` or be something else altogether: such
lines are dropped and counted by reason.

    forall splits of the bytes into pieces: the same rows
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nodescope.collect.sources.pcm.cell import NAN, Range, choose_range, judge_number, parse_cell

# 4,096 cores of 28 columns with names of 20 characters are 2.3 MB.
LINE_BYTES = 4 * 2**20
LINE_REASONS = ("blank", "foreign", "tail", "short", "long", "bad_date", "duplicate", "too_long")

_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}\s*")
_TIME = re.compile(r"\s*\d{2}:\d{2}:\d{2}(\.\d{1,9})?\s*")
_SOCKET = re.compile(r"Socket ?(-?\d+)")
_POWER_PLANE = re.compile(r"Power Plane [01] Energy \(Joules\)")
_RENAMED = {
    "MCDRAM_READ": "HBM_READ",
    "MCDRAM_WRITE": "HBM_WRITE",
    "TotalQPIin": "TotalUPIin",
    "TotalQPIout": "TotalUPIout",
    "QPItoMC": "UPItoMC",
}
Cells = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PcmColumn:
    """One column by what it means, whatever the generation called it."""

    group: str
    metric: str

    @property
    def bounds(self) -> Range:
        return choose_range(self.group, self.metric)


@dataclass(frozen=True, eq=False)
class PcmHeader:
    """What the columns mean and how lines are separated."""

    separator: str
    columns: tuple[PcmColumn, ...]
    is_closed: bool
    """Rows end in a separator, so an unterminated one can be known to be whole."""
    is_dated: bool = True
    """Date and Time are the first two columns."""

    @cached_property
    def places(self) -> dict[tuple[str, str], int]:
        """Place of each column; of two columns with one key the first counts."""
        places: dict[tuple[str, str], int] = {}
        for number, column in enumerate(self.columns):
            places.setdefault((column.group, column.metric), number)
        return places

    @cached_property
    def most(self) -> Cells:
        """The upper bound of every column, for checking a row at once."""
        bounds = [min(column.bounds.most, 2.0**63 / max(column.bounds.unit, 1.0)) for column in self.columns]
        return np.array(bounds)


@dataclass(frozen=True, slots=True)
class PcmRow:
    """One line that has the header's shape; its cells are still text."""

    header: PcmHeader
    fields: tuple[str, ...]


def parse_header(groups: str | None, metrics: str) -> PcmHeader:
    """The meaning of columns from the header lines, repairs included."""
    separator = ";" if metrics.count(";") > metrics.count(",") else ","
    names = [name.strip() for name in metrics.split(separator)]
    is_closed = len(names) > 1 and not names[-1]
    names = names[:-1] if is_closed else names
    if groups is None:
        pairs = [_split_merged(name) for name in names]
    else:
        pairs = list(zip(_fill_groups(groups.split(separator), len(names)), names, strict=True))
    columns = [_repair(group, metric) for group, metric in pairs]
    _repair_power_planes(columns)
    is_dated = [column.metric for column in columns[:2]] == ["Date", "Time"]
    return PcmHeader(separator, tuple(columns), is_closed, is_dated)


def _split_merged(name: str) -> tuple[str, str]:
    group, dash, metric = name.partition(" - ")
    return (group, metric) if dash else ("", name)


def _fill_groups(cells: list[str], count: int) -> list[str]:
    """Every column's group: an empty cell belongs to the one before it."""
    filled: list[str] = []
    for cell in [*cells[:count], *[""] * (count - len(cells))]:
        filled.append(cell.strip() or (filled[-1] if filled else ""))
    return filled


def _repair(group: str, metric: str) -> PcmColumn:
    group = _SOCKET.sub(lambda match: f"Socket {match[1]}", group)
    if group == "System Pack C-States" and not metric.endswith("res%"):
        group = "System"
    return PcmColumn(group, re.sub(r"^QPI(?=\d)", "UPI", _RENAMED.get(metric, metric)))


def _repair_power_planes(columns: list[PcmColumn]) -> None:
    """Two sockets or more: labels in the order of the data (see above)."""
    places = [number for number, column in enumerate(columns) if _POWER_PLANE.fullmatch(column.group)]
    keys = {columns[number] for number in places}
    if len(keys) == len(places) or len(places) % 2:
        return
    for order, number in enumerate(places):
        socket, plane = divmod(order, 2)
        columns[number] = PcmColumn(f"Power Plane {plane} Energy (Joules)", f"SKT{socket}")


def parse_cells(row: PcmRow, missing: Counter[str]) -> Cells:
    """
    The numbers of a row in PCM's own unit; NaN and a count by reason for the rest.

    Date and Time are NaN, too, and not counted: they are no numbers.
    """
    header = row.header
    first = 2 if header.is_dated else 0
    texts = row.fields[first:]
    cells = np.full(len(row.fields), NAN)
    try:
        if any("_" in text for text in texts):
            raise ValueError("_")  # noqa: TRY301 - Python reads 1_000, PCM writes none
        cells[first:] = list(map(float, texts))
    except ValueError:
        _parse_slowly(row, first, cells, missing)
        return cells
    values, most = cells[first:], header.most[first:]
    with np.errstate(invalid="ignore"):
        bad = ~((values >= 0) & (values <= most))
    for number in np.flatnonzero(bad):
        place = first + int(number)
        column = header.columns[place]
        cells[place], reason = judge_number(float(cells[place]), column.metric, column.bounds)
        if reason:
            missing[reason] += 1
    return cells


def _parse_slowly(row: PcmRow, first: int, cells: Cells, missing: Counter[str]) -> None:
    for place in range(first, len(row.fields)):
        column = row.header.columns[place]
        cells[place], reason = parse_cell(row.fields[place], column.metric, column.bounds)
        if reason:
            missing[reason] += 1


@dataclass(slots=True)
class PcmStream:
    """Bytes in, rows out; keeps one unfinished line and two headers, nothing else."""

    ignored: Counter[str] = field(default_factory=Counter)
    """Lines that were no rows, by reason."""
    header: PcmHeader | None = None
    _open: bytes = b""
    """The line that has no newline yet."""
    _is_taken: bool = False
    """The open line was accepted already; what follows on it is a tail."""
    _is_skipped: bool = False
    """The open line is longer than any line of PCM."""
    _maybe_groups: str | None = None
    """A line that may prove to be a first header."""
    _before: tuple[str, ...] = ()

    def feed(self, data: bytes) -> list[PcmRow]:
        """Rows that a newline finished."""
        *lines, rest = data.split(b"\n")
        rows: list[PcmRow] = []
        for line in lines:
            self._extend(line)
            rows += self._end_line()
        self._extend(rest)
        return rows

    def settle(self) -> list[PcmRow]:
        """The stream is quiet: an open line that is a whole row is one."""
        header = self.header
        if header is None or not header.is_closed or self._is_taken or self._is_skipped:
            return []
        text = _decode(self._open)
        if not text.endswith(header.separator) or text.count(header.separator) != len(header.columns):
            return []
        # Judged once, whatever the verdict: a doubled row is dropped here.
        self._is_taken = True
        self._open = b""
        row = self._judge_row(header, text)
        return [row] if row else []

    def finish(self) -> list[PcmRow]:
        """The stream has ended: the open line is all there will be of it."""
        rows = self.settle()
        if rows or (self._is_taken and not self._open) or not (self._open or self._is_skipped):
            return rows
        return self._end_line(is_cut=True)

    def _extend(self, piece: bytes) -> None:
        if self._is_skipped or len(self._open) + len(piece) > LINE_BYTES:
            self._is_skipped = True
            self._open = b""
        else:
            self._open += piece

    def _end_line(self, *, is_cut: bool = False) -> list[PcmRow]:
        text = _decode(self._open)
        was_taken, was_skipped = self._is_taken, self._is_skipped
        self._open, self._is_taken, self._is_skipped = b"", False, False
        if was_skipped:
            self.ignored["too_long"] += 1
            return []
        if was_taken:
            if text.strip():
                self.ignored["tail"] += 1
            return []
        row = self._judge_line(text, is_cut)
        return [row] if row else []

    def _judge_line(self, text: str, is_cut: bool) -> PcmRow | None:
        if not text.strip(" ,;"):
            self._forget_groups()
            self.ignored["blank"] += 1
            return None
        if _is_metric_header(text):
            self._take_header(text)
            return None
        if self.header and self._looks_like_row(self.header, text):
            return self._judge_row(self.header, text, is_cut=is_cut)
        # Perhaps the first of two headers; if not, text of somebody else.
        self._forget_groups()
        self._maybe_groups = text
        return None

    def _forget_groups(self) -> None:
        if self._maybe_groups is not None:
            self.ignored["foreign"] += 1
            self._maybe_groups = None

    def _take_header(self, text: str) -> None:
        groups, self._maybe_groups = self._maybe_groups, None
        if _is_complete_header(text) and groups is not None:
            self.ignored["foreign"] += 1
            groups = None
        found = parse_header(groups, text)
        # pcm-pcie repeats its header before every sample: the same columns
        # stay the same object.
        if self.header is None or found.columns != self.header.columns:
            self.header = found
        self._before = ()

    @staticmethod
    def _looks_like_row(header: PcmHeader, text: str) -> bool:
        if header.separator not in text:
            return False
        if not header.is_dated:
            return text.lstrip()[:1].isdigit()
        date, time, *_ = [*text.split(header.separator, 2), ""]
        # The tail of a torn row has numbers but no date; it is short, not foreign.
        return bool(_DATE.fullmatch(date) and _TIME.fullmatch(time)) or text.lstrip()[:1].isdigit()

    def _judge_row(self, header: PcmHeader, text: str, *, is_cut: bool = False) -> PcmRow | None:
        self._forget_groups()
        fields = text.split(header.separator)
        count = len(header.columns)
        is_ended = len(fields) == count + 1
        if is_ended and fields[-1].strip():
            # A whole row with somebody's words behind it keeps its numbers.
            is_ended = fields[-1].strip()[:1].isalpha()
            if is_ended:
                self.ignored["tail"] += 1
        if len(fields) > count and not is_ended:
            return self._drop("long")
        if len(fields) < count or (header.is_closed and not is_ended):
            return self._drop("short")
        cells = tuple(fields[:count])
        if header.is_dated and not (_DATE.fullmatch(cells[0]) and _TIME.fullmatch(cells[1])):
            return self._drop("bad_date")
        if is_cut and not is_ended and not self._has_shape_of_last(cells):
            # Where the stream ended the last number may lack digits: 17.9 of 17.92.
            cells = (*cells[:-1], "")
        if header.is_dated and cells == self._before:
            return self._drop("duplicate")
        self._before = cells
        return PcmRow(header, cells)

    def _drop(self, reason: str) -> PcmRow | None:
        self.ignored[reason] += 1
        return None

    def _has_shape_of_last(self, cells: tuple[str, ...]) -> bool:
        """The last cell of a file that ends without a newline: as many decimals as above it."""
        return not self._before or _decimals(cells[-1]) == _decimals(self._before[-1])


def _decimals(cell: str) -> int:
    return len(cell.strip().partition(".")[2])


def _decode(line: bytes) -> str:
    return line.decode("ascii", "replace").rstrip("\r")


def _is_metric_header(text: str) -> bool:
    start = text.lstrip()
    return start.startswith(("Date,Time", "Date;Time")) or _is_complete_header(text)


def _is_complete_header(text: str) -> bool:
    """One line that says everything: pcm-pcie's, or a merged one."""
    first = re.split("[,;]", text, maxsplit=1)[0].strip()
    return first == "Skt" or first.endswith(" - Date")
