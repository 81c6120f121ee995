"""
Tables that have lost most of their entries.

Python's dicts and sets get larger by themselves, and never smaller: after 5,000 containers each of some thirty tables
would keep 100 to 1,000 KiB for ever.
"""

from sys import getsizeof
from typing import Any, TypeVar

Container = TypeVar("Container", dict[Any, Any], set[Any])

# Less is not worth a copy.
LEAST_BYTES = 16 * 1024
# A table that has just grown has up to some 110 bytes an entry.
SPARSE_BYTES = 400


def fit(table: Container) -> Container:
    """The same table, or a copy without the room of what has left."""
    room = getsizeof(table)
    return table.copy() if room > LEAST_BYTES and room > SPARSE_BYTES * len(table) else table
