"""
Writes requirements.run.files: where the wheels of the run lock lie below the package index's folder of files, and their sizes.

    python -m tools.list_run_files

`make lock` calls it. Wheels of CPython 3.11 to 3.14 for Linux with glibc and for macOS; another machine is set up with
uv, which reads the index's lists. The file has no checksums: those of the lock files count.
"""

import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from tools.set_up.index import (
    FETCH_SECONDS,
    INDEX,
    INSTALLERS_LOCK,
    ROOT,
    RUN_LOCKS,
    list_files,
    list_locked,
    name_file,
)
from tools.set_up.with_pip import RUN_FILES, RunFile, name_release

PYTHONS = ("cp311", "cp312", "cp313", "cp314")
# duckdb has no wheel for musl: with uv it is compiled there.
SYSTEMS = ("manylinux", "macosx")
PROCESSORS = ("x86_64", "aarch64", "arm64", "universal2")
HEAD = (
    "# Written by `make lock`: where the wheels of requirements.run.lock lie on the index, and their bytes.\n"
)
FETCHERS = 8


def main() -> int:
    locked = {pair for lock in RUN_LOCKS for pair in list_locked(ROOT / lock)}
    locked |= {pair for pair in list_locked(ROOT / INSTALLERS_LOCK) if pair[0] == "pip"}
    with ThreadPoolExecutor(FETCHERS) as pool:
        addresses = [address for found in pool.map(list_wheels, sorted(locked)) for address in found]
        files = list(pool.map(measure, addresses))
    RUN_FILES.write_text(HEAD + "".join(f"{file.place} {file.size_bytes}\n" for file in files))
    print(f"{RUN_FILES.name}: {len(files)} wheels of {len(locked)} packages")
    return 0


def list_wheels(locked: tuple[str, str]) -> list[str]:
    release = name_release(*locked)
    addresses = {name_file(address): address for address in list_files(f"{INDEX}/{locked[0]}/")}
    return [
        address
        for name, address in sorted(addresses.items())
        if name.lower().startswith(f"{release}-") and is_for_us(name)
    ]


def is_for_us(name: str) -> bool:
    """A wheel that `make run` may ask for."""
    if not name.endswith(".whl"):
        return False
    python, abi, platform = name.removesuffix(".whl").split("-")[-3:]
    if platform == "any":
        return "py3" in python
    fits_system = any(word in platform for word in SYSTEMS) and any(word in platform for word in PROCESSORS)
    return fits_system and (abi == "abi3" or abi in PYTHONS or abi == "none")


def measure(address: str) -> RunFile:
    asked = urllib.request.Request(address, method="HEAD")
    with urllib.request.urlopen(asked, timeout=FETCH_SECONDS) as answer:
        return RunFile(address.rpartition("/packages/")[2], int(answer.headers["Content-Length"]))


if __name__ == "__main__":
    sys.exit(main())
