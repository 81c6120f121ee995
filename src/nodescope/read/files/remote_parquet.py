"""
Rows of Parquet files in an object store: only the row groups and columns that a query needs.

Footers are cached for the life of the process: an object under a name does
not change, and its size is part of the cache's key. A file that has gone is
FileNotFoundError: it was replaced, and the caller lists again. One that is
damaged, or may not be read, is ArchiveRefused with its name.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nodescope.base.errors import ArchiveDamaged, ArchiveRefused
from nodescope.keep.check.bounds import check_bounds
from nodescope.keep.check.sums import FileSum
from nodescope.keep.copy.object_store import RETRY_SECONDS, ObjectStore, open_store
from nodescope.keep.parquet import first_line

_patience_seconds: dict[str, float] = {}


def set_patience(url: str, seconds: float) -> None:
    """How long a store may say nothing before a request fails; before it is opened."""
    _patience_seconds[url] = seconds


@lru_cache(maxsize=64)
def store_at(url: str) -> ObjectStore:
    """One connection pool an address and process."""
    return open_store(url, silence_seconds=_patience_seconds.get(url, RETRY_SECONDS))


@lru_cache(maxsize=512)
def read_metadata(url: str, key: str, size: int, expected: FileSum | None = None) -> Any:
    """
    The footer: 64 KiB from the end in one request, as Arrow does it.

    Where the sidecar has the checksum of a file's end, exactly that end is
    read, and checked: pages have their own checksums, a footer has none.
    """
    with store_at(url).files.open_input_file(store_at(url).full(key)) as source:
        if expected is None:
            return pq.read_metadata(source)
        start, end, crc32 = list(expected.spans())[-1]
        tail = source.read_at(end - start, start)
    if size != end or zlib.crc32(tail) != crc32:
        raise ArchiveDamaged("damaged: its footer has another checksum than when it was written")
    return pq.read_metadata(pa.BufferReader(tail))


@dataclass(slots=True)
class RemoteFile:
    """One object that holds rows."""

    url: str
    key: str
    size: int
    sum: FileSum | None = None
    """None where the file is older than checksums are."""
    fetched_bytes: int = field(default=0)
    """Of the column chunks that were read: what pruning left."""

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def select(
        self,
        metric: str,
        containers: Sequence[str] | None,
        columns: Sequence[str],
        from_ms: int | None,
        to_ms: int | None,
    ) -> pa.Table:
        """time_ms, value and the given columns of one metric, in the order of the file."""
        wanted = ["time", "value", "metric_name", *columns]
        if containers is not None and "l_container_id" not in wanted:
            wanted.append("l_container_id")
        try:
            table = self._read(metric, containers, wanted)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, ArchiveDamaged) as error:
            raise ArchiveRefused(f"{self.name}: {first_line(error)}") from error
        if table is None:
            return pa.table({name: [] for name in ("time_ms", "value", *columns)})
        mask = pc.equal(table.column("metric_name"), metric)
        if containers is not None:
            among = pc.is_in(table.column("l_container_id"), pa.array(containers, pa.string()))
            mask = pc.and_(mask, among)
        time_ms = table.column("time").cast(pa.int64())
        if from_ms is not None:
            mask = pc.and_(mask, pc.greater_equal(time_ms, from_ms))
        if to_ms is not None:
            mask = pc.and_(mask, pc.less_equal(time_ms, to_ms))
        arrays = {"time_ms": time_ms, "value": table.column("value")}
        arrays |= {name: table.column(name) for name in columns}
        return pa.table(arrays).filter(mask)

    def _read(self, metric: str, containers: Sequence[str] | None, wanted: Sequence[str]) -> pa.Table | None:
        """Columns of the row groups that may have such rows; None where no group may."""
        metadata = read_metadata(self.url, self.key, self.size, self.sum)
        check_bounds(metadata, self.name, self.size)
        groups = choose_groups(metadata, metric, containers)
        if not groups:
            return None
        self.fetched_bytes += weigh(metadata, groups, wanted)
        store = store_at(self.url)
        words = [name for name in wanted if name not in ("time", "value")]
        with store.files.open_input_file(store.full(self.key)) as source:
            file = pq.ParquetFile(
                source,
                metadata=metadata,
                pre_buffer=True,
                read_dictionary=words,
                page_checksum_verification=True,
            )
            return file.read_row_groups(groups, columns=wanted, use_threads=False)


def choose_groups(metadata: Any, metric: str, containers: Sequence[str] | None) -> list[int]:
    """Row groups whose statistics do not rule the metric and the containers out."""
    places = {metadata.schema.column(number).name: number for number in range(metadata.num_columns)}
    wanted = {"metric_name": [metric], **({} if containers is None else {"l_container_id": containers})}
    return [
        number
        for number in range(metadata.num_row_groups)
        if all(may_hold(metadata.row_group(number), places[name], words) for name, words in wanted.items())
    ]


def may_hold(group: Any, place: int, words: Sequence[str]) -> bool:
    statistics = group.column(place).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = statistics.min, statistics.max
    return any(low <= word <= high for word in words)


def weigh(metadata: Any, groups: Sequence[int], columns: Sequence[str]) -> int:
    places = range(metadata.num_columns)
    chunks = (metadata.row_group(number).column(place) for number in groups for place in places)
    return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in columns)
