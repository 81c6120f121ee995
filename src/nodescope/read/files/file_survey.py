"""
Many roots at once: data folders, folders of data folders, and object stores.

A survey says which files there are, of which node and day, from names,
manifests and sidecars only. What could not be looked at is named, and the
rest is served. References are plain data: they travel to other machines, and
are opened there.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from nodescope.base.errors import ArchiveRefused, NodescopeError, RequestRejected
from nodescope.keep.copy.manifest import MANIFEST, Listing, parse_manifest
from nodescope.keep.copy.object_store import Listed, ObjectStore, is_url
from nodescope.keep.folder import NOT_DATA, PARQUET, SIDECAR, parse_file, render_day
from nodescope.keep.parquet import first_line
from nodescope.keep.sidecar import parse_sidecar, read_sidecar
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry, FileListing, drop_replaced, find_parquet, make_entry
from nodescope.read.files.remote_parquet import RemoteFile, store_at
from nodescope.read.files.sidecar_cache import SidecarCache

# Requests under way at once while listing; a store answers one in some 20 ms.
WORKERS = 16
# How the folder of a day begins.
DAY = "dt="


@dataclass(frozen=True, slots=True)
class FileRef:
    """One Parquet file that is served, wherever it lies."""

    root: str
    """The address of an object store; empty for a file of this machine."""
    key: str
    """Below the address, or a whole path."""
    node: str
    day: str
    from_ms: int
    to_ms: int
    rows: int
    size: int
    sidecar_sha256: str = ""
    """Empty where no manifest has it."""

    @property
    def name(self) -> str:
        return f"{self.root}/{self.key}" if self.root else self.key


@dataclass(frozen=True, slots=True)
class SurveyFault:
    """A part that is not in the answer, and why."""

    where: str
    reason: str


@dataclass(slots=True)
class Survey:
    """What all roots hold together."""

    files: list[FileRef] = field(default_factory=list)
    faults: list[SurveyFault] = field(default_factory=list)

    def add(self, other: "Survey") -> None:
        self.files += other.files
        self.faults += other.faults

    @property
    def nodes(self) -> list[str]:
        return sorted({file.node for file in self.files})

    @property
    def from_ms(self) -> int | None:
        return min((file.from_ms for file in self.files), default=None)

    @property
    def to_ms(self) -> int | None:
        return max((file.to_ms for file in self.files), default=None)


def survey_roots(roots: Sequence[str]) -> Survey:
    """Every root; one that cannot be looked at is a fault, not an end."""
    survey = Survey()
    for root in roots:
        try:
            survey.add(survey_store(store_at(root)) if is_url(root) else survey_folder(Path(root)))
        except RequestRejected:
            raise
        except (NodescopeError, OSError) as error:
            survey.faults.append(SurveyFault(root, first_line(error)))
    return survey


# -- folders of this machine -------------------------------------------------------


def survey_folder(path: Path) -> Survey:
    survey = Survey()
    if not path.exists():
        survey.faults.append(SurveyFault(str(path), "no such file or folder"))
        return survey
    folders: dict[Path, list[Path]] = {}

    def note(error: OSError) -> None:
        survey.faults.append(SurveyFault(str(error.filename), error.strerror or str(error)))

    for file in find_parquet(path, note):
        folders.setdefault(file.parent, []).append(file)
    for partition, files in folders.items():
        survey.add(survey_partition(partition, files))
    return survey


def survey_partition(partition: Path, paths: Sequence[Path]) -> Survey:
    """A folder that is a copy has a manifest, and it decides; else the sidecars do."""
    manifest = partition / MANIFEST
    try:
        if manifest.exists():
            listed = parse_manifest(manifest.read_bytes()).files
            return Survey([refer_listing("", str(partition), one) for one in listed.values()])
    except (ArchiveRefused, OSError) as error:
        return Survey([], [SurveyFault(str(manifest), first_line(error))])
    listing = FileListing()
    listing.add(paths, open_with_sidecar)
    faults = [SurveyFault(str(one.path), first_line(one.reason)) for one in listing.refusals]
    return Survey([refer_entry("", entry) for entry in listing.served()], faults)


def open_with_sidecar(path: Path) -> FileEntry:
    """A footer alone is not enough here: it does not name the node."""
    sidecar = path.with_suffix(SIDECAR)
    try:
        return make_entry(path, path.stat().st_size, read_sidecar(sidecar))
    except FileNotFoundError:
        # Where the file has gone as well, it was merged away.
        path.stat()
        raise ArchiveRefused(no_sidecar(sidecar.name)) from None


def no_sidecar(name: str) -> str:
    return f"its sidecar {name} is missing: units, clocks and names are not known without it"


def refer_entry(root: str, entry: FileEntry) -> FileRef:
    day = render_day(entry.from_ms)
    return FileRef(
        root, str(entry.path), entry.node, day, entry.from_ms, entry.to_ms, entry.rows, entry.size_bytes
    )


def refer_listing(root: str, partition: str, one: Listing) -> FileRef:
    key = f"{partition}/{one.name}"
    day = render_day(one.from_ms)
    return FileRef(root, key, one.node, day, one.from_ms, one.to_ms, one.rows, one.size, one.sidecar_sha256)


# -- object stores -----------------------------------------------------------------


def survey_store(store: ObjectStore, days: int = 0) -> Survey:
    """One listing of all names, or of the newest so many days; then a manifest for each partition."""
    partitions: dict[str, dict[str, Listed]] = {}
    for one in chain.from_iterable(map(store.list, find_days(store, days) if days else [""])):
        partition, _, name = one.key.rpartition("/")
        if not any(part in NOT_DATA for part in partition.split("/")):
            partitions.setdefault(partition, {})[name] = one
    if not partitions:
        store.check_bucket()
    survey = Survey()
    with ThreadPoolExecutor(WORKERS) as pool:
        for found in pool.map(lambda item: survey_objects(store, *item), sorted(partitions.items())):
            survey.add(found)
    return survey


def find_days(store: ObjectStore, days: int) -> list[str]:
    """The newest days of a fleet's copy, or of each data folder in a store that has several."""
    top = store.list_folders()
    homes = {"": top}
    if not any(name.startswith(DAY) for name in top):
        homes = {f"{name}/": store.list_folders(name) for name in top if name not in NOT_DATA}
    return [
        f"{home}{name}"
        for home, names in homes.items()
        for name in sorted(one for one in names if one.startswith(DAY))[-days:]
    ]


def survey_objects(store: ObjectStore, partition: str, objects: Mapping[str, Listed]) -> Survey:
    """Objects that no manifest has are on their way in or out."""
    where = f"{store.url}/{partition}"
    try:
        if MANIFEST in objects:
            data = store.read(f"{partition}/{MANIFEST}") or b""
            listed = parse_manifest(data).files.values()
            return Survey([refer_listing(store.url, partition, one) for one in listed])
        return survey_sidecars(store, partition, objects)
    except (ArchiveRefused, OSError) as error:
        return Survey([], [SurveyFault(where, first_line(error))])


def survey_sidecars(store: ObjectStore, partition: str, objects: Mapping[str, Listed]) -> Survey:
    """A copy of a data folder that another tool made: sidecars say what replaces what."""
    entries: list[FileEntry] = []
    faults: list[SurveyFault] = []
    for name, one in objects.items():
        path = Path(partition, name)
        if parse_file(path) is None:
            continue
        sidecar = path.with_suffix(SIDECAR)
        data = store.read(str(sidecar))
        if data is None:
            faults.append(SurveyFault(f"{store.url}/{path}", no_sidecar(sidecar.name)))
        else:
            entries.append(make_entry(path, one.size, parse_sidecar(data)))
    return Survey([refer_entry(store.url, entry) for entry in drop_replaced(entries)], faults)


# -- opening -----------------------------------------------------------------------


def open_files(
    files: Sequence[FileRef], cache: SidecarCache | None = None
) -> tuple[Catalog, list[SurveyFault]]:
    """A catalog of these files; what cannot be opened is named. FileNotFoundError: list again."""
    entries: list[FileEntry] = []
    faults: list[SurveyFault] = []
    for file in sorted(files, key=lambda one: (one.from_ms, one.key)):
        try:
            entries.append(open_file(file, cache))
        except FileNotFoundError:
            raise
        except (ArchiveRefused, OSError) as error:
            faults.append(SurveyFault(file.name, first_line(error)))
    return Catalog(tuple(entries), ()), faults


def open_file(file: FileRef, cache: SidecarCache | None) -> FileEntry:
    sidecar_key = file.key.removesuffix(PARQUET) + SIDECAR
    if not file.root:
        path = Path(file.key)
        sidecar = read_sidecar(Path(sidecar_key))
        if not path.exists():
            raise FileNotFoundError(file.key)
        return FileEntry(path, file.from_ms, file.to_ms, file.rows, file.size, sidecar)

    def fetch() -> bytes:
        data = store_at(file.root).read(sidecar_key)
        if data is None:
            raise FileNotFoundError(file.name)
        return data

    data = cache.get(file.sidecar_sha256, fetch) if cache and file.sidecar_sha256 else fetch()
    sidecar = parse_sidecar(data)
    remote = RemoteFile(file.root, file.key, file.size, sidecar.head.sum)
    return FileEntry(Path(file.key), file.from_ms, file.to_ms, file.rows, file.size, sidecar, remote=remote)


def survey_again(files: Sequence[FileRef]) -> list[FileRef]:
    """The partitions of these files as they are now: one of them was replaced meanwhile."""
    found: list[FileRef] = []
    for root, partition in sorted({(file.root, file.key.rpartition("/")[0]) for file in files}):
        if root:
            store = store_at(root)
            objects = {one.key.rpartition("/")[2]: one for one in store.list(partition, recursive=False)}
            found += survey_objects(store, partition, objects).files
        else:
            paths = sorted(Path(partition).glob(f"*{PARQUET}"))
            found += survey_partition(Path(partition), paths).files
    return found
