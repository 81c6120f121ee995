"""
Finished files to an object store, under the same names: plain Hive-partitioned Parquet.

Consolidated files and their sidecars only: a fresh file is about to be merged
away. What is there with the same size is not sent again.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from nodescope.base.errors import RequestRejected
from nodescope.keep.layout import DataFolder


def copy_finished(folder: DataFolder, url: str) -> int:
    """How many files were sent."""
    try:
        store, base = pafs.FileSystem.from_uri(url)
    except (pa.ArrowException, ValueError) as error:
        raise RequestRejected(f"--copy-to {url}: {error}") from error
    sent = 0
    for file in folder.files():
        if file.kind != "consolidated":
            continue
        # The sidecar first, as on disk.
        for path in (file.sidecar, file.path):
            sent += send(store, path, f"{base}/{path.relative_to(folder.path)}")
    return sent


def send(store: pafs.FileSystem, path: Path, target: str) -> int:
    try:
        size = path.stat().st_size
        if store.get_file_info(target).size == size:
            return 0
        store.create_dir(target.rpartition("/")[0], recursive=True)
        with path.open("rb") as source, store.open_output_stream(target) as output:
            shutil.copyfileobj(source, output, 2**20)
    except FileNotFoundError:
        # Merged away meanwhile; its rows are in a file that comes next.
        return 0
    return 1
