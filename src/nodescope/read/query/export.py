"""The archive's own rows and columns as one file, Parquet or CSV."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from nodescope.base.time_range import TimeRange
from nodescope.read.query.sql import quote, render_moment


def write_raw(
    files: Sequence[Path], out: Path, ids: Mapping[str, Sequence[str]] | None, span: TimeRange
) -> int:
    """
    The rows of these files in the span, through DuckDB, without holding them; how many there were.

    ids: by the name of a label column, the values that are wanted; None for all rows.
    """
    where = [
        f"time >= TIMESTAMPTZ '{render_moment(span.from_ms)}+00'",
        f"time <= TIMESTAMPTZ '{render_moment(span.to_ms)}+00'",
    ]
    if ids is not None:
        chosen = (f"{column} IN ({', '.join(map(quote, values))})" for column, values in ids.items())
        where.append(f"({' OR '.join(chosen)})")
    form = "PARQUET, COMPRESSION zstd" if out.suffix == ".parquet" else "CSV, HEADER"
    temporary = out.with_name(out.name + ".tmp")
    question = (
        f"COPY (SELECT * FROM read_parquet([{', '.join(quote(str(path)) for path in files)}], "  # noqa: S608
        f"union_by_name = true, hive_partitioning = false) WHERE {' AND '.join(where)}) "
        f"TO {quote(str(temporary))} (FORMAT {form})"
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        row = connection.cursor().execute(question).fetchone()
    os.replace(temporary, out)
    return int(row[0]) if row else 0
