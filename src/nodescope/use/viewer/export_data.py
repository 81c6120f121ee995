"""
Samples of some metrics as one CSV or Parquet file: time, metric, unit, value, and the labels of the series.

A row per sample, as it was measured; a counter is a rate. A few containers are
read at a time and written, so that memory does not grow with the file.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from nodescope.base.time_range import TimeRange
from nodescope.read.series_name import LABELS
from nodescope.use.answers.containers import Life
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.refusal import not_found, too_much
from nodescope.use.answers.snapshots import View
from nodescope.use.answers.timeseries import (
    MeasuredNode,
    MeasuredSeries,
    TimeseriesRequest,
    read_measured,
    split_request,
)

# Some 400 MB of CSV.
ROWS_MOST = 5_000_000
# Every sample as it is: more points than any range has.
ALL_POINTS = 2**40
METRICS_MOST = 20
# Of a row group; series are written together until they have so many.
GROUP_ROWS = 500_000
# Of a piece that is sent: some 2 MB of CSV.
PIECE_ROWS = 20_000
COLUMNS = pa.schema(
    [
        ("time", pa.timestamp("ms", tz="UTC")),
        ("metric", pa.string()),
        ("unit", pa.string()),
        ("value", pa.float64()),
        *((name, pa.string()) for name in LABELS),
    ]
)


@dataclass(frozen=True, slots=True)
class Extract:
    """What a file is made of."""

    metrics: Sequence[str]
    lives: tuple[Life, ...] | None
    """None: everything that has the metrics."""
    span: TimeRange
    is_bounded: bool = True
    """Whether too much is refused; not to somebody who waits at a terminal."""


def write_extract(view: View, extract: Extract, out: Path) -> int:
    """Rows written; refused where there would be none, or more than a page should carry."""
    rows = 0
    with open_writer(out, out.suffix.removeprefix(".")) as writer:
        for table in read_groups(view, extract):
            rows += table.num_rows
            writer.write_table(table)
    return rows


def read_groups(view: View, extract: Extract) -> Iterator[pa.Table]:
    """Groups of rows; refused at the first one where there would be none, or later where there are too many."""
    if extract.is_bounded and len(extract.metrics) > METRICS_MOST:
        raise too_much(f"{len(extract.metrics)} metrics; accepted: up to {METRICS_MOST} in one file")
    rows = 0
    for table in group_tables(read_tables(view, extract)):
        rows += table.num_rows
        if extract.is_bounded and rows > ROWS_MOST:
            raise too_much(
                f"more than {ROWS_MOST:,} rows",
                "ask for fewer containers or a shorter range, or use nodescope export",
            )
        yield table
    if not rows:
        raise not_found("there is no sample of this in the range")


class GrowingFile(io.RawIOBase):
    """What a writer has written since it was last asked: a file that is sent while it grows."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """Writers of Parquet note where each part begins."""
        return self._written

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._written += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def stream_extract(view: View, extract: Extract, form: str) -> Iterator[bytes]:
    """
    The same file piece by piece, each as it is read: neither the disk nor memory holds the whole.

    The first piece is there before the answer begins, so that what cannot be answered
    is refused. Too many rows show only later: then the answer ends before its end, which
    a client sees as a broken download.
    """
    file = GrowingFile()
    groups = read_groups(view, extract)
    with open_writer(file, form) as writer:
        for table in groups:
            for start in range(0, table.num_rows, PIECE_ROWS if form == "csv" else table.num_rows or 1):
                writer.write_table(table.slice(start, PIECE_ROWS if form == "csv" else None))
                yield file.take()
    yield file.take()


def open_writer(out: Any, form: str) -> Any:
    if form == "parquet":
        return pq.ParquetWriter(out, COLUMNS, compression="zstd")
    return pacsv.CSVWriter(out, COLUMNS)


def read_tables(view: View, extract: Extract) -> Iterator[pa.Table]:
    for metric in extract.metrics:
        resolved = resolve(view.nodes, metric)
        whole = TimeseriesRequest(
            metric, extract.span, ALL_POINTS, lives=extract.lives, is_bounded=extract.is_bounded
        )
        for request in split_request(view, whole, resolved):
            for node in read_measured(view, request, resolved):
                yield from (make_table(metric, node, series) for series in node.series)


def group_tables(tables: Iterator[pa.Table], rows: int = GROUP_ROWS) -> Iterator[pa.Table]:
    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        if sum(one.num_rows for one in group) >= rows:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)


def make_table(metric: str, node: MeasuredNode, series: MeasuredSeries) -> pa.Table:
    points = series.points
    labels = {name: series.subject.label(name) for name in LABELS}
    labels["l_node_name"] = labels["l_node_name"] or node.node
    texts = {"metric": metric, "unit": node.unit, **labels}
    columns = {
        "time": pa.array(points.time_ms).cast(pa.timestamp("ms", tz="UTC")),
        # Unlimited is no number: null, as what was not measured.
        "value": pa.array(points.mean, mask=~np.isfinite(points.mean)),
        **{
            name: pa.repeat(pa.scalar(text, pa.string()), len(points.time_ms)) for name, text in texts.items()
        },
    }
    return pa.table([columns[name] for name in COLUMNS.names], schema=COLUMNS)
