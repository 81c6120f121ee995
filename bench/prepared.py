"""
Inputs that take minutes to make: under artifacts/bench, made once.

`python -m bench --prepare NAME` makes them and measures nothing, so that the
measuring itself is short. The folder's name has a hash of what writes the
files: another format is another input.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import nodescope.keep

KEPT = Path("artifacts/bench")
# What decides the bytes of an archive.
WRITERS = ("convert", "demo", "merge", "parquet", "rollup", "series", "sidecar")


def prepare_input(name: str, make: Callable[[Path], object]) -> Path:
    """The folder of that name; `make` fills it where it is not there yet."""
    folder = (KEPT / f"{name}-{hash_writers()}").absolute()
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def hash_writers() -> str:
    folder = Path(nodescope.keep.__file__).parent
    content = b"".join((folder / f"{name}.py").read_bytes() for name in WRITERS)
    return hashlib.sha256(content).hexdigest()[:8]
