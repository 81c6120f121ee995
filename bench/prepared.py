"""
Inputs that take minutes to make: in the user's cache folder, made once, for every checkout.

`python -m bench --prepare NAME` makes them and measures nothing, so that the
measuring itself is short. The folder's name has a hash of what writes the
files: another format is another input.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import nodescope.keep

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
KEPT = CACHE / "nodescope-bench"
# What decides the bytes of an archive.
WRITERS = (
    "consolidator.py",
    "convert.py",
    "demo/*.py",
    "label_columns.py",
    "merge.py",
    "parquet.py",
    "rollup.py",
    "sidecar.py",
)


def prepare_input(name: str, make: Callable[[Path], object], kept: Path = KEPT) -> Path:
    """The folder of that name; `make` fills it where it is not there yet."""
    folder = (kept / f"{name}-{hash_writers()}").absolute()
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def hash_writers() -> str:
    content = b"".join(path.read_bytes() for pattern in WRITERS for path in find_writers(pattern))
    return hashlib.sha256(content).hexdigest()[:8]


def find_writers(pattern: str) -> list[Path]:
    return sorted(Path(nodescope.keep.__file__).parent.glob(pattern))
