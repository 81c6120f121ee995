"""What was checked of a file is kept, and nothing of the file itself."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nodescope.keep.check.bounds import check_pages


def test_the_footer_of_a_checked_file_is_let_go(tmp_path: Path) -> None:
    """A footer of an hour takes 0.4 MiB; a week of them was held by the cache of what is good."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"value": pa.array(range(1000))}), path)
    metadata = pq.ParquetFile(path).metadata
    before = sys.getrefcount(metadata)
    for _ in range(3):
        check_pages(path, metadata)
    assert sys.getrefcount(metadata) == before
