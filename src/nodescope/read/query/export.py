"""
Part of an archive as one file, Parquet or CSV.

Without a metric: the archive's own rows and columns. With metrics: time,
metric, value in the plain name's unit, and the labels of its series; a
counter becomes a rate.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from nodescope.base.errors import RequestRejected
from nodescope.keep.label_columns import LABELS
from nodescope.read.files.catalog import Catalog
from nodescope.read.query.engine import Engine
from nodescope.read.query.fetch import quote, render_moment

# Every sample as it is: more points than any archive has.
ALL_POINTS = 2**40


def write_raw(
    catalog: Catalog, out: Path, containers: Sequence[str] | None, from_ms: int | None, to_ms: int | None
) -> int:
    """The rows themselves, through DuckDB, without holding them."""
    first, last = from_ms or catalog.from_ms or 0, to_ms or catalog.to_ms or 0
    paths = [entry.path for entry in catalog.select(first, last)]
    if not paths:
        raise RequestRejected("there is no data in this range")
    where = [
        f"time >= TIMESTAMPTZ '{render_moment(first)}+00'",
        f"time <= TIMESTAMPTZ '{render_moment(last)}+00'",
    ]
    if containers is not None:
        where.append(f"l_container_id IN ({', '.join(map(quote, containers))})")
    form = "PARQUET, COMPRESSION zstd" if out.suffix == ".parquet" else "CSV, HEADER"
    temporary = out.with_name(out.name + ".tmp")
    question = (
        f"COPY (SELECT * FROM read_parquet([{', '.join(quote(str(path)) for path in paths)}], "  # noqa: S608
        f"union_by_name = true, hive_partitioning = false) WHERE {' AND '.join(where)}) "
        f"TO {quote(str(temporary))} (FORMAT {form})"
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        row = connection.cursor().execute(question).fetchone()
    os.replace(temporary, out)
    return int(row[0]) if row else 0


def write_derived(
    catalog: Catalog,
    out: Path,
    metrics: Sequence[str],
    containers: Sequence[str] | None,
    from_ms: int | None,
    to_ms: int | None,
) -> int:
    engine = Engine()
    tables = []
    for metric in metrics:
        answer = engine.query(catalog, metric, containers, from_ms, to_ms, ALL_POINTS)
        for line in answer.lines:
            points = line.points
            count = len(points.time_ms)
            unlimited = np.isinf(points.mean) | np.isnan(points.mean)
            columns = {
                "time": pa.array(points.time_ms).cast(pa.timestamp("ms", tz="UTC")),
                "metric": pa.array([answer.asked.name] * count),
                "unit": pa.array([answer.asked.unit] * count),
                "value": pa.array(points.mean, mask=unlimited),
                **{name: pa.array([line.subject.label(name)] * count, pa.string()) for name in LABELS},
            }
            tables.append(pa.table(columns))
    if not tables:
        raise RequestRejected("there is no data in this range")
    table = pa.concat_tables(tables)
    temporary = out.with_name(out.name + ".tmp")
    if out.suffix == ".parquet":
        pq.write_table(table, temporary, compression="zstd")
    else:
        pacsv.write_csv(table, temporary)
    os.replace(temporary, out)
    return int(table.num_rows)
