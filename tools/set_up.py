"""
Installs a lock file into .venv with uv, and says what it does meanwhile: `tools/setup` calls it.

Standard library only, and no venv, pip or compiler: a minimal Debian has Python and nothing beside.
uv comes from the package index as a wheel, which is a zip file, and is checked against
requirements.uv.lock. Lock files have names, versions and checksums; which index serves them is the
machine's own choice (PIP_INDEX_URL, UV_DEFAULT_INDEX, pip.conf), else the public one.
"""

import configparser
import gzip
import hashlib
import html
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
# What each kind of set-up installs. The second has all of the first.
LOCKS = {
    "run": ("requirements.run.lock", "requirements.build.lock"),
    "dev": ("requirements.lock",),
}
UV_LOCK = "requirements.uv.lock"
INDEX = "https://pypi.org/simple"
PIP_FILES = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
FETCH_SECONDS = 60
PIECE_BYTES = 2**20
MIB = 2**20
# Older ones are not tried.
UV_OLDEST = (0, 8)


def main(kind: str) -> int:
    began = time.monotonic()
    environment = make_environment(os.environ, read_pip_conf())
    index = environment["UV_DEFAULT_INDEX"]
    locks = LOCKS[kind]
    packages = len(set().union(*({name for name, _ in list_locked(ROOT / lock)} for lock in locks)))
    say(f"setting up .venv with Python {platform.python_version()} (once): {packages} packages")
    progress = Progress()
    uv = find_uv(index, progress)
    make_venv(uv, environment)
    words = [word for lock in locks for word in ("-r", lock)]
    install(uv, environment, progress, "--no-deps", "--require-hashes", *words)
    say("installing nodescope itself")
    install(uv, environment, progress, "--no-deps", "--no-build-isolation", "-e", ".")
    if uv.is_relative_to(VENV / ".uv"):
        # Who only runs needs it no more, and has its 36 MiB back.
        if kind == "dev":
            uv.replace(VENV / "bin" / "uv")
        shutil.rmtree(uv.parent)
    came = (
        f"{progress.done:.0f} MiB fetched" if progress.done else "nothing was fetched, all was in the cache"
    )
    say(f"set up in {time.monotonic() - began:.0f} s: {came}")
    return 0


def say(text: str) -> None:
    sys.stderr.write(f"nodescope set-up: {text}\n")
    sys.stderr.flush()


def give_up(text: str) -> NoReturn:
    say(text)
    raise SystemExit(1)


def list_locked(lock: Path) -> set[tuple[str, str]]:
    """Names and versions."""
    return set(re.findall(r"^([a-z0-9_.-]+)==(\S+)", lock.read_text(), re.MULTILINE))


def read_checksums(lock: Path) -> set[str]:
    return set(re.findall(r"sha256:([0-9a-f]{64})", lock.read_text()))


# -- where packages come from ------------------------------------------------------------


def make_environment(given: Mapping[str, str], pip: Mapping[str, str]) -> dict[str, str]:
    """uv's: it reads no pip.conf, where a machine behind a mirror has its address."""
    made = dict(given)
    index = given.get("UV_DEFAULT_INDEX") or given.get("UV_INDEX_URL") or given.get("PIP_INDEX_URL")
    made["UV_DEFAULT_INDEX"] = (index or pip.get("index-url") or INDEX).rstrip("/")
    certificates = given.get("PIP_CERT") or pip.get("cert")
    if certificates:
        made.setdefault("SSL_CERT_FILE", certificates)
    # This project's own .venv, whatever else is active in this shell.
    for name in ("VIRTUAL_ENV", "PYTHONPATH"):
        made.pop(name, None)
    return made


def read_pip_conf(paths: Sequence[str] = PIP_FILES) -> dict[str, str]:
    files = configparser.ConfigParser(interpolation=None)
    try:
        files.read(os.path.expanduser(path) for path in paths)
    except configparser.Error:
        return {}
    return dict(files["global"]) if files.has_section("global") else {}


# -- uv itself -------------------------------------------------------------------------


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


def find_uv(index: str, progress: "Progress") -> Path:
    for place in (shutil.which(str(VENV / "bin" / "uv")), shutil.which("uv")):
        if place and is_new_enough(place):
            return Path(place)
    return fetch_uv(index, progress)


def is_new_enough(uv: str) -> bool:
    said = subprocess.run([uv, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= UV_OLDEST


def fetch_uv(index: str, progress: "Progress") -> Path:
    [(name, version)] = list_locked(ROOT / UV_LOCK)
    address = choose_wheel(list_files(f"{index}/{name}/"), f"{name}-{version}", HERE)
    wheel = read_wheel(address, f"{name} {version}", progress)
    if hashlib.sha256(wheel).hexdigest() not in read_checksums(ROOT / UV_LOCK):
        give_up(f"{address} is not the file of {UV_LOCK} (checksum); not used")
    folder = VENV / ".uv"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "uv"
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        inside = next(name for name in files.namelist() if name.endswith("/scripts/uv"))
        path.write_bytes(files.read(inside))
    path.chmod(0o755)
    return path


def list_files(page: str) -> list[str]:
    """The addresses in an index's list of a package's files."""
    links = re.findall(r'<a[^>]+href="([^"]+)"', read_page(page))
    return [urllib.parse.urljoin(page, html.unescape(link)).partition("#")[0] for link in links]


def choose_wheel(addresses: list[str], release: str, machine: Machine) -> str:
    """The wheel for this machine."""
    for address in addresses:
        name = urllib.parse.unquote(address.rpartition("/")[2])
        if name.startswith(f"{release}-") and machine.fits(name):
            return address
    give_up(f"no {release} for {machine.system} on {machine.processor} in the index; install uv yourself")


def open_address(address: str) -> IO[bytes]:
    asked = urllib.request.Request(address, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    try:
        return urllib.request.urlopen(asked, timeout=FETCH_SECONDS)  # type: ignore[no-any-return]
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        give_up(f"{address}: {reason}; another package index is set by PIP_INDEX_URL")


def read_page(address: str) -> str:
    with open_address(address) as answer:
        body = answer.read()
    return (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode()


def read_wheel(address: str, name: str, progress: "Progress") -> bytes:
    with open_address(address) as answer:
        total = int(getattr(answer, "headers", {}).get("Content-Length") or 0)
        progress.begin(name, total / MIB)
        pieces = list(iter(lambda: answer.read(PIECE_BYTES), b""))
        progress.end(name)
    return b"".join(pieces)


# -- .venv -----------------------------------------------------------------------------


def make_venv(uv: Path, environment: dict[str, str]) -> None:
    if works(VENV / "bin" / "python"):
        return
    made = subprocess.run(
        [
            str(uv),
            "venv",
            "--quiet",
            "--allow-existing",
            "--no-project",
            "--python",
            sys.executable,
            str(VENV),
        ],
        env=environment,
        check=False,
    )
    if made.returncode:
        raise SystemExit(made.returncode)


def works(python: Path) -> bool:
    """Whether the interpreter that .venv was made with is still there, and new enough."""
    if not (VENV / "pyvenv.cfg").is_file():
        return False
    look = [str(python), "-c", "import sys; raise SystemExit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(look, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class Progress:
    """What is being fetched, and how much is left: one line that changes, or lines where there is no terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self.open: dict[str, float] = {}
        self.known = self.done = 0.0

    def begin(self, name: str, mebibytes: float) -> None:
        self.open[name] = mebibytes
        self.known += mebibytes
        self.show(f"fetching {name} ({mebibytes:.0f} MiB)")

    def end(self, name: str) -> None:
        self.done += self.open.pop(name, 0.0)
        left = ", ".join(self.open)
        self.show(f"{self.done:.0f} of {self.known:.0f} MiB fetched" + (f"; {left} to come" if left else ""))

    def show(self, text: str) -> None:
        if self.is_terminal:
            sys.stderr.write(f"\r\x1b[K  {text[:100]}" + ("" if self.open else "\n"))
        else:
            sys.stderr.write(f"  {text}\n")
        sys.stderr.flush()


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
