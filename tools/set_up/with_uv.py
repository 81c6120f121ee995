"""
Installs lock files with uv: for tests and tools, and where uv is on the machine already.

uv comes from the package index as a wheel, which is a zip file.
"""

import io
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.set_up.index import (
    INSTALLERS_LOCK,
    ROOT,
    VENV,
    is_made,
    list_files,
    list_locked,
    name_file,
    read_checksums,
    read_wheel,
)
from tools.set_up.progress import Progress, give_up, say

# Older ones are not tried.
UV_OLDEST = (0, 8)


@dataclass(frozen=True)
class Machine:
    """What a wheel's name must fit."""

    system: str
    processor: str
    libc: str = "glibc"

    def fits(self, wheel: str) -> bool:
        if self.system == "Darwin":
            return "macosx" in wheel and f"_{self.processor}" in wheel
        kind = "manylinux" if self.libc == "glibc" else "musllinux"
        return kind in wheel and f"_{self.processor}" in wheel


# musl has no name of its own in platform.libc_ver.
HERE = Machine(platform.system(), platform.machine(), platform.libc_ver()[0])


def find_uv() -> Path | None:
    for place in (shutil.which(str(VENV / "bin" / "uv")), shutil.which("uv")):
        if place and is_new_enough(place):
            return Path(place)
    return None


def is_new_enough(uv: str) -> bool:
    said = subprocess.run([uv, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= UV_OLDEST


def fetch_uv(index: str, progress: Progress) -> Path:
    lock = ROOT / INSTALLERS_LOCK
    release = f"uv-{dict(list_locked(lock))['uv']}"
    address = choose_wheel(list_files(f"{index}/uv/"), release, HERE)
    wheel = read_wheel(address, release, read_checksums(lock), progress)
    folder = VENV / ".uv"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "uv"
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        inside = next(name for name in files.namelist() if name.endswith("/scripts/uv"))
        path.write_bytes(files.read(inside))
    path.chmod(0o755)
    return path


def choose_wheel(addresses: list[str], release: str, machine: Machine) -> str:
    """The wheel for this machine."""
    for address in addresses:
        name = name_file(address)
        if name.startswith(f"{release}-") and machine.fits(name):
            return address
    raise give_up(
        f"no {release} for {machine.system} on {machine.processor} in the index; install uv yourself"
    )


def set_up(
    given: Path | None, kind: str, locks: Iterable[str], environment: dict[str, str], progress: Progress
) -> None:
    """With the uv that is on the machine, or one that is fetched."""
    uv = given or fetch_uv(environment["UV_DEFAULT_INDEX"], progress)
    if not is_made():
        make_venv(uv, environment)
    words = [word for lock in locks for word in ("-r", lock)]
    install(uv, environment, progress, "--no-deps", "--require-hashes", *words)
    say("installing nodescope itself")
    install(uv, environment, progress, "--no-deps", "--no-build-isolation", "-e", ".")
    if given is None:
        # Who only runs needs it no more, and has its 36 MiB back.
        if kind == "dev":
            uv.replace(VENV / "bin" / "uv")
        shutil.rmtree(uv.parent)


def make_venv(uv: Path, environment: dict[str, str]) -> None:
    words = ["venv", "--quiet", "--allow-existing", "--no-project", "--python", sys.executable]
    made = subprocess.run([str(uv), *words, str(VENV)], env=environment, check=False)
    if made.returncode:
        raise SystemExit(made.returncode)


UNITS = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}
BEGINS = re.compile(r"Downloading (\S+) \(([\d.]+)(KiB|MiB|GiB)\)")
ENDS = re.compile(r" Downloaded (\S+)")


def install(uv: Path, environment: dict[str, str], progress: Progress, *words: str) -> None:
    """uv pip install; uv names the files that are large enough to wait for."""
    command = [str(uv), "pip", "install", "--python", str(VENV / "bin" / "python"), *words]
    said = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if found := BEGINS.search(line):
                progress.begin(found[1], float(found[2]) * UNITS[found[3]])
            elif found := ENDS.search(line):
                progress.end(found[1])
            else:
                said.append(line)
    if process.returncode:
        sys.stderr.write("".join(said))
        raise SystemExit(process.returncode)
    # A compiler that is not there is no failure; the hook's own line says what that means.
    sys.stderr.writelines(line for line in said if line.startswith(("nodescope without", "warning")))
