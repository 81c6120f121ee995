"""
The newest days of an object store, listed on a thread of their own: who serves them never waits for the store.

Names, manifests and sidecars are read; rows come when somebody asks for them. While the
store does not answer, what was known stays, with the reason. A file that was replaced
meanwhile is left out of one answer, and the store is looked at again at once.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from nodescope.base.clock import Clock
from nodescope.base.errors import ArchiveRefused, NodescopeError
from nodescope.keep.copy.object_store import check_url
from nodescope.keep.parquet import first_line
from nodescope.read.files.file_survey import WORKERS, FileRef, SurveyFault, open_file, survey_store
from nodescope.read.files.listing import FileEntry, Refusal
from nodescope.read.files.remote_parquet import RemoteFile, set_patience, store_at
from nodescope.read.files.sidecar_cache import SidecarCache, cache_folder

# The copier sends what is finished, an hour at a time.
LOOK_SECONDS = 60.0
# One that does not answer is asked sooner: somebody may be looking.
AGAIN_SECONDS = 10.0
# A sidecar is some 20 KiB in memory.
FILES_MOST = 5000


@dataclass(slots=True)
class ServedFile(RemoteFile):
    """An object whose rows are served for as long as the listing has it."""

    listing: "StoreListing | None" = field(default=None, repr=False, compare=False)
    failure: str = ""
    """Why the store did not give its rows when they were last asked for; empty where it did."""

    def select(
        self,
        metric: str,
        containers: Sequence[str] | None,
        columns: Sequence[str],
        from_ms: int | None,
        to_ms: int | None,
    ) -> pa.Table:
        listing = self.listing
        if listing and (reason := listing.reason):
            # A question has many metrics and files: the first of them has waited for all.
            self.failure = reason
            raise ArchiveRefused(f"{self.name}: {reason}")
        try:
            found = RemoteFile.select(self, metric, containers, columns, from_ms, to_ms)
        except FileNotFoundError:
            if listing:
                listing.look_again()
            raise ArchiveRefused(
                f"{self.name}: replaced meanwhile; the store is being listed again"
            ) from None
        except ArchiveRefused as error:
            # A damaged file is its own trouble; a store that does not answer is everybody's.
            if listing and isinstance(error.__cause__, OSError):
                self.failure = listing.note_failure(error.__cause__)
            raise
        self.failure = ""
        return found


@dataclass(slots=True)
class StoreListing:
    url: str
    days: int
    deadline_seconds: float
    clock: Clock
    cache: SidecarCache = field(default_factory=lambda: SidecarCache(cache_folder(os.environ)))
    entries: tuple[FileEntry, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    is_listed: bool = False
    """Whether it has answered, once."""
    _failure: str = ""
    _asking_ns: int = 0
    """Since when the store is being asked; 0 while it is not."""
    _opened: dict[FileRef, FileEntry] = field(default_factory=dict)
    _wake: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        check_url(self.url)
        set_patience(self.url, self.deadline_seconds)

    @property
    def reason(self) -> str:
        """Why there may be newer data than is shown; empty where the store has answered."""
        waited = (self.clock.mono_ns() - self._asking_ns) / 1e9 if self._asking_ns else 0.0
        if waited > self.deadline_seconds:
            return f"{self.url}: no answer within {self.deadline_seconds:g} s"
        return self._failure

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="list-store", daemon=True)
        self._thread.start()

    def look_again(self) -> None:
        self._wake.set()

    def note_failure(self, error: Exception) -> str:
        """Rows did not come: nothing more is asked for until the store has been listed again."""
        self._failure = self._explain(error)
        self._wake.set()
        return self._failure

    def _explain(self, error: Exception) -> str:
        line = first_line(error)
        return line if line.startswith(self.url) else f"{self.url}: {line}"

    def _run(self) -> None:
        while True:
            self._wake.clear()
            self.look()
            self._wake.wait(AGAIN_SECONDS if self._failure else LOOK_SECONDS)

    def look(self) -> None:
        """Once; a store that cannot be listed leaves everything as it was."""
        self._asking_ns = self.clock.mono_ns()
        try:
            self._list()
            self._failure, self.is_listed = "", True
        except (NodescopeError, OSError) as error:
            self._failure = self._explain(error)
        finally:
            self._asking_ns = 0

    def _list(self) -> None:
        survey = survey_store(store_at(self.url), self.days)
        files = sorted(survey.files, key=lambda one: -one.to_ms)[:FILES_MOST]
        faults = list(survey.faults)
        if len(survey.files) > len(files):
            faults.append(SurveyFault(self.url, f"only the newest {FILES_MOST} files are shown"))
        self._opened = self._open(files, faults)
        # The order of names is the order of time: catalogs of unchanged files are kept.
        self.entries = tuple(self._opened[file] for file in sorted(self._opened, key=lambda one: one.key))
        self.refusals = tuple(Refusal(Path(one.where), one.reason) for one in faults)

    def _open(self, files: Iterable[FileRef], faults: list[SurveyFault]) -> dict[FileRef, FileEntry]:
        """What is known already is taken over; a sidecar is fetched for each of the others."""
        files = list(files)
        fresh = [file for file in files if file not in self._opened]
        found = {file: self._opened[file] for file in files if file in self._opened}
        with ThreadPoolExecutor(WORKERS) as pool:
            opened = pool.map(self._open_one, fresh)
        for file, entry in zip(fresh, opened):
            if isinstance(entry, FileEntry):
                found[file] = entry
            else:
                faults.append(SurveyFault(file.name, entry))
        return found

    def _open_one(self, file: FileRef) -> FileEntry | str:
        """The entry, or why there is none."""
        try:
            entry = open_file(file, self.cache)
        except (NodescopeError, OSError) as error:
            return first_line(error)
        remote = entry.remote
        if remote is None:
            return "not in a store"
        served = ServedFile(remote.url, remote.key, remote.size, remote.sum, listing=self)
        return replace(entry, remote=served)


def find_failure(entries: Iterable[FileEntry]) -> str:
    """Why rows of these files could not be had when they were last asked for; empty where they could."""
    return next(
        (one.remote.failure for one in entries if isinstance(one.remote, ServedFile) and one.remote.failure),
        "",
    )
