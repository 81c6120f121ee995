"""
Layouts: the few ways in which the kernel writes numbers, one pure parser each.

A layout knows its metrics, in column order, and makes a parser: bytes in, one
float per metric out, ParseError for anything else. A key or line that this
kernel does not write is NaN, never 0; the word "max" is +inf. Parsers may
remember where things stood last time, and verify instead of searching.

A number is what the kernel writes: an optional minus, digits, optionally a
point and digits. Python's wider grammar (nan, 1_000, 1e5) is refused.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, TypeVar
from zlib import crc32

from nodescope.base.errors import ParseError
from nodescope.base.metric import Metric

NAN = math.nan
INF = math.inf

Parser = Callable[[bytes], list[float]]
RowParser = Callable[[bytes], tuple[list[str], list[list[float]]]]

# 2^64 has 20 digits. Anything near Python's overflow to infinity is far above.
NUMBER_CHARACTERS = 32
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?")


def parse_number(token: bytes) -> float:
    """One number, or "max" for unlimited."""
    if token.isdigit() and len(token) <= NUMBER_CHARACTERS:
        return float(token)
    if token == b"max":
        return INF
    if len(token) <= NUMBER_CHARACTERS and _NUMBER.fullmatch(token):
        return float(token)
    raise ParseError(f"expected a number, got {token[:40]!r}")


def parse_numbers(tokens: Sequence[bytes]) -> list[float]:
    """Many numbers at once; digits only, the usual case, in two calls of C."""
    joined = b"".join(tokens)
    # Below 300 digits in all, no float can overflow to infinity.
    if joined.isdigit() and len(joined) < 300:
        try:
            return list(map(float, tokens))
        except ValueError:
            # One of them is empty: `total=` of a file that was cut.
            pass
    return list(map(parse_number, tokens))


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Wanting(Generic[Key]):
    """What layouts of several values share: which are wanted, in column order."""

    wanted: Mapping[Key, Metric]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(self.wanted.values())


@dataclass(frozen=True, slots=True)
class Number:
    """The whole file is one number, or "max"."""

    metric: Metric
    unlimited_from: float | None = None
    """cgroup v1 writes "unlimited" as a huge number, or as -1 for a quota."""
    read_bytes: int = 64

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (self.metric,)

    def parser(self) -> Parser:
        limit = self.unlimited_from

        def parse(data: bytes) -> list[float]:
            value = parse_number(data.strip())
            if limit is not None and (value >= limit or value < 0):
                return [INF]
            return [value]

        return parse


@dataclass(frozen=True, slots=True)
class KeyValues(Wanting[str]):
    """
    Lines of `key value`, such as cpu.stat; `Key:  value kB` as in meminfo, too.

    Only the wanted keys are kept. Where they stood in the file before is
    verified first, because a kernel writes the same keys in the same order
    for every cgroup.
    """

    read_bytes: int = 512

    def parser(self) -> Parser:
        names = [key.encode() for key in self.wanted]
        # By number of tokens and lines: two cgroups of one hierarchy may differ
        # (a controller switched on in one), and each shape is learned once.
        plans: dict[tuple[int, int], _Places] = {}

        def parse(data: bytes) -> list[float]:
            tokens = data.split()
            shape = (len(tokens), data.count(b"\n"))
            plan = plans.get(shape)
            if plan is None or plan.keys(tokens) != plan.expected:
                plan = _find_places(data, names)
                if plan.is_regular:
                    plans[shape] = plan
            found = parse_numbers(plan.values(tokens))
            if plan.slots is None:
                return found
            values = [NAN] * len(names)
            for slot, value in zip(plan.slots, found):
                values[slot] = value
            return values

        return parse


@dataclass(frozen=True, slots=True)
class _Places:
    """Where all keys, and the values of the wanted ones, stand among a file's tokens."""

    keys: Callable[[Sequence[bytes]], tuple[bytes, ...]]
    expected: tuple[bytes, ...]
    values: Callable[[Sequence[bytes]], tuple[bytes, ...]]
    is_regular: bool
    """Every line is a key and a value, with or without kB: only such a file is worth remembering."""
    slots: list[int] | None
    """Which wanted key each value belongs to; None when all were found."""


def _find_places(data: bytes, names: Sequence[bytes]) -> _Places:
    where: dict[bytes, int] = {}
    starts: list[int] = []
    keys: list[bytes] = []
    count = 0
    is_regular = True
    for line in data.split(b"\n"):
        tokens = line.split()
        is_regular = is_regular and (len(tokens) in (0, 2) or (len(tokens) == 3 and tokens[2] == b"kB"))
        if tokens:
            # All keys are verified next time, not only the wanted ones: a
            # key that is missing now may come, and one may stand twice.
            starts.append(count)
            keys.append(tokens[0])
        if len(tokens) > 1:
            where.setdefault(tokens[0].rstrip(b":"), count + 1)
        count += len(tokens)
    slots = [slot for slot, name in enumerate(names) if name in where]
    if not slots:
        raise ParseError(f"none of {len(names)} keys in {data[:60]!r}")
    places = [where[names[slot]] for slot in slots]
    # itemgetter of one place gives no tuple; asked twice, it does.
    values = itemgetter(*places, places[0]) if len(places) == 1 else itemgetter(*places)
    return _Places(
        itemgetter(*starts, starts[0]),
        (*keys, keys[0]),
        values,
        is_regular,
        None if len(slots) == len(names) > 1 else slots,
    )


# Which lines a pressure file may have, and the token at which each starts.
_PRESSURE_STARTS: Mapping[tuple[bytes, ...], Mapping[bytes, int]] = {
    (b"some", b"full"): {b"some": 0, b"full": 5},
    (b"some",): {b"some": 0},
    (b"full",): {b"full": 0},
}


@dataclass(frozen=True, slots=True)
class PressureLines(Wanting[tuple[str, str]]):
    """
    Pressure stall information.

        some avg10=1.84 avg60=0.90 avg300=0.31 total=48210377
        full avg10=0.00 avg60=0.00 avg300=0.00 total=0

    Wanted is (line, field) such as ("some", "total"). Before Linux 5.13 the
    cpu file has no `full` line, and irq never has a `some` line: those cells
    are NaN.
    """

    read_bytes: int = 256

    def parser(self) -> Parser:
        # Five tokens a line: its name and four fields in this order, since 4.20.
        order = {"avg10": 1, "avg60": 2, "avg300": 3, "total": 4}
        places = [(line.encode(), order[name], name.encode() + b"=") for line, name in self.wanted]
        plan = [(line, place, prefix, len(prefix)) for line, place, prefix in places]

        def parse(data: bytes) -> list[float]:
            tokens = data.split()
            starts = _PRESSURE_STARTS.get(tuple(tokens[::5]))
            if starts is None or len(tokens) % 5:
                raise ParseError(f"expected pressure lines, got {data[:60]!r}")
            wanted = []
            for line, place, prefix, length in plan:
                first = starts.get(line)
                if first is None:
                    continue
                token = tokens[first + place]
                if not token.startswith(prefix):
                    raise ParseError(f"expected {line.decode()} {prefix.decode()}, got {token[:40]!r}")
                wanted.append(token[length:])
            values = parse_numbers(wanted)
            if len(values) == len(plan):
                return values
            found = iter(values)
            return [next(found) if line in starts else NAN for line, _, _, _ in plan]

        return parse


@dataclass(frozen=True, slots=True)
class Fields(Wanting[int]):
    """Numbers at fixed places of one line, such as loadavg or cpu.max."""

    read_bytes: int = 256

    def parser(self) -> Parser:
        places = list(self.wanted)
        least = max(places) + 1

        def parse(data: bytes) -> list[float]:
            tokens = data.split()
            if len(tokens) < least:
                raise ParseError(f"expected {least} fields or more, got {len(tokens)}: {data[:60]!r}")
            return parse_numbers([tokens[place] for place in places])

        return parse


@dataclass(frozen=True, slots=True)
class ProcessStat(Wanting[int]):
    """
    /proc/PID/stat: fields by their number in proc(5), counted from 1.

    The name is in parentheses and may hold anything, parentheses and spaces
    included, so fields are counted from behind the last one.
    """

    read_bytes: int = 512

    def parser(self) -> Parser:
        places = [number - 3 for number in self.wanted]
        least = max(places) + 1

        def parse(data: bytes) -> list[float]:
            behind = data.rfind(b")") + 1
            tokens = data[behind:].split()
            if not behind or len(tokens) < least:
                raise ParseError(f"expected {least + 2} fields or more, got {len(tokens) + 2}: {data[:60]!r}")
            return parse_numbers([tokens[place] for place in places])

        return parse


@dataclass(frozen=True, slots=True)
class PairSums(Wanting[str]):
    """
    `8:0 rbytes=1 wbytes=2 ...` per device, summed over the devices (io.stat).

    An empty file means that nothing was read or written yet: zeros that the
    kernel means as such.
    """

    read_bytes: int = 2048

    def parser(self) -> Parser:
        numbers = {key.encode(): number for number, key in enumerate(self.wanted)}

        def parse(data: bytes) -> list[float]:
            sums = [0.0] * len(numbers)
            for token in data.split():
                key, equals, value = token.partition(b"=")
                number = numbers.get(key)
                if equals and number is not None:
                    sums[number] += parse_number(value)
                elif not equals and b":" not in key:
                    raise ParseError(f"expected device or key=value, got {token[:40]!r}")
            return sums

        return parse


@dataclass(frozen=True, slots=True)
class OperationSums(Wanting[str]):
    """
    cgroup v1's blkio: `8:0 Read 4096` per device and operation, summed over devices.

    The closing `Total N` line is passed over.
    """

    read_bytes: int = 2048

    def parser(self) -> Parser:
        numbers = {key.encode(): number for number, key in enumerate(self.wanted)}

        def parse(data: bytes) -> list[float]:
            sums = [0.0] * len(numbers)
            for line in data.splitlines():
                tokens = line.split()
                if len(tokens) == 3:
                    number = numbers.get(tokens[1])
                    if number is not None:
                        sums[number] += parse_number(tokens[2])
                elif len(tokens) != 2 or tokens[0] != b"Total":
                    raise ParseError(f"expected device, operation and number, got {line[:40]!r}")
            return sums

        return parse


@dataclass(frozen=True, slots=True)
class Pids:
    """
    cgroup.procs: one pid a line. How many, and a check of which.

    Who sees the same check as before need not look at the list itself: two
    lists of one check are one in four thousand million.
    """

    count: Metric
    check: Metric
    read_bytes: int = 4096

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (self.count, self.check)

    def parser(self) -> Parser:
        def parse(data: bytes) -> list[float]:
            return [float(len(parse_pids(data))), float(crc32(data))]

        return parse


def parse_pids(data: bytes) -> list[int]:
    """The pids of cgroup.procs."""
    tokens = data.split()
    if not all(map(bytes.isdigit, tokens)):
        raise ParseError(f"expected one pid a line, got {data[:60]!r}")
    return list(map(int, tokens))


GridLayout = Number | KeyValues | PressureLines | Fields | ProcessStat | PairSums | OperationSums | Pids


@dataclass(frozen=True, slots=True)
class DeviceRows(Wanting[int]):
    """
    A table with one row per device: diskstats, net/dev, the cpu lines of stat.

    `name_at` is the field with the device's name; wanted fields are counted
    from the field behind it. A row with fewer fields than wanted (older
    kernels write fewer) has NaN there.
    """

    name_at: int = 0
    separator: bytes = b""
    """Splits the name off where it may touch the first number (net/dev's colon)."""
    skip_lines: int = 0
    """Header lines."""
    keep: Callable[[str], bool] = field(default=lambda _: True)
    """Which rows are devices at all."""
    least_fields: int = 1
    read_bytes: int = 16384

    def parser(self) -> RowParser:
        places = list(self.wanted)

        def parse(data: bytes) -> tuple[list[str], list[list[float]]]:
            names: list[str] = []
            rows: list[list[float]] = []
            for line in data.split(b"\n")[self.skip_lines :]:
                named = _split_row(line, self.name_at, self.separator)
                if named is None:
                    continue
                name, tokens = named
                if not self.keep(name):
                    continue
                if len(tokens) < self.least_fields:
                    raise ParseError(
                        f"{name}: expected {self.least_fields} numbers or more, got {len(tokens)}"
                    )
                rows.append(_pick(tokens, places))
                names.append(name)
            return names, rows

        return parse


@dataclass(frozen=True, slots=True)
class RowPlan:
    """
    The lines of a table as they stood: for a reader that verifies instead of searching.

    A file whose lines begin with these bytes has the same rows under the
    same names.
    """

    starts: tuple[bytes, ...]
    slots: tuple[int, ...]
    """The row that a line is, -1 for a line that is none, -2 for a header."""
    layout: DeviceRows


def plan_rows(layout: DeviceRows, data: bytes, names: Sequence[str]) -> RowPlan | None:
    """Where the rows of these names stand in the bytes they came from; None where that is not plain."""
    numbers = {name: number for number, name in enumerate(names)}
    places = list(layout.wanted)
    if len(numbers) < len(names) or places != sorted(places):
        return None
    starts, slots = [], []
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n")):
        if number < layout.skip_lines:
            starts.append(b"")
            slots.append(-2)
            continue
        named = _split_row(line, layout.name_at, layout.separator)
        if named is None:
            return None
        name, _ = named
        starts.append(_start_of_row(line, layout))
        slots.append(numbers.get(name, -1))
    return RowPlan(tuple(starts), tuple(slots), layout)


def _start_of_row(line: bytes, layout: DeviceRows) -> bytes:
    """A line's bytes up to the end of its device's name."""
    if layout.separator:
        return line[: line.index(layout.separator) + len(layout.separator)]
    end = 0
    for token in line.split()[: layout.name_at + 1]:
        end = line.index(token, end) + len(token)
    return line[:end]


def _split_row(line: bytes, name_at: int, separator: bytes) -> tuple[str, list[bytes]] | None:
    if separator:
        head, found, tail = (
            line.rpartition(separator) if line.count(separator) == 1 else line.partition(separator)
        )
        if not found:
            return None
        return head.strip().decode("utf-8", "surrogateescape"), tail.split()
    tokens = line.split()
    if len(tokens) <= name_at:
        return None
    return tokens[name_at].decode("utf-8", "surrogateescape"), tokens[name_at + 1 :]


def _pick(tokens: Sequence[bytes], places: Sequence[int]) -> list[float]:
    count = len(tokens)
    if count > places[-1]:
        return parse_numbers([tokens[place] for place in places])
    return [parse_number(tokens[place]) if place < count else NAN for place in places]
