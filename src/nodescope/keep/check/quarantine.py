"""
Files that could not be read, set aside by name, so that all others go on.

    DATA/damaged/dt=.../identifier=.../<name>   the file as it was found, with its sidecar
    DATA/damaged/list.json                      what was set aside or repaired, when and why

Retention removes what was set aside when it is as old as samples may be.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nodescope.base.errors import ArchiveDamaged
from nodescope.base.log import Log
from nodescope.keep.check.seal import seal_json, unseal_json
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder, companion_of, free_path

log = Log("damage")
# The oldest notes leave; the counts go on.
NOTES_MOST = 1000


@dataclass(frozen=True, slots=True)
class DamageNote:
    """One file that was set aside, or repaired."""

    file: str
    """Its path within the data folder."""
    reason: str
    rows_lost: int
    from_ms: int
    to_ms: int
    """Between these two some samples are lost."""
    is_repaired: bool = False


@dataclass(slots=True)
class DamageList:
    """What was found damaged in a data folder since it was made."""

    set_aside: int = 0
    repaired: int = 0
    rows_lost: int = 0
    notes: list[DamageNote] = field(default_factory=list)

    def add(self, note: DamageNote) -> None:
        self.notes = [*self.notes, note][-NOTES_MOST:]
        self.rows_lost += note.rows_lost
        if note.is_repaired:
            self.repaired += 1
        else:
            self.set_aside += 1


def list_path(folder: DataFolder) -> Path:
    return folder.damaged / "list.json"


def read_damage(folder: DataFolder) -> DamageList:
    """Empty where nothing was damaged, or the list itself cannot be read."""
    try:
        return parse_damage(list_path(folder).read_bytes())
    except OSError:
        return DamageList()


def parse_damage(data: bytes) -> DamageList:
    try:
        content = json.loads(unseal_json(data).data)
        notes = [DamageNote(**note) for note in content["notes"]]
        return DamageList(content["set_aside"], content["repaired"], content["rows_lost"], notes)
    except (ArchiveDamaged, ValueError, KeyError, TypeError):
        return DamageList()


def note_damage(disk: Disk, folder: DataFolder, note: DamageNote) -> None:
    """An OSError where the list is there and cannot be read: what it has is not overwritten."""
    try:
        found = parse_damage(list_path(folder).read_bytes())
    except FileNotFoundError:
        found = DamageList()
    found.add(note)
    what = "damaged file repaired" if note.is_repaired else "damaged file set aside"
    log.warning(what, file=note.file, reason=note.reason, rows_lost=note.rows_lost)
    disk.make_folder(folder.damaged)
    disk.write_whole(list_path(folder), seal_json(asdict(found)))


def set_aside(disk: Disk, folder: DataFolder, path: Path) -> None:
    """
    Moves a file and what lies beside it.

    The sidecar is copied first and removed last: a file that still has its
    name still has its sidecar.
    """
    target = folder.damaged / path.parent.relative_to(folder.path)
    disk.make_folder(target)
    moved = free_path(target, path.stem, path.suffix)
    companion = companion_of(path)
    if companion != path and companion.exists():
        disk.write_whole(moved.with_suffix(companion.suffix), companion.read_bytes())
    disk.rename(path, moved)
    disk.sync_folder(target)
    if companion != path:
        disk.remove(companion)


def set_aside_alone(disk: Disk, folder: DataFolder, path: Path) -> None:
    """One file without what lies beside it: a sidecar, a log."""
    target = folder.damaged / path.parent.relative_to(folder.path)
    disk.make_folder(target)
    disk.rename(path, free_path(target, path.stem, path.suffix))
    disk.sync_folder(target)
