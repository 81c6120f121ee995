"""
What becomes of a damaged file: repaired, salvaged, or set aside; never left in the way.

    one flipped bit     the file is written anew without it, and proven by SHA-256
    some row groups     the others become a file of their own; the damaged one is set aside
    the footer, or all  set aside
    a sidecar           repaired, or set aside; its samples stay, without units and clocks

Files that are older than checksums are not judged here.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.base.errors import ArchiveDamaged, ArchiveRefused
from nodescope.base.log import Log
from nodescope.keep.check.quarantine import DamageNote, note_damage, set_aside, set_aside_alone
from nodescope.keep.check.seal import seal, unseal
from nodescope.keep.check.sums import (
    CHUNK_BYTES,
    DamagedPiece,
    FileSum,
    describe_damage,
    find_file_damage,
    locate_flip,
)
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import ArchiveFile, DataFolder, parse_file, size_of
from nodescope.keep.merge import join_sources, open_groups
from nodescope.keep.rollup import read_rollup_sum
from nodescope.keep.sidecar import OpenSidecar, parse_sidecar

log = Log("damage")
# Read again by each pass: a day's files of a busy node within a day of passes.
SCRUB_BYTES = 128 * 2**20


@dataclass(slots=True)
class Healer:
    """One data folder."""

    disk: Disk
    folder: DataFolder
    lost: dict[str, str] = field(default_factory=dict)
    """Set aside since the last look, or not readable: name and reason."""
    scrubbed: str = ""
    """The file that the last look ended with."""

    # -- looking for damage ------------------------------------------------------

    def scrub(self, budget_bytes: int = SCRUB_BYTES) -> None:
        """Reads on where the last pass ended; from the first file again after the last."""
        files = sorted([*self.folder.files(), *self.folder.rollup.files()], key=lambda one: str(one.path))
        later = [file for file in files if str(file.path) > self.scrubbed]
        for file in later or files:
            # One at least: a file may be larger than all of a pass.
            self.scrubbed = str(file.path)
            budget_bytes -= size_of(file.path)
            self.examine(file)
            if budget_bytes <= 0:
                return

    def examine(self, file: ArchiveFile) -> None:
        """Heals it where it is damaged. Gone meanwhile is as good."""
        try:
            if file.kind == "minute":
                self._examine_rollup(file)
            else:
                self._examine_samples(file)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("file not examined", file=file.path.name, error=str(error))
            self.lost[file.path.name] = str(error)

    def examine_path(self, path: Path) -> None:
        file = parse_file(path)
        if file:
            self.examine(file)

    def _examine_rollup(self, file: ArchiveFile) -> None:
        try:
            expected = read_rollup_sum(file.path)
        except ArchiveDamaged:
            # The rollup itself may be good, and nobody can tell.
            self._set_aside(file, "its checksum is damaged", 0)
            return
        damage = find_file_damage(file.path, expected) if expected else []
        if expected and damage and not self._repair(file, expected, damage):
            self._set_aside(file, describe_damage(damage, expected), 0)

    def _examine_samples(self, file: ArchiveFile) -> None:
        sidecar = self._mend_sidecar(file)
        expected = sidecar.head.sum if sidecar else None
        if sidecar is None or expected is None:
            return
        damage = find_file_damage(file.path, expected)
        if damage and not self._repair(file, expected, damage):
            kept = self._salvage(file, sidecar, damage)
            self._set_aside(file, describe_damage(damage, expected), sidecar.head.rows - kept)

    # -- mending -----------------------------------------------------------------

    def _mend_sidecar(self, file: ArchiveFile) -> OpenSidecar | None:
        data = file.sidecar.read_bytes()
        try:
            found = unseal(data)
            sidecar = parse_sidecar(data)
        except ArchiveDamaged as error:
            note_damage(self.disk, self.folder, self._note(file, f"its sidecar: {error}", 0, file.sidecar))
            set_aside_alone(self.disk, self.folder, file.sidecar)
            self.lost[file.sidecar.name] = str(error)
            return None
        except ArchiveRefused:
            # Not ours, or newer than us: left alone.
            return None
        if found.is_repaired:
            self.disk.write_whole(file.sidecar, seal(found.data))
            reason = "one bit of its sidecar had flipped"
            note_damage(self.disk, self.folder, self._note(file, reason, 0, file.sidecar, is_repaired=True))
        return sidecar

    def _repair(self, file: ArchiveFile, expected: FileSum, damage: Sequence[DamagedPiece]) -> bool:
        """Whether one flipped bit was all."""
        place = locate_flip(list(damage))
        if place is None:
            return False
        temporary = file.path.with_name(file.path.name + TEMPORARY)
        if rewrite(self.disk, file.path, temporary, *place) != expected.sha256:
            self.disk.remove(temporary)
            return False
        self.disk.rename(temporary, file.path)
        self.disk.sync_folder(file.path.parent)
        reason = f"bit {place[1]} of byte {place[0]} had flipped"
        note_damage(self.disk, self.folder, self._note(file, reason, 0, file.path, is_repaired=True))
        return True

    def _salvage(self, file: ArchiveFile, sidecar: OpenSidecar, damage: Sequence[DamagedPiece]) -> int:
        """Rows of the row groups that are whole, now in a file of their own."""
        bad = {piece.number for piece in damage}
        pieces = len(sidecar.head.sum.pieces) if sidecar.head.sum else 0
        good = [number for number in range(pieces - 1) if number not in bad]
        if not good or any(number >= pieces - 1 for number in bad):
            return 0
        try:
            return join_sources(self.disk, [open_groups(file.path, sidecar.whole(), good)], file.kind)
        except (ArchiveRefused, ArithmeticError, ValueError, KeyError):
            return 0

    def _set_aside(self, file: ArchiveFile, reason: str, rows_lost: int) -> None:
        """Noted first: what has gone from its place is named already."""
        note_damage(self.disk, self.folder, self._note(file, reason, rows_lost, file.path))
        set_aside(self.disk, self.folder, file.path)
        self.lost[file.path.name] = reason

    def _note(
        self, file: ArchiveFile, reason: str, rows_lost: int, path: Path, *, is_repaired: bool = False
    ) -> DamageNote:
        name = str(path.relative_to(self.folder.path))
        return DamageNote(name, reason, rows_lost, file.from_ms, file.to_ms or file.from_ms, is_repaired)


def rewrite(disk: Disk, path: Path, temporary: Path, place: int, bit: int) -> str:
    """The file with one bit turned back, under a temporary name; its SHA-256."""
    digest = hashlib.sha256()
    with path.open("rb") as source, disk.create(temporary) as output:
        offset = 0
        while part := source.read(CHUNK_BYTES):
            if offset <= place < offset + len(part):
                turned = bytearray(part)
                turned[place - offset] ^= 1 << bit
                part = bytes(turned)
            digest.update(part)
            output.write(part)
            offset += len(part)
        output.sync()
    return digest.hexdigest()
