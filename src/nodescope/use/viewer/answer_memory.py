"""Answers that cannot change, kept for whoever asks the same again: the newest, within a bounded number of bytes."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

BYTES_MOST = 16 * 2**20


@dataclass(slots=True)
class AnswerMemory:
    """By the answer's name (see `stamp`): the JSON as it was sent."""

    bytes_most: int = BYTES_MOST
    _kept: "OrderedDict[str, bytes]" = field(default_factory=OrderedDict)
    _size: int = 0
    _lock: Lock = field(default_factory=Lock)

    def find(self, tag: str) -> bytes | None:
        with self._lock:
            content = self._kept.get(tag)
            if content is not None:
                self._kept.move_to_end(tag)
            return content

    def keep(self, tag: str, content: bytes) -> None:
        """The oldest make room; what is larger than all the room is not kept."""
        if len(content) > self.bytes_most:
            return
        with self._lock:
            self._size += len(content) - len(self._kept.pop(tag, b""))
            self._kept[tag] = content
            while self._size > self.bytes_most:
                self._size -= len(self._kept.popitem(last=False)[1])
