"""
Finished files to an object store, under the same names: plain Hive-partitioned Parquet.

Consolidated files and their sidecars only: a fresh file is about to be merged
away. A file goes through five steps; after a crash between any two of them
all steps are done again:

    1  sidecar and Parquet are sent under staging names, read back, compared
    2  both get their names, the sidecar first
    3  the partition's manifest is replaced: from now on it is served, and what
       it was made of is not
    4  objects that it replaces are deleted
    5  it is noted among this node's copied files

The store is asked before anything is sent: what its manifest has with the
same checksum is not sent again, even where this node's note of it was lost.
And it is asked again, at the start and every hour, for the copied files that
are noted here: retention must not rely on a bucket that somebody emptied.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path

from nodescope.base.clock import Clock
from nodescope.base.errors import ArchiveDamaged, ArchiveRefused, RequestRejected
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.keep.copy.copied_files import (
    CopiedFiles,
    Status,
    name_of,
    read_copied_files,
    read_status,
    write_copied_files,
    write_status,
)
from nodescope.keep.copy.manifest import MANIFEST, Listing, Manifest, parse_manifest, render_manifest
from nodescope.keep.copy.object_store import Digest, ObjectStore, digest_file
from nodescope.keep.disk import Disk
from nodescope.keep.folder import MS_PER_DAY, MS_PER_HOUR, PARQUET, SIDECAR, ArchiveFile, DataFolder, size_of
from nodescope.keep.parquet import first_line
from nodescope.keep.sidecar import Head, read_sidecar

log = Log("copy")
# An hour is merged within five minutes after its end; then it is finished.
SETTLED_MS = 300_000
# One may have a manifest that cannot be read; where so many fail it is the store.
PARTITIONS_FAILED = 3
# A list and a manifest for each day that is still here: some ten requests.
VERIFY_SECONDS = 3600


@dataclass(slots=True)
class Copied:
    """What a pass did."""

    files: int = 0
    bytes: int = 0
    waiting: int = 0
    failures: dict[str, str] = field(default_factory=dict)


class Partition:
    """One partition in the store: what its manifest says, and which objects really lie there."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store = store
        self._name = name
        data = store.read(f"{name}/{MANIFEST}")
        self.manifest = parse_manifest(data) if data is not None else Manifest()

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """Listed only where the manifest has the file: a new file costs no request for this."""
        listed = self._store.list(self._name, recursive=False)
        return {one.key.rpartition("/")[2]: one.size for one in listed}

    def accounts_for(self, name: str) -> bool:
        """The file lies there with its sidecar, whole; or another one that replaced it is served."""
        listing = self.manifest.files.get(name)
        if listing is None:
            return name in self.manifest.gone
        return (self._sizes.get(name), self._sizes.get(listing.sidecar)) == (
            listing.size,
            listing.sidecar_size,
        )


def is_finished(file: ArchiveFile, now_ms: int) -> bool:
    """
    Its last hour is over: it will not be merged again before its day is.

    A fresh file is finished an hour after its day: there was nothing to merge it with.
    """
    end_ms = file.to_ms or file.from_ms
    if file.kind == "metrics":
        return (end_ms // MS_PER_DAY + 1) * MS_PER_DAY + MS_PER_HOUR <= now_ms
    return (end_ms // MS_PER_HOUR + 1) * MS_PER_HOUR + SETTLED_MS <= now_ms


@dataclass(slots=True)
class Copier:
    """One data folder and one store."""

    disk: Disk
    folder: DataFolder
    store: ObjectStore
    clock: Clock
    copied_files: CopiedFiles = field(init=False)
    status: Status = field(init=False)
    verify_ns: int | None = field(init=False, default=None)
    """When the store is asked next; None: at once."""

    def __post_init__(self) -> None:
        copied = read_copied_files(self.folder)
        status = read_status(self.folder)
        # Another address: nothing of this node is there yet.
        self.copied_files = copied if copied and copied.url == self.store.url else CopiedFiles(self.store.url)
        self.status = status if status and status.url == self.store.url else Status(self.store.url)
        # From here on retention waits for the copy, also before the first file.
        try:
            write_copied_files(self.disk, self.folder, self.copied_files)
        except OSError as error:
            # A full disk: it is written with the first pass that can.
            self._note_failure("the list of copied files could not be written", error)

    def run_pass(self, *, everything: bool = False, seconds: float | None = None) -> Copied:
        """
        Sends what is finished (or all that is consolidated), oldest first.

        After so many seconds it stops between two files: merging must go on.
        """
        copied = Copied()
        deadline_ns = None if seconds is None else self.clock.mono_ns() + round(seconds * 1e9)
        now_ms = self.clock.wall_ns() // 1_000_000
        self.copied_files.forget_missing(self.folder)
        if not self._is_there(copied):
            return copied
        self._verify()
        failed: set[Path] = set()
        for file in self.waiting(now_ms, everything=everything):
            is_late = deadline_ns is not None and self.clock.mono_ns() > deadline_ns
            if is_late or len(failed) >= PARTITIONS_FAILED:
                break
            if file.path.parent in failed:
                continue
            try:
                self._copy(file, copied)
            except FileNotFoundError:
                # Merged away meanwhile; its rows are in a file that comes next.
                continue
            except (ArchiveRefused, OSError) as error:
                self._fail(file, error, copied)
                if isinstance(error, OSError):
                    # The store, not the file: others of this partition would fail as well.
                    failed.add(file.path.parent)
        self.note_status(everything=everything)
        copied.waiting = self.status.waiting_files
        return copied

    def _is_there(self, copied: Copied) -> bool:
        """A store whose mount is away has not lost what was copied: nothing is asked, sent or forgotten."""
        try:
            self.store.check_set_up()
        except OSError as error:
            copied.failures[self.store.url] = self._note_failure("nothing copied", error)
            self.note_status(everything=False)
            copied.waiting = self.status.waiting_files
            return False
        return True

    def _verify(self) -> None:
        """A copied file that the store no longer has is forgotten, and so it is sent again."""
        now_ns = self.clock.mono_ns()
        if self.verify_ns is not None and now_ns < self.verify_ns:
            return
        try:
            vanished = self._find_vanished()
        except (ArchiveRefused, OSError) as error:
            # Not known is not gone; asked again with the next pass.
            self._note_failure("the store could not be asked for what it has", error)
            return
        self.verify_ns = now_ns + VERIFY_SECONDS * 1_000_000_000
        for name in vanished:
            del self.copied_files.files[name]
        if vanished:
            log.warning("files vanished from the store, sent again", files=len(vanished), first=vanished[0])
            self.status.vanished_files += len(vanished)
            write_copied_files(self.disk, self.folder, self.copied_files)

    def _find_vanished(self) -> list[str]:
        vanished = []
        for partition, names in groupby(
            sorted(self.copied_files.files), lambda name: name.rpartition("/")[0]
        ):
            there = Partition(self.store, partition)
            vanished += [name for name in names if not there.accounts_for(name.rpartition("/")[2])]
        return vanished

    def waiting(self, now_ms: int, *, everything: bool) -> list[ArchiveFile]:
        files = [
            file
            for file in self.folder.files()
            if (is_finished(file, now_ms) or (everything and file.kind == "consolidated"))
            and not self.copied_files.has(self.folder, file)
        ]
        return sorted(files, key=lambda file: (file.from_ms, file.path.name))

    def _copy(self, file: ArchiveFile, copied: Copied) -> None:
        head, listing = read_local(file)
        if head.sum and head.sum.sha256 != listing.sha256:
            raise ArchiveDamaged(f"{listing.name}: damaged, it has another checksum than when it was written")
        partition = name_of(self.folder, file).rpartition("/")[0]
        there = Partition(self.store, partition)
        manifest = there.manifest
        if manifest.files.get(listing.name) != listing or not there.accounts_for(listing.name):
            sidecar = Digest(listing.sidecar_size, listing.sidecar_sha256)
            self.store.send(file.sidecar, f"{partition}/{listing.sidecar}", sidecar)
            self.store.send(file.path, f"{partition}/{listing.name}", Digest(listing.size, listing.sha256))
            manifest.replace(listing, head.replaces)
            self.store.write_whole(f"{partition}/{MANIFEST}", render_manifest(manifest))
            copied.files += 1
            copied.bytes += listing.size + listing.sidecar_size
            self.status.copied_files += 1
            self.status.copied_bytes += listing.size + listing.sidecar_size
            log.info("file copied", file=listing.name, bytes=listing.size)
        self._delete(partition, manifest.gone)
        self.copied_files.files[name_of(self.folder, file)] = listing.size
        write_copied_files(self.disk, self.folder, self.copied_files)

    def _delete(self, partition: str, names: Iterable[str]) -> None:
        """Parquet first: a sidecar alone is nothing to any reader."""
        for name in sorted(names):
            self.store.delete(f"{partition}/{name}")
            self.store.delete(f"{partition}/{name.removesuffix(PARQUET)}{SIDECAR}")

    def _fail(self, file: ArchiveFile, error: BaseException, copied: Copied) -> None:
        copied.failures[file.path.name] = self._note_failure("file not copied", error, file=file.path.name)

    def _note_failure(self, what: str, error: BaseException, **facts: str) -> str:
        reason = clean_text(first_line(error))
        log.warning(what, reason=reason, **facts)
        self.status.failures += 1
        self.status.last_failure = reason
        return reason

    def note_status(self, *, everything: bool) -> None:
        """How far behind: for the agent to publish, and for the next process."""
        now_ms = self.clock.wall_ns() // 1_000_000
        waiting = self.waiting(now_ms, everything=everything)
        alone = (file.from_ms for file in self.folder.files() if not self.copied_files.has(self.folder, file))
        self.status.waiting_files = len(waiting)
        self.status.waiting_bytes = sum(size_of(file.path) for file in waiting)
        self.status.oldest_waiting_ms = min(alone, default=None)
        write_status(self.disk, self.folder, self.status)
        write_copied_files(self.disk, self.folder, self.copied_files)


def read_local(file: ArchiveFile) -> tuple[Head, Listing]:
    """A file of this node that its disk cannot read is refused; the store is as good as ever."""
    try:
        head = read_sidecar(file.sidecar).head
        return head, list_file(file, head)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ArchiveRefused(f"{file.path.name}: {error.strerror or error}") from error


def list_file(file: ArchiveFile, head: Head) -> Listing:
    content, sidecar = digest_file(file.path), digest_file(file.sidecar)
    return Listing(
        file.path.name,
        content.size,
        content.sha256,
        sidecar.size,
        sidecar.sha256,
        head.rows,
        head.from_ms,
        head.to_ms,
        head.node,
    )


def first_failure(copied: Copied) -> None:
    """Raises the first failure: for a single pass that a person waits for."""
    for name, reason in copied.failures.items():
        raise RequestRejected(reason if "://" in name else f"{name} was not copied: {reason}")
