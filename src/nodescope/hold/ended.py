"""
Who ended of late, as numbers in two arrays.

Thousands that end at once would be some objects each, made while the memory of all of them is still taken, and
would hold its pages for as long as they are remembered. A key is therefore known by its hash: 64 bits, and
salted anew in each process, so that nobody can choose a name that hides another one.
"""

from collections.abc import Iterable

import numpy as np

from nodescope.base.block import Integers
from nodescope.base.entity import Entity
from nodescope.base.frame import ENDS, Event

# The slowest source answers within a minute of having looked.
ENDED_SECONDS = 120


def hash_keys(entities: Iterable[Entity]) -> Integers:
    return np.fromiter((hash(entity.key) for entity in entities), np.int64)


class Ended:
    """Sorted by hash."""

    def __init__(self) -> None:
        self._hashes: Integers = np.empty(0, np.int64)
        self._since_ns: Integers = np.empty(0, np.int64)

    def __bool__(self) -> bool:
        return len(self._hashes) > 0

    def __len__(self) -> int:
        return len(self._hashes)

    def note(self, events: Iterable[Event], mono_ns: int) -> bool:
        """Whether anybody ended."""
        fresh = hash_keys(Entity(event.scope, event.ids) for event in events if event.kind in ENDS)
        if len(fresh):
            hashes = np.concatenate([self._hashes, fresh])
            since_ns = np.concatenate([self._since_ns, np.full(len(fresh), mono_ns)])
            order = np.argsort(hashes)
            self._hashes, self._since_ns = hashes[order], since_ns[order]
        return len(fresh) > 0

    def expire(self, mono_ns: int) -> None:
        oldest_ns = mono_ns - ENDED_SECONDS * 10**9
        if self and self._since_ns.min() < oldest_ns:
            kept = self._since_ns >= oldest_ns
            self._hashes, self._since_ns = self._hashes[kept], self._since_ns[kept]

    def find_living(self, hashes: Integers) -> Integers | None:
        """The rows of those that did not end; None when that is all of them."""
        if not self or not len(hashes):
            return None
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        is_living = self._hashes[places] != hashes
        return None if is_living.all() else np.flatnonzero(is_living)
