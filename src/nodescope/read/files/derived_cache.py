"""What was computed of files, kept within a bound: a file never changes once it has its name."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, Protocol, TypeVar

# A metric of 100 containers in minutes takes 4 MiB a day.
MOST_BYTES = 16 * 2**20


class HasSize(Protocol):
    """What can be kept."""

    @property
    def size_bytes(self) -> int: ...


Kept = TypeVar("Kept", bound=HasSize)


@dataclass(slots=True)
class DerivedCache(Generic[Kept]):
    """The least recently used is given up first. Threads share it."""

    most_bytes: int = MOST_BYTES
    size_bytes: int = 0
    _kept: OrderedDict[Hashable, Kept] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: Hashable) -> Kept | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Kept) -> None:
        """What takes half of all alone is not kept: everything else would go for it."""
        if value.size_bytes > self.most_bytes // 2:
            return
        with self._lock:
            known = self._kept.pop(key, None)
            self.size_bytes += value.size_bytes - (known.size_bytes if known else 0)
            self._kept[key] = value
            while self.size_bytes > self.most_bytes and self._kept:
                self.size_bytes -= self._kept.popitem(last=False)[1].size_bytes
