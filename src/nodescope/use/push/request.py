"""
Blocks to OTLP: the bytes of an ExportMetricsServiceRequest.

    request   1 resource_metrics: 1 resource {1 attributes}, 2 scope_metrics, 3 schema_url
    scope     1 scope {1 name, 2 version}, 2 metrics
    metric    1 name, 2 description, 3 unit, 5 gauge {1 points}, 7 sum {1 points, 2 temporality, 3 monotonic}
    point     2 start, 3 time, 4 as_double, 7 attributes

opentelemetry/proto/metrics/v1/metrics.proto. A cell that was not measured has
no point: a gap is a gap. +Inf is no limit, and has none either.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nodescope import __version__
from nodescope.base.block import Block
from nodescope.base.entity import Entity, Labels
from nodescope.base.metric import Metric
from nodescope.serve.protobuf_message import (
    bytes_field,
    double_field,
    fixed_field,
    integer_field,
    text_field,
)
from nodescope.use.push.convention import (
    INACTIVE,
    SCHEMA_URL,
    USAGE,
    WORKING_SET,
    Convention,
    Instrument,
    conventions_of,
)
from nodescope.use.push.resource import NUMBERS, Whose, find_whose
from nodescope.use.push.series_start import SeriesStarts

CUMULATIVE = 2
# A server takes some MiB at once; ours are split well below.
REQUEST_BYTES = 2**20
UNITS = {"seconds": "s", "bytes": "By", "celsius": "Cel", "watts": "W", "joules": "J", "hertz": "Hz"}
UNITS |= {"percent": "%", "ratio": "1", "": "1"}
# Other people's names of what is pushed under ours.
COPIES = (".dcgm", ".amd_names")


@dataclass(frozen=True, slots=True)
class Timed:
    """A block and when it was read."""

    block: Block
    at_ns: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """One request, ready to be sent."""

    body: bytes
    points: int
    at_ns: int
    """Of its newest point."""


@dataclass(slots=True)
class PushedMetric:
    """The points of one name and resource."""

    instrument: Instrument
    head: bytes
    points: list[bytes] = field(default_factory=list)

    def encode(self) -> bytes:
        points = b"".join(bytes_field(1, point) for point in self.points)
        if self.instrument == "gauge":
            return self.head + bytes_field(5, points)
        monotonic = integer_field(3, 1) if self.instrument == "counter" else b""
        return self.head + bytes_field(7, points + integer_field(2, CUMULATIVE) + monotonic)


Groups = dict[Labels, dict[str, PushedMetric]]


@dataclass(slots=True)
class RequestEncoder:
    """Keeps what stays the same from push to push: attributes and the begin of each series."""

    node: Labels
    """What is on every resource."""
    only_conventions: bool = False
    starts: SeriesStarts = field(default_factory=SeriesStarts)
    boot_ns: int | None = None
    _whose: dict[Entity, Whose] = field(default_factory=dict)

    def encode(self, blocks: Sequence[Timed]) -> list[Encoded]:
        """All of them, in requests of bounded size."""
        self.starts.turn()
        self._learn_boot(blocks)
        groups: Groups = {}
        at_ns = max((timed.at_ns for timed in blocks), default=0)
        known = self._whose
        self._whose = {}
        for timed in blocks:
            if not timed.block.table.name.endswith(COPIES):
                self._add_block(groups, timed, known)
        self._add_working_sets(groups, blocks)
        return list(self._split(groups, at_ns))

    def _learn_boot(self, blocks: Sequence[Timed]) -> None:
        """Once: a corrected clock moves it, and no series began again by that."""
        for timed in blocks:
            column = timed.block.table.columns.get("cpu.btime")
            if self.boot_ns is None and column is not None and len(timed.block.values):
                seconds = float(timed.block.values[0, column])
                self.boot_ns = round(seconds * 1e9) if seconds > 0 else None

    def _add_block(self, groups: Groups, timed: Timed, known: dict[Entity, Whose]) -> None:
        columns = timed.block.table.columns
        for entity, cells in zip(timed.block.entities, timed.block.values.tolist()):
            whose = known.get(entity) or self._whose.get(entity) or find_whose(entity)
            self._whose[entity] = whose
            row = PushedRow(groups.setdefault(whose.resource, {}), entity, whose, timed.at_ns)
            for metric, cell in zip(timed.block.table.metrics, cells):
                if math.isfinite(cell):
                    self._add_cell(row, metric, cell, columns, cells)

    def _add_cell(
        self, row: "PushedRow", metric: Metric, cell: float, columns: dict[str, int], cells: list[float]
    ) -> None:
        rows = conventions_of(metric.name)
        for convention in rows:
            value = derive_value(convention, cell, columns, cells)
            if value is not None and (row.whose.is_kubernetes or not convention.only_kubernetes):
                self._add_named(row, metric, convention, value * convention.factor)
        if not rows and metric.published and not self.only_conventions:
            self._add_published(row, metric, cell * metric.scale)

    def _add_named(self, row: "PushedRow", metric: Metric, convention: Convention, value: float) -> None:
        if not convention.per:
            value *= metric.scale
        attributes = (*row.whose.points, *convention.attributes)
        if convention.name == "system.network.packet.count":
            attributes += (("system.device", row.entity.ids[0]),)
        self._add_point(
            row, convention.name, convention.unit, convention.instrument, metric, attributes, value
        )

    def _add_published(self, row: "PushedRow", metric: Metric, value: float) -> None:
        instrument: Instrument = "counter" if metric.kind == "counter" else "gauge"
        labels = (*row.whose.labels, *metric.labels)
        unit = UNITS.get(metric.unit, metric.unit)
        self._add_point(row, metric.published or "", unit, instrument, metric, labels, value)

    def _add_point(
        self,
        row: "PushedRow",
        name: str,
        unit: str,
        instrument: Instrument,
        metric: Metric,
        attributes: Labels,
        value: float,
    ) -> None:
        key = (row.entity.key, name, attributes)
        if key in row.seen:
            # The same number of another cgroup version.
            return
        row.seen.add(key)
        began_ns = find_begin_ns(row.entity, self.boot_ns)
        start_ns = 0
        if instrument == "counter":
            start_ns, value = self.starts.count(key, value, row.at_ns, began_ns, may_dip=metric.may_dip)
        elif instrument == "updown":
            start_ns = self.starts.begin(key, value, row.at_ns, began_ns)
        pushed = row.metrics.get(name)
        if pushed is None:
            head = text_field(1, name) + text_field(2, metric.help) + text_field(3, unit)
            pushed = row.metrics[name] = PushedMetric(instrument, head)
        pushed.points.append(encode_point(attributes, start_ns, row.at_ns, value))

    def _add_working_sets(self, groups: Groups, blocks: Sequence[Timed]) -> None:
        """Made of two tables that were read in the same tick."""
        inactive = {
            entity.key: cell for entity, cell, _ in iterate_first(blocks, INACTIVE) if math.isfinite(cell)
        }
        for entity, usage, timed in iterate_first(blocks, USAGE):
            if entity.key in inactive and math.isfinite(usage):
                whose = self._whose[entity]
                row = PushedRow(groups.setdefault(whose.resource, {}), entity, whose, timed.at_ns)
                metric = Metric("", "gauge", "Memory in use less the page cache that may be dropped first.")
                value = max(0.0, usage - inactive[entity.key])
                self._add_named(row, metric, WORKING_SET, value)

    def _split(self, groups: Groups, at_ns: int) -> Iterator[Encoded]:
        body, points = bytearray(), 0
        for resource, metrics in groups.items():
            if not metrics:
                continue
            body += bytes_field(1, encode_resource((*self.node, *resource), metrics.values()))
            points += sum(len(metric.points) for metric in metrics.values())
            if len(body) >= REQUEST_BYTES:
                yield Encoded(bytes(body), points, at_ns)
                body, points = bytearray(), 0
        if points:
            yield Encoded(bytes(body), points, at_ns)


@dataclass(slots=True)
class PushedRow:
    """One entity in one block."""

    metrics: dict[str, PushedMetric]
    entity: Entity
    whose: Whose
    at_ns: int
    seen: set[object] = field(default_factory=set)


def iterate_first(blocks: Sequence[Timed], names: Sequence[str]) -> Iterator[tuple[Entity, float, Timed]]:
    """The first of these columns that a table has, of every entity."""
    for timed in blocks:
        columns = timed.block.table.columns
        found = [columns[name] for name in names if name in columns]
        for entity, cells in zip(timed.block.entities, timed.block.values):
            measured = (float(cells[column]) for column in found)
            cell = next((cell for cell in measured if not math.isnan(cell)), math.nan)
            if found:
                yield entity, cell, timed


def derive_value(
    convention: Convention, cell: float, columns: dict[str, int], cells: list[float]
) -> float | None:
    """None where one of its columns was not measured."""
    others = [cells[columns[name]] if name in columns else math.nan for name in convention.less]
    value = cell - sum(others)
    if others and value < 0:
        # Read one after the other: a sum may be a little more than its whole.
        value = 0.0
    if convention.per:
        period = cells[columns[convention.per]] if convention.per in columns else math.nan
        value = value / period if period else math.nan
    return value if math.isfinite(value) else None


def find_begin_ns(entity: Entity, boot_ns: int | None) -> int | None:
    """Since when this entity's counters count; None where nobody says so."""
    if entity.scope in ("container", "service", "pod"):
        started = entity.attribute("started") or ""
        return int(started) * 10**9 if started.isdigit() else None
    return None if entity.scope in ("process", "gpu", "fpga", "pcm") else boot_ns


def encode_point(attributes: Labels, start_ns: int, at_ns: int, value: float) -> bytes:
    begin = fixed_field(2, start_ns) if start_ns else b""
    return encode_attributes(7, attributes) + begin + fixed_field(3, at_ns) + double_field(4, value)


def encode_attributes(number: int, attributes: Labels) -> bytes:
    return b"".join(
        bytes_field(number, text_field(1, name) + bytes_field(2, encode_value(name, value)))
        for name, value in attributes
    )


def encode_value(name: str, value: str) -> bytes:
    return integer_field(3, int(value)) if name in NUMBERS and value.isdigit() else text_field(1, value)


def encode_resource(attributes: Labels, metrics: Iterable[PushedMetric]) -> bytes:
    scope = bytes_field(1, text_field(1, "nodescope") + text_field(2, __version__))
    body = b"".join(bytes_field(2, metric.encode()) for metric in metrics)
    return (
        bytes_field(1, encode_attributes(1, attributes))
        + bytes_field(2, scope + body)
        + text_field(3, SCHEMA_URL)
    )
