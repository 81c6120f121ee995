"""
DuckDB, which reads the files of others: whatever columns, types and order they have.

Our own files are read by Arrow (metric_rows.py). DuckDB is loaded with the
first question that needs it: it takes some 60 MiB of memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.parquet import first_line

if TYPE_CHECKING:
    import duckdb

# A scan needs some MiB; what needs more was prepared to.
MEMORY = "256MiB"


def quote(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote_all(words: Iterable[str]) -> str:
    return ", ".join(map(quote, words))


def render_moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


@dataclass(slots=True)
class SqlReader:
    """One database in memory, which holds no data; threads share it."""

    memory: str = MEMORY
    threads: int = 2
    _connection: "duckdb.DuckDBPyConnection | None" = None
    _lock: Lock = field(default_factory=Lock)

    def run(self, question: str) -> pa.Table:
        """ArchiveRefused where a file cannot be read."""
        import duckdb  # noqa: PLC0415 - see above

        try:
            return self._connect().cursor().sql(question).to_arrow_table()
        except duckdb.Error as error:
            raise ArchiveRefused(first_line(error)) from error

    def _connect(self) -> "duckdb.DuckDBPyConnection":
        import duckdb  # noqa: PLC0415

        with self._lock:
            if self._connection is None:
                connection = duckdb.connect()
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute(f"SET memory_limit = '{self.memory}'")
                connection.execute(f"SET threads = {self.threads}")
                # The footer of a file is parsed once.
                connection.execute("SET parquet_metadata_cache = true")
                self._connection = connection
            return self._connection
