"""
Installs what runs, with little to fetch: pip's wheel and the wheels that fit this machine, nothing else.

An index's lists of files are 20 MB for these packages, and uv is 18 MB. So requirements.run.files has
where each file lies below the index's folder of files, which the list of pip's own files tells; an index
with another order is asked for its lists. Files are fetched side by side, believed by the checksums of
the lock files, and installed by pip from its wheel.
"""

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.set_up.index import (
    INSTALLERS_LOCK,
    ROOT,
    RUN_LOCKS,
    VENV,
    FetchFailed,
    is_made,
    list_files,
    name_file,
    read_checksums,
    read_wheel,
)
from tools.set_up.progress import MIB, Progress, say

RUN_FILES = ROOT / "requirements.run.files"
WHEELS = VENV / ".wheels"
FETCHERS = 8
LOCKED = re.compile(r"^([a-z0-9_.-]+)==([^ \\]+)(?: *; *([^\\]+?))? *\\?$", re.MULTILINE)


@dataclass(frozen=True)
class RunFile:
    """A wheel, where it lies below the index's folder of files, and its size."""

    place: str
    size_bytes: int

    @property
    def name(self) -> str:
        return name_file(self.place)

    @property
    def release(self) -> str:
        """As its metadata's folder is called."""
        return "-".join(self.name.split("-")[:2])

    @property
    def package(self) -> str:
        return self.name.partition("-")[0].lower().replace("_", "-")

    def is_installed(self) -> bool:
        return any(VENV.glob(f"lib/python*/site-packages/{self.release}.dist-info"))


def read_run_files(path: Path = RUN_FILES) -> list[RunFile]:
    lines = (line.split() for line in path.read_text().splitlines() if not line.startswith("#"))
    return [RunFile(place, int(size)) for place, size in lines]


def set_up(environment: dict[str, str], progress: Progress) -> bool:
    """False where this machine cannot: no venv module, or a processor or Python without a wheel in the list."""
    if not is_made() and not make_venv():
        return False
    WHEELS.mkdir(exist_ok=True)
    try:
        return fetch_and_install(environment, progress)
    finally:
        shutil.rmtree(WHEELS)


def make_venv() -> bool:
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(VENV)], capture_output=True, check=False
    )
    return made.returncode == 0


def fetch_and_install(environment: dict[str, str], progress: Progress) -> bool:
    files = read_run_files()
    pip_file = next(file for file in files if file.package == "pip")
    index = find_index(environment["UV_DEFAULT_INDEX"], pip_file)
    [pip] = fetch(index, [pip_file], progress)
    chosen = choose_files(files, pip)
    if chosen is None:
        return False
    fetch(index, [file for file in chosen if not file.is_installed()], progress)
    words = [word for lock in RUN_LOCKS for word in ("-r", lock)]
    say("installing the packages")
    install(
        pip,
        environment,
        "--no-index",
        "--no-compile",
        "--find-links",
        str(WHEELS),
        "--require-hashes",
        *words,
    )
    say("installing nodescope itself")
    install(pip, environment, "--no-index", "--no-build-isolation", "-e", ".")
    return True


# -- which files -----------------------------------------------------------------------


def choose_files(files: Sequence[RunFile], pip: Path) -> list[RunFile] | None:
    """The best wheel of each package that is locked for this machine; None where one has none."""
    sys.path.insert(0, str(pip))
    tags = importlib.import_module("pip._vendor.packaging.tags")
    markers = importlib.import_module("pip._vendor.packaging.markers")
    ranks = {tag: rank for rank, tag in enumerate(tags.sys_tags())}
    wanted = list_wanted((ROOT / lock for lock in RUN_LOCKS), markers)
    found = [choose_file(files, release, ranks, tags) for release in wanted]
    chosen = [file for file in found if file]
    return chosen if len(chosen) == len(found) else None


def list_wanted(locks: Iterable[Path], markers: Any) -> Iterator[str]:
    """Releases whose marker holds here, as wheels spell them."""
    for lock in locks:
        for name, version, marker in LOCKED.findall(lock.read_text()):
            if not marker or markers.Marker(marker).evaluate():
                yield name_release(name, version)


def name_release(name: str, version: str) -> str:
    """As a wheel's name begins, in small letters."""
    return f"{re.sub('[-.]+', '_', name)}-{version}"


def choose_file(files: Iterable[RunFile], release: str, ranks: dict[Any, int], tags: Any) -> RunFile | None:
    fitting = [
        (min(ranked), file)
        for file in files
        if file.release.lower() == release and (ranked := rank_file(file, ranks, tags))
    ]
    return min(fitting, key=lambda pair: pair[0])[1] if fitting else None


def rank_file(file: RunFile, ranks: dict[Any, int], tags: Any) -> list[int]:
    """How well each of the wheel's tags fits; none that does is left out."""
    named = "-".join(file.name.removesuffix(".whl").split("-")[-3:])
    return [ranks[tag] for tag in tags.parse_tag(named) if tag in ranks]


# -- their way here ----------------------------------------------------------------------


@dataclass(frozen=True)
class Index:
    """Who serves the files."""

    lists: str
    folder: str | None
    """Where the places of requirements.run.files begin; None where this index has another order."""


def find_index(lists: str, known: RunFile) -> Index:
    """Its folder of files, by the list that has a file whose place is known."""
    ends = f"/{known.place}"
    whole = (address for address in list_files(f"{lists}/{known.package}/") if address.endswith(ends))
    return Index(lists, next((address.removesuffix(ends) for address in whole), None))


def fetch(index: Index, files: Sequence[RunFile], progress: Progress) -> list[Path]:
    """Side by side, the largest first."""
    checksums = set().union(*(read_checksums(ROOT / lock) for lock in (*RUN_LOCKS, INSTALLERS_LOCK)))
    largest_first = sorted(files, key=lambda file: -file.size_bytes)
    for file in largest_first:
        progress.begin(file.package, file.size_bytes / MIB)
    with ThreadPoolExecutor(FETCHERS) as pool:
        return list(pool.map(lambda file: fetch_file(index, file, checksums, progress), largest_first))


def fetch_file(index: Index, file: RunFile, checksums: set[str], progress: Progress) -> Path:
    path = WHEELS / file.name
    path.write_bytes(read_file(index, file, checksums, progress))
    return path


def read_file(index: Index, file: RunFile, checksums: set[str], progress: Progress) -> bytes:
    """From its place; where it is not there, from where the index's list says."""
    if index.folder:
        try:
            return read_wheel(f"{index.folder}/{file.place}", file.package, checksums, progress)
        except FetchFailed:
            pass
    return read_wheel(find_address(index, file), file.package, checksums, progress)


def find_address(index: Index, file: RunFile) -> str:
    page = f"{index.lists}/{file.package}/"
    for address in list_files(page):
        if name_file(address) == file.name:
            return address
    raise FetchFailed(f"{page} has no {file.name}; another package index is set by PIP_INDEX_URL")


def install(pip: Path, environment: dict[str, str], *words: str) -> None:
    """With the given wheel of pip, whatever the machine's own pip is set to."""
    command = [str(VENV / "bin/python"), str(pip / "pip"), "--isolated", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "install", "--no-deps", "--no-cache-dir", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(done.returncode)
    lines = done.stderr.splitlines(keepends=True)
    sys.stderr.writelines(line for line in lines if line.lstrip().startswith("nodescope without"))
