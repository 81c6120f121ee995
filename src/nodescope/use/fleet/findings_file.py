"""The findings table as a file: Parquet, CSV or JSON, by its ending."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodescope.base.errors import RequestRejected

ENDINGS = (".parquet", ".csv", ".json")
TEXT = (
    "node",
    "day",
    "metric",
    "namespace",
    "workload",
    "image",
    "image_before",
    "pod",
    "container",
    "container_id",
    "series",
    "study",
    "kind",
    "unit",
    "side",
    "sentence",
)
NUMBERS = (
    "from",
    "to",
    "at",
    "confidence",
    "chance",
    "chance_adjusted",
    "magnitude",
    "before",
    "after",
    "busy_from",
    "busy_to",
    "missing_share",
    "over_span",
    "span_seconds",
)


def check_ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise RequestRejected(f"--out {path.name}: accepted endings: {', '.join(ENDINGS)}")


def write_findings(path: Path, rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> None:
    check_ending(path)
    try:
        if path.suffix == ".json":
            content = {**summary, "findings": list(rows)}
            path.write_text(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
        else:
            write_table(path, rows)
    except OSError as error:
        raise RequestRejected(f"--out {path}: {error.strerror or error}") from error


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv as pacsv  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    rest = {
        "samples": pa.array([row.get("samples") for row in rows], pa.int64()),
        "kept": pa.array([row.get("kept") for row in rows], pa.bool_()),
        "measures": pa.array([render_measures(row) for row in rows], pa.string()),
    }
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in TEXT}
    columns |= {name: pa.array([row.get(name) for row in rows], pa.float64()) for name in NUMBERS}
    table = pa.table({**columns, **rest})
    if path.suffix == ".csv":
        pacsv.write_csv(table, path)
    else:
        pq.write_table(table, path, compression="zstd")


def render_measures(row: Mapping[str, Any]) -> str:
    """What only this kind of finding has, as JSON."""
    known = {*TEXT, *NUMBERS, "samples", "kept"}
    return json.dumps({name: value for name, value in row.items() if name not in known}, sort_keys=True)
