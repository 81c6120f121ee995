"""
Slow sources: files that are read whole every few seconds, by declaration.

What changes slowly, or is only asked for by dashboards, needs no open
descriptors and no place in the batch. A slow source has two functions: `read`
takes the files' texts (plain data), `parse` is pure and makes the rows of its
tables. One that reads few files of /proc, which never wait for a device, is
prompt: the tick asks it, and it has no thread.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import Context

Rows = Mapping[Entity, Sequence[float]]
# /proc/net is the reader's own network namespace; process 1's is the node's.
NETWORKS = ("proc/1/net", "proc/net")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class SlowSource:
    """A whole source by declaration: its tables, how they are read, why it may be absent."""

    name: str
    tables: tuple[Table, ...]
    read: Callable[[Context], Any]
    """Plain data that could be saved to a file; None where the node does not offer it."""
    parse: Callable[[Any], tuple[Rows, ...]]
    """Pure: the rows of each table, in their order."""
    absent: str
    pace_seconds: float = 30.0
    deadline_seconds: float = 20.0
    is_prompt: bool = False

    def __call__(self, context: Context) -> "OpenSlowSource":
        return OpenSlowSource(self, context)


class OpenSlowSource:
    """A slow source on a node."""

    def __init__(self, declared: SlowSource, context: Context) -> None:
        self.pace_seconds = declared.pace_seconds
        self.deadline_seconds = declared.deadline_seconds
        self._declared = declared
        self._context = context

    def read(self) -> Any:
        answer = self._declared.read(self._context)
        if answer is None:
            raise SourceAbsent(self._declared.absent)
        return answer

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        found = zip(self._declared.tables, self._declared.parse(answer), strict=True)
        return tuple(self._make_block(table, rows, mono_ns) for table, rows in found)

    def _make_block(self, table: Table, rows: Rows, mono_ns: int) -> Block:
        """The first rows stay, the rest is over the scope's limit."""
        limit = self._context.limit(table.scopes[0])
        kept = dict(list(rows.items())[:limit]) if len(rows) > limit else rows
        return make_block(table, kept, mono_ns)

    def close(self) -> None:
        """Nothing is kept open."""


def read_network(context: Context, name: str) -> str | None:
    """A file of the node's own network namespace; None where there is none."""
    for folder in NETWORKS:
        text = context.root.read_text(f"{folder}/{name}")
        if text is not None:
            return text
    return None


def list_names(context: Context, folder: str, pattern: str = ".+") -> list[str]:
    """What a folder holds, in the order of the numbers in the names; nothing where it is not there."""
    try:
        found = context.root.names(folder)
    except OSError:
        return []
    return sorted((name for name in found if re.fullmatch(pattern, name)), key=order_name)


def order_name(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def read_folder(context: Context, folder: str, files: Sequence[str]) -> dict[str, str]:
    """The texts of those files of a folder that can be read."""
    found = ((name, context.root.read_text(f"{folder}/{name}")) for name in files)
    return {name: text for name, text in found if text is not None}


def to_number(text: str | None, scale: float = 1.0) -> float:
    """A number as the kernel writes it; not measured where it is none."""
    if text is None or not _NUMBER.fullmatch(text):
        return NAN
    return float(text) * scale


def pick_numbers(texts: Mapping[str, str], files: Sequence[str]) -> list[float]:
    return [to_number(texts.get(name)) for name in files]


def split_lines(text: str | None) -> Iterator[list[str]]:
    """The words of each line that has any."""
    return (words for line in (text or "").splitlines() if (words := line.split()))
