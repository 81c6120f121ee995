"""Paths that somebody named: told at once where there is nothing."""

from collections.abc import Iterable
from pathlib import Path

from nodescope.base.errors import RequestRejected


def check_given(paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise RequestRejected(f"no such file or folder: {path}")
