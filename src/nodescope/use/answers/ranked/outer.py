"""
Services inside services.

The kernel counts what a cgroup uses into all cgroups above it. So a sum has a
service or those inside it, never both: the outer one.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from nodescope.read.series_name import Subject

T = TypeVar("T")


def keep_outer(found: Sequence[T], subject_of: Callable[[T], Subject]) -> list[T]:
    """Of one node: without the services that are inside another one of these."""
    services = {subject_of(one).label("l_service") or "" for one in found} - {""}
    return [one for one in found if not is_inside(subject_of(one).label("l_service") or "", services)]


def is_inside(path: str, others: Collection[str]) -> bool:
    parent = path.rpartition("/")[0]
    while parent:
        if parent in others:
            return True
        parent = parent.rpartition("/")[0]
    return False
