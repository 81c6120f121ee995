"""
Annotations of a data folder: annotations.json, the last thousand, in order of time.

Agent, viewer and command may all write it: each holds a lock while it reads and
writes the small file whole.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodescope.base.errors import RequestRejected
from nodescope.base.findings.annotation import Annotation, build_annotation
from nodescope.keep.disk import FILE_MODE, Disk, read_json

FILE_NAME = "annotations.json"
LOCK_NAME = "annotations.lock"
ANNOTATIONS_MOST = 1000


def read_annotations(folder: Path) -> list[Annotation]:
    """What cannot be read of it is left out."""
    found: dict[str, Annotation] = {}
    rows = read_json(folder / FILE_NAME).get("annotations")
    for row in rows if isinstance(rows, list) else ():
        try:
            one = build_annotation(row["text"], row["at"], 0.0)
        except (RequestRejected, TypeError, KeyError):
            continue
        found[one.id] = one
    return sorted(found.values(), key=lambda one: one.at)


def add_annotation(folder: Path, annotation: Annotation, disk: Disk | None = None) -> None:
    """OSError where the folder may not be written; of more than a thousand the oldest leave."""
    with locked(folder):
        kept = {one.id: one for one in read_annotations(folder)} | {annotation.id: annotation}
        ordered = sorted(kept.values(), key=lambda one: one.at)[-ANNOTATIONS_MOST:]
        content = {"version": 1, "annotations": [one.to_json() for one in ordered]}
        (disk or Disk()).write_whole(folder / FILE_NAME, json.dumps(content).encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
