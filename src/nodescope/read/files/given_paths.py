"""Paths that somebody named: told at once where there is nothing to read."""

from collections.abc import Iterable
from pathlib import Path

from nodescope.base.errors import RequestRejected

# The first bytes of a Parquet file, and of one whose footer is encrypted.
MAGIC = (b"PAR1", b"PARE")
ACCEPTED = "accepted: a data folder, a folder of such, or Parquet files"


def check_given(paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise RequestRejected(f"no such file or folder: {path}")
        if not path.is_dir():
            check_file(path)


def check_file(path: Path) -> None:
    """Only its beginning: why a Parquet file cannot be read is told by who reads it."""
    if path.is_file() and read_beginning(path).startswith(MAGIC):
        return
    raise RequestRejected(f"{path} is not a Parquet file; {ACCEPTED}")


def read_beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC[0]))
    except OSError as error:
        raise RequestRejected(f"{path} cannot be read: {error.strerror or error}") from error


# -- folders --------------------------------------------------------------------------

# How a data folder looks from outside.
MARKS = ("session.json", "wal", "rollup")


def has_data(path: Path) -> bool:
    """Whether there is something to look at, as far as names tell."""
    return path.is_file() or any(
        is_data_folder(folder) or any(folder.glob("*.parquet")) for folder in find_folders(path)
    )


def find_folders(path: Path) -> list[Path]:
    """The path itself, or the data folders in it: a demo of three nodes has three."""
    try:
        if path.is_dir() and not is_data_folder(path):
            inner = [child for child in sorted(path.iterdir()) if child.is_dir() and is_data_folder(child)]
            if inner:
                return inner
    except OSError:
        # May not be looked into: the listing of its files says so.
        pass
    return [path]


def is_data_folder(path: Path) -> bool:
    return any((path / mark).exists() for mark in MARKS) or any(path.glob("dt=*"))
