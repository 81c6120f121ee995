"""/api/export: samples of some metrics as one CSV or Parquet file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.read.series_name import LABELS
from nodescope.use.answers.containers import Life
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.refusal import not_found, too_much
from nodescope.use.answers.snapshots import View
from nodescope.use.answers.timeseries import TimeseriesRequest, query_nodes

# Some 400 MB of CSV, 100 MB of Arrow in memory.
ROWS_MOST = 5_000_000
# Every sample as it is: more points than any range has.
ALL_POINTS = 2**40
METRICS_MOST = 20


def write_extract(
    view: View, metrics: Sequence[str], lives: tuple[Life, ...] | None, span: TimeRange, out: Path
) -> int:
    """Rows written; refused where there would be none, or more than a page should carry."""
    if len(metrics) > METRICS_MOST:
        raise too_much(f"{len(metrics)} metrics; accepted: up to {METRICS_MOST} in one file")
    tables: list[pa.Table] = []
    rows = 0
    for metric in metrics:
        request = TimeseriesRequest(metric, span, ALL_POINTS, "auto", lives)
        for node, answer in query_nodes(view, request, resolve(view.nodes, metric)):
            for line in answer.lines:
                rows += len(line.points.time_ms)
                if rows > ROWS_MOST:
                    raise too_much(
                        f"more than {ROWS_MOST:,} rows",
                        "ask for fewer containers or a shorter range, or use nodescope export",
                    )
                subject = node.subjects.get(line.subject.identity, line.subject)
                labels = {name: subject.label(name) for name in LABELS}
                labels["l_node_name"] = labels["l_node_name"] or node.name
                tables.append(make_table(metric, answer.asked.unit, line.points, labels))
    if not tables:
        raise not_found("there is no sample of this in the range")
    table = pa.concat_tables(tables)
    if out.suffix == ".parquet":
        pq.write_table(table, out, compression="zstd")
    else:
        pacsv.write_csv(table, out)
    return int(table.num_rows)


def make_table(metric: str, unit: str, points: Points, labels: dict[str, str | None]) -> pa.Table:
    count = len(points.time_ms)

    def repeated(text: str | None) -> pa.Array:
        indices = pa.array(np.zeros(count, np.int32), mask=np.full(count, text is None))
        return pa.DictionaryArray.from_arrays(indices, pa.array([text or ""]))

    return pa.table(
        {
            "time": pa.array(points.time_ms).cast(pa.timestamp("ms", tz="UTC")),
            "metric": repeated(metric),
            "unit": repeated(unit),
            "value": pa.array(points.mean, mask=~np.isfinite(points.mean)),
            **{name: repeated(text) for name, text in labels.items()},
        }
    )
