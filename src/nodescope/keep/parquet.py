"""
The Parquet files of the archive: schema, encodings, and a writer that stays small.

Rows are sorted by (metric_name, series, time). A row group holds whole
metrics where they are small and part of one where it is large, so that the
statistics of metric_name and l_container_id tell a reader what to skip.
Strings are dictionaries of what the row group really has. Numbers are plain:
under ZSTD, neighbouring values and repeating times pack better than through a
dictionary, and every reader knows it (docs/decisions/0101).

The footer's key `nodescope` is JSON: version, run and segments, what the file
replaces. It says enough to sort out a folder whose sidecars were lost.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.keep.disk import Output
from nodescope.keep.series import LABELS, Subject

FOOTER = b"nodescope"
VERSION = 1
# Large enough that a row group's own metadata is below 1 %, small enough that
# one decoded in a k-way merge of 40 files stays within 4 MiB each.
ROW_GROUP_ROWS = 262_144
# Arrow's own 20,000 rows a page make the page index a seventh of a file.
PAGE_ROWS = 65_536
# Wrong answers of the bloom filter only cost a look at the row group.
BLOOM_RATIO = 0.01

TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("time", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("metric_name", TEXT, nullable=False),
        pa.field("value", pa.float64()),
        *(pa.field(name, TEXT) for name in LABELS[:5]),
        pa.field("metric_kind", TEXT, nullable=False),
        *(pa.field(name, TEXT) for name in LABELS[5:]),
    ]
)
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one metric, sorted by series and time. An infinite value means unlimited."""

    metric: str
    kind: str
    rank: Integers
    """Places in the writer's subjects."""
    time_ms: Integers
    value: Floats


@dataclass(slots=True)
class ArchiveWriter:
    """Takes rows metric by metric, in order of name, and writes row groups."""

    output: Output
    subjects: Sequence[Subject]
    footer: Mapping[str, Any]
    rows: int = 0
    _held: list[Rows] = field(default_factory=list)
    _held_rows: int = 0
    _writer: Any = None
    _codes: dict[str, tuple[Integers, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, name in enumerate(LABELS):
            self._codes[name] = encode_strings([subject.labels[place] for subject in self.subjects])
        containers = len(self._codes["l_container_id"][1])
        self._writer = pq.ParquetWriter(
            self.output,
            SCHEMA,
            compression="zstd",
            compression_level=3,
            use_dictionary=[name for name in SCHEMA.names if name not in ("time", "value")],
            max_rows_per_page=PAGE_ROWS,
            write_page_index=True,
            write_statistics=True,
            store_schema=False,
            bloom_filter_options={"l_container_id": {"ndv": max(1, containers), "fpp": BLOOM_RATIO}},
        )

    def add(self, rows: Rows) -> None:
        for start in range(0, len(rows.value), ROW_GROUP_ROWS):
            stop = start + ROW_GROUP_ROWS
            part = Rows(
                rows.metric,
                rows.kind,
                rows.rank[start:stop],
                rows.time_ms[start:stop],
                rows.value[start:stop],
            )
            if self._held_rows + len(part.value) > ROW_GROUP_ROWS:
                self._flush()
            self._held.append(part)
            self._held_rows += len(part.value)

    def _flush(self) -> None:
        if not self._held:
            return
        held, self._held, count, self._held_rows = self._held, [], self._held_rows, 0
        rank = np.concatenate([part.rank for part in held])
        value = np.concatenate([part.value for part in held])
        time_ms = np.concatenate([part.time_ms for part in held])
        lengths = np.array([len(part.value) for part in held])
        columns: dict[str, pa.Array] = {
            "time": wrap(time_ms, SCHEMA.field("time").type),
            "value": wrap(value, pa.float64(), ~np.isinf(value)),
            "metric_name": repeat_strings([part.metric for part in held], lengths),
            "metric_kind": repeat_strings([part.kind for part in held], lengths),
        }
        present = np.flatnonzero(np.bincount(rank, minlength=len(self.subjects)))
        for name in LABELS:
            columns[name] = self._labels(name, rank, present, count)
        batch = pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
        self._writer.write_table(pa.Table.from_batches([batch]), row_group_size=ROW_GROUP_ROWS)
        self.rows += count

    def _labels(self, name: str, rank: Integers, present: Integers, count: int) -> pa.Array:
        """One label column; its dictionary holds only what these rows have."""
        codes, words = self._codes[name]
        used = np.unique(codes[present])
        used = used[used >= 0]
        if not len(used):
            return pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()), pa.array([], pa.string()))
        small = np.full(len(words) + 1, -1, np.int32)
        small[used] = np.arange(len(used), dtype=np.int32)
        # The code -1 (null) falls on the last place, which stays -1.
        indices = small[codes][rank]
        valid = None if (codes[present] >= 0).all() else indices >= 0
        return pa.DictionaryArray.from_arrays(
            wrap(indices, pa.int32(), valid), pa.array([words[place] for place in used], pa.string())
        )

    def abandon(self) -> None:
        """Leaves the file as it is: without a footer it is nothing to anybody."""
        self._writer.is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def close(self) -> None:
        """The footer, and with it a file that readers accept."""
        self._flush()
        content = {"version": VERSION, "rows": self.rows, **self.footer}
        self._writer.add_key_value_metadata({FOOTER.decode(): json.dumps(content)})
        self._writer.close()


def wrap(values: NDArray[Any], kind: pa.DataType, valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """
    An Arrow array around numpy's memory; where not valid it is null.

    pa.array would do, but imports pandas where that is installed, which costs
    a converter more than its work.
    """
    bits = None
    if valid is not None and not valid.all():
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def encode_strings(values: Sequence[str | None]) -> tuple[Integers, list[str]]:
    """Codes into a sorted list of words; -1 for null."""
    words = sorted({value for value in values if value is not None})
    places = {word: place for place, word in enumerate(words)}
    return np.array([places[value] if value is not None else -1 for value in values], np.int64), words


def repeat_strings(words: Sequence[str], lengths: NDArray[np.int64]) -> pa.Array:
    codes, dictionary = encode_strings(words)
    indices = np.repeat(codes.astype(np.int32), lengths)
    return pa.DictionaryArray.from_arrays(wrap(indices, pa.int32()), pa.array(dictionary, pa.string()))


# -- reading back ---------------------------------------------------------------


def open_parquet(path: Path, **options: Any) -> pq.ParquetFile:
    """A Parquet file of anybody, or a refusal by name."""
    try:
        if path.stat().st_size < 12:
            raise ArchiveTruncated(f"{path.name}: too short to be Parquet")
        return pq.ParquetFile(path, **options)
    except pa.ArrowInvalid as error:
        raise ArchiveTruncated(f"{path.name}: not whole Parquet: {first_line(error)}") from error
    except (OSError, pa.ArrowException) as error:
        raise ArchiveRefused(f"{path.name}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def read_footer(file: pq.ParquetFile, name: str) -> dict[str, Any] | None:
    """What we wrote into the footer; None for a file of somebody else; a newer one is refused."""
    raw = (file.metadata.metadata or {}).get(FOOTER)
    if raw is None:
        return None
    try:
        content: dict[str, Any] = json.loads(raw)
        version = int(content["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveRefused(f"{name}: its footer is damaged") from error
    if version > VERSION:
        raise ArchiveRefused(f"{name}: archive version {version}; this build reads up to {VERSION}")
    return content
