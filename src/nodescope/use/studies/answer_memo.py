"""
Answers of studies, kept: the same series has the same answer, and a page or an agent asks for it again.

A series is known by a digest of its times, values and everything else that a study is told of it.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields
from threading import Lock
from typing import Generic, TypeVar

from nodescope.use.studies.series import Series

# An answer with its findings is some KiB.
MOST_KEPT = 256

Answer = TypeVar("Answer")


class AnswerMemo(Generic[Answer]):
    """The least recently asked for is given up first. Threads share it."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        self._lock = Lock()

    def get(self, study: str, series: Series, run: Callable[[], Answer]) -> Answer:
        """The answer that is known, else the one that `run` gives."""
        key = (study, digest(series))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        answer = run()
        with self._lock:
            self._kept[key] = answer
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return answer


def digest(series: Series) -> bytes:
    known = hashlib.blake2b(series.times_at.tobytes(), digest_size=16)
    known.update(series.values.tobytes())
    rest = [getattr(series, one.name) for one in fields(series) if one.name not in ("times_at", "values")]
    known.update(repr((len(series.values), *rest)).encode())
    return known.digest()
