"""
The checksum of a file: one CRC-32 for each of its pieces, and SHA-256 over the whole.

The pieces of a Parquet file are its row groups, and all that follows the last
of them: bloom filters, page indexes, the footer. A damaged piece names the row
group that is lost, and all others are good. The CRC-32 of a
piece also tells which bit flipped, where it was one; SHA-256 proves it.
"""

import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from nodescope.base.errors import ArchiveDamaged
from nodescope.keep.check.bit_repair import find_flipped_bit
from nodescope.keep.disk import Output

# Fits into the cache of a core. Of 4 MiB at a time every page is faulted in anew, and a day of
# 100 containers (190 MB) takes twice the CPU: 0.15 instead of 0.07 s.
CHUNK_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class FileSum:
    """What the bytes of a file are known by."""

    pieces: tuple[tuple[int, int], ...]
    """Where each piece ends, and its CRC-32."""
    sha256: str

    @property
    def size(self) -> int:
        return self.pieces[-1][0] if self.pieces else 0

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """(start, end, CRC-32) of each piece."""
        start = 0
        for end, crc32 in self.pieces:
            yield start, end, crc32
            start = end


def sum_to_json(one: FileSum | None) -> dict[str, Any] | None:
    return {"pieces": [list(piece) for piece in one.pieces], "sha256": one.sha256} if one else None


def sum_from_json(content: Mapping[str, Any] | None) -> FileSum | None:
    """None: the file is older than checksums are."""
    if content is None:
        return None
    pieces = tuple((int(end), int(crc32)) for end, crc32 in content["pieces"])
    return FileSum(pieces, str(content["sha256"]))


class SummingOutput(io.RawIOBase):
    """Hands every write on, and adds it up. A piece ends where `end_piece` is called."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._digest = hashlib.sha256()
        self._crc32 = 0
        self._pieces: list[tuple[int, int]] = []

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._digest.update(view)
        self._crc32 = zlib.crc32(view, self._crc32)
        return self._output.write(view)

    def tell(self) -> int:
        return self._output.tell()

    def writable(self) -> bool:
        return True

    def end_piece(self) -> None:
        end = self.tell()
        if end > (self._pieces[-1][0] if self._pieces else 0):
            self._pieces.append((end, self._crc32))
            self._crc32 = 0

    def finish(self) -> FileSum:
        """When the last byte is written."""
        self.end_piece()
        return FileSum(tuple(self._pieces), self._digest.hexdigest())


@dataclass(frozen=True, slots=True)
class DamagedPiece:
    """One piece whose bytes are not those that were written."""

    number: int
    start: int
    end: int
    difference: int
    """Between its CRC-32 and that of the bytes as they are."""


def find_damage(source: IO[bytes], expected: FileSum) -> list[DamagedPiece]:
    """Every piece that is damaged, cut off, or followed by bytes that nobody wrote."""
    found = []
    for number, (start, end, crc32) in enumerate(expected.spans()):
        actual, size = sum_piece(source, end - start)
        if actual != crc32 or size != end - start:
            found.append(DamagedPiece(number, start, start + size, actual ^ crc32))
    if source.read(1) and not found:
        last = len(expected.pieces)
        found.append(DamagedPiece(last, expected.size, expected.size, 0))
    return found


def sum_piece(source: IO[bytes], size: int) -> tuple[int, int]:
    """CRC-32 of the next bytes, and how many there were."""
    crc32, left = 0, size
    while left and (part := source.read(min(CHUNK_BYTES, left))):
        crc32 = zlib.crc32(part, crc32)
        left -= len(part)
    return crc32, size - left


def locate_flip(damage: list[DamagedPiece]) -> tuple[int, int] | None:
    """(byte, bit) in the file, where one flipped bit explains the damage."""
    if len(damage) != 1 or damage[0].difference == 0:
        return None
    piece = damage[0]
    found = find_flipped_bit(piece.end - piece.start, piece.difference)
    return (piece.start + found[0], found[1]) if found else None


def find_file_damage(path: Path, expected: FileSum) -> list[DamagedPiece]:
    with path.open("rb") as source:
        return find_damage(source, expected)


def check_file(path: Path, expected: FileSum) -> None:
    """ArchiveDamaged, with the name, where the bytes are not those that were written. Once per file version."""
    status = path.stat()
    reason = _find_reason(path, expected, status.st_size, status.st_mtime_ns, status.st_ino)
    if reason:
        raise ArchiveDamaged(f"{path.name}: {reason}")


# A week of hours and a year of days; an entry is some KiB where a file has many row groups.
@lru_cache(maxsize=4096)
def _find_reason(path: Path, expected: FileSum, size: int, mtime_ns: int, inode: int) -> str:
    del size, mtime_ns, inode
    damage = find_file_damage(path, expected)
    return describe_damage(damage, expected) if damage else ""


def forget_checks() -> None:
    """All files are read again: one that was good may be on a disk that fails since."""
    _find_reason.cache_clear()


def describe_damage(damage: list[DamagedPiece], expected: FileSum) -> str:
    first = damage[0]
    others = len(damage) - 1
    more = f" and {others} more {'piece' if others == 1 else 'pieces'} have" if others else " has"
    what = (
        "its end (indexes and footer)"
        if first.number >= len(expected.pieces) - 1
        else f"row group {first.number}"
    )
    return f"damaged: {what} (bytes {first.start} to {first.end}){more} another checksum than when it was written"
