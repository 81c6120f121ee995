"""
The Parquet files of the archive: schema, encodings, and a writer that stays small.

Rows are sorted by (metric_name, series, time). A row group holds whole
metrics where they are small and part of one where it is large, so that the
statistics of metric_name and l_container_id tell a reader what to skip.
Strings are dictionaries of what the row group really has. Numbers are plain:
under ZSTD, neighbouring values and repeating times pack better than through a
dictionary, and every reader knows it (docs/decisions/0101 and 0108).

The footer's key `nodescope` is JSON: version, run and segments, what the file
replaces. It says enough to sort out a folder whose sidecars were lost.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.metric import Metric
from nodescope.keep.check.bounds import check_bounds, check_footer, check_pages
from nodescope.keep.check.sums import FileSum, SummingOutput
from nodescope.keep.disk import Disk
from nodescope.keep.label_columns import LABELS, Subject

FOOTER = b"nodescope"
VERSION = 1
# Large enough that a row group's own metadata is below 1 %, small enough that
# one decoded in a k-way merge of 40 files stays within 4 MiB each.
ROW_GROUP_ROWS = 262_144
# As many as a row group. Series repeat the same times, but a page is compressed alone: of five hours it
# holds fourteen series, and with 65,536 rows it would hold three (docs/decisions/0108).
PAGE_ROWS = 262_144
# Arrow ends a page at this many bytes, too; the rows above are what should end it.
PAGE_BYTES = 4 * 2**20
# A fresh file is merged within the hour; a merged one is read for weeks.
FRESH_LEVEL, MERGED_LEVEL = 3, 9
# Where the least and the largest value tell a reader what to skip. Rows are
# sorted by metric and series; the other labels are spread over a row group,
# and their statistics cost a third of all writing.
STATISTICS = ("time", "metric_name", "value", "l_container_id", "l_scope")
# A false positive of the bloom filter only costs reading the row group.
BLOOM_RATIO = 0.01

TEXT = pa.dictionary(pa.int32(), pa.string())
MOMENT = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("time", MOMENT, nullable=False),
        pa.field("metric_name", TEXT, nullable=False),
        pa.field("value", pa.float64()),
        *(pa.field(name, TEXT) for name in LABELS[:5]),
        pa.field("metric_kind", TEXT, nullable=False),
        *(pa.field(name, TEXT) for name in LABELS[5:]),
    ]
)


def open_writer(output: SummingOutput, schema: pa.Schema, level: int, **options: Any) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        output,
        schema,
        compression="zstd",
        compression_level=level,
        use_dictionary=[field.name for field in schema if field.type == TEXT],
        data_page_size=PAGE_BYTES,
        write_page_checksum=True,
        store_schema=False,
        **options,
    )


def close_writer(writer: pq.ParquetWriter, footer: Mapping[str, Any]) -> None:
    writer.add_key_value_metadata({FOOTER.decode(): json.dumps(footer)})
    writer.close()


def abandon_writer(writer: pq.ParquetWriter) -> None:
    """Arrow would end the file when it forgets the writer; nothing to one that is closed."""
    writer.is_open = False


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Rows of one metric, sorted by series and time. An infinite value means unlimited."""

    metric: Metric
    rank: Integers
    """Places in the writer's subjects."""
    time_ms: Integers
    value: Floats


@dataclass(slots=True)
class ArchiveWriter:
    """Takes rows metric by metric, in order of name, and writes row groups."""

    output: SummingOutput
    subjects: Sequence[Subject]
    footer: Mapping[str, Any]
    level: int = FRESH_LEVEL
    rows: int = 0
    sum: FileSum | None = None
    """Of the whole file, when it is closed."""
    _pending: list[SampleRows] = field(default_factory=list)
    _pending_rows: int = 0
    _writer: Any = None
    _codes: dict[str, tuple[Integers, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, name in enumerate(LABELS):
            self._codes[name] = encode_strings([subject.labels[place] for subject in self.subjects])
        containers = len(self._codes["l_container_id"][1])
        self._writer = open_writer(
            self.output,
            SCHEMA,
            self.level,
            max_rows_per_page=PAGE_ROWS,
            write_statistics=list(STATISTICS),
            bloom_filter_options={"l_container_id": {"ndv": max(1, containers), "fpp": BLOOM_RATIO}},
        )

    def add(self, rows: SampleRows) -> None:
        for start in range(0, len(rows.value), ROW_GROUP_ROWS):
            stop = start + ROW_GROUP_ROWS
            rank, time_ms = rows.rank[start:stop], rows.time_ms[start:stop]
            part = SampleRows(rows.metric, rank, time_ms, rows.value[start:stop])
            if self._pending_rows + len(part.value) > ROW_GROUP_ROWS:
                self._flush()
            self._pending.append(part)
            self._pending_rows += len(part.value)

    def _flush(self) -> None:
        if not self._pending:
            return
        pending, self._pending, count, self._pending_rows = self._pending, [], self._pending_rows, 0
        rank = np.concatenate([part.rank for part in pending])
        value = np.concatenate([part.value for part in pending])
        time_ms = np.concatenate([part.time_ms for part in pending])
        lengths = np.array([len(part.value) for part in pending])
        columns: dict[str, pa.Array] = {
            "time": wrap(time_ms, SCHEMA.field("time").type),
            "value": wrap(value, pa.float64(), ~np.isinf(value)),
            "metric_name": repeat_strings([part.metric.name for part in pending], lengths),
            "metric_kind": repeat_strings([part.metric.kind for part in pending], lengths),
        }
        present = np.flatnonzero(np.bincount(rank, minlength=len(self.subjects)))
        labels = RowGroupLabels(rank, present, count)
        for name in LABELS:
            columns[name] = labels.column(*self._codes[name])
        batch = pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
        self._writer.write_table(pa.Table.from_batches([batch]), row_group_size=ROW_GROUP_ROWS)
        self.output.end_piece()
        self.rows += count

    def abandon(self) -> None:
        """Leaves the file as it is: no reader accepts it without a footer."""
        abandon_writer(self._writer)

    def close(self) -> None:
        """The footer, and with it a file that readers accept."""
        self._flush()
        close_writer(self._writer, {"version": VERSION, "rows": self.rows, **self.footer})
        self.sum = self.output.finish()


@contextmanager
def create_archive(
    disk: Disk, path: Path, subjects: Sequence[Subject], footer: Mapping[str, Any], level: int = FRESH_LEVEL
) -> Iterator[ArchiveWriter]:
    """A file on disk when the block ends; without its footer where it ends in an error."""
    with disk.removing_half(path), disk.create(path) as output:
        writer = ArchiveWriter(SummingOutput(output), subjects, footer, level)
        try:
            yield writer
            writer.close()
            output.sync()
        finally:
            writer.abandon()


class RowGroupLabels:
    """Label columns of one row group: the codes of its subjects, repeated for each row."""

    def __init__(self, rank: Integers, present: Integers, count: int) -> None:
        self._rank = rank
        self._present = present
        self._count = count
        self._bits: dict[bytes, pa.Buffer] = {}

    def column(self, codes: Integers, words: Sequence[str]) -> pa.Array:
        """Its dictionary holds only what these rows have."""
        mine = codes[self._present]
        there = np.bincount(mine + 1, minlength=len(words) + 1) > 0
        used = np.flatnonzero(there[1:])
        if not len(used):
            return self._nothing
        dictionary = wrap_strings([words[place] for place in used.tolist()])
        if len(used) == 1 and not there[0]:
            return pa.DictionaryArray.from_arrays(self._zeros, dictionary)
        # One place more than words: the code -1 (null) falls on it.
        small = np.full(len(words) + 1, -1, np.int32)
        small[used] = np.arange(len(used), dtype=np.int32)
        indices = small[codes].take(self._rank)
        bits = self._valid(mine >= 0, indices) if there[0] else None
        array = pa.Array.from_buffers(pa.int32(), self._count, [bits, pa.py_buffer(indices)])
        return pa.DictionaryArray.from_arrays(array, dictionary)

    def _valid(self, mine: NDArray[np.bool_], indices: NDArray[np.int32]) -> pa.Buffer:
        """The bits of what is not null; labels that are set together share them."""
        key = mine.tobytes()
        if key not in self._bits:
            self._bits[key] = pa.py_buffer(np.packbits(indices >= 0, bitorder="little"))
        return self._bits[key]

    @cached_property
    def _nothing(self) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.nulls(self._count, pa.int32()), wrap_strings([]))

    @cached_property
    def _zeros(self) -> pa.Array:
        return wrap(np.zeros(self._count, np.int32), pa.int32())


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


def unwrap(array: pa.Array, missing: float) -> NDArray[Any]:
    """The reverse: numpy around an Arrow array's memory, `missing` where it is null. Times are integers."""
    bits, data = array.buffers()
    kind = array.type
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    start, end = array.offset, array.offset + len(array)
    values: NDArray[Any] = np.frombuffer(data or b"", np.dtype(f"{letter}{kind.bit_width // 8}"))[start:end]
    if not array.null_count:
        return values
    valid = np.unpackbits(np.frombuffer(bits, np.uint8), count=end, bitorder="little")[start:].view(bool)
    # A missing code is negative, which a code may not be.
    return np.where(valid, values.astype(np.int64) if letter == "u" else values, missing)


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """One array; a single chunk is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def wrap_strings(words: Sequence[str]) -> pa.Array:
    """The same for words."""
    texts = [word.encode("utf-8", "replace") for word in words]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def encode_strings(values: Sequence[str | None]) -> tuple[Integers, list[str]]:
    """Codes into a sorted list of words; -1 for null."""
    words = sorted({value for value in values if value is not None})
    places = {word: place for place, word in enumerate(words)}
    return np.array([places[value] if value is not None else -1 for value in values], np.int64), words


def repeat_strings(words: Sequence[str], lengths: Integers) -> pa.Array:
    return repeat_codes(*encode_strings(words), lengths)


def repeat_codes(codes: Integers, words: Sequence[str], lengths: Integers) -> pa.Array:
    """Each code as often as its length says; -1 is null."""
    indices = np.repeat(codes.astype(np.int32), lengths)
    return pa.DictionaryArray.from_arrays(wrap(indices, pa.int32(), indices >= 0), wrap_strings(words))


# -- reading back ---------------------------------------------------------------


def cut_rows(rows: int, columns: Sequence[pa.Array]) -> Iterator[tuple[slice, tuple[str | None, ...]]]:
    """Stretches of rows in which none of these columns of words changes, each with its words."""
    if not rows:
        return
    codes, words = [], []
    changed = np.zeros(rows, bool)
    changed[0] = True
    for column in columns:
        encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        code = unwrap(encoded.indices, -1)
        changed[1:] |= code[1:] != code[:-1]
        codes.append(code)
        # Null is the last word, code -1.
        words.append([*encoded.dictionary.to_pylist(), None])
    starts = np.flatnonzero(changed)
    picked = [code[starts].tolist() for code in codes]
    ends = [*starts[1:].tolist(), rows]
    for place, (start, end) in enumerate(zip(starts.tolist(), ends)):
        yield slice(start, end), tuple(word[code[place]] for word, code in zip(words, picked))


def open_parquet(path: Path, **options: Any) -> pq.ParquetFile:
    """Any Parquet file, or a refusal with its name."""
    try:
        if path.stat().st_size < 12:
            raise ArchiveTruncated(f"{path.name}: too short to be Parquet")
        check_footer(path)
        file = pq.ParquetFile(path, page_checksum_verification=True, **options)
    except pa.ArrowInvalid as error:
        raise ArchiveTruncated(f"{path.name}: not whole Parquet: {first_line(error)}") from error
    except (OSError, pa.ArrowException) as error:
        raise ArchiveRefused(f"{path.name}: {first_line(error)}") from error
    check_bounds(file.metadata, path.name, path.stat().st_size)
    check_pages(path, file.metadata)
    return file


def first_line(error: BaseException | str) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def read_footer(file: pq.ParquetFile, name: str) -> dict[str, Any] | None:
    """What we wrote into the footer; None for a file that is not ours; a newer version is refused."""
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
