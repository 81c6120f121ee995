"""
Lock files, and the index that serves what they name.

Lock files have names, versions and checksums; which index serves them is the machine's own choice
(PIP_INDEX_URL, UV_DEFAULT_INDEX, pip.conf), else the public one.
"""

import configparser
import gzip
import hashlib
import html
import http.client
import os
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from tools.set_up.progress import MIB, Progress

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
INSTALLERS_LOCK = "requirements.installers.lock"
RUN_LOCKS = ("requirements.run.lock", "requirements.build.lock")
INDEX = "https://pypi.org/simple"
PIP_FILES = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
FETCH_SECONDS = 60
PIECE_BYTES = MIB
# Between attempts.
PAUSES_SECONDS = (0.5, 2.0)


class FetchFailed(Exception):
    """A file could not be had from an address; one line."""


def list_locked(lock: Path) -> set[tuple[str, str]]:
    """Names and versions."""
    return set(re.findall(r"^([a-z0-9_.-]+)==(\S+)", lock.read_text(), re.MULTILINE))


def read_checksums(lock: Path) -> set[str]:
    return set(re.findall(r"sha256:([0-9a-f]{64})", lock.read_text()))


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


def is_made(venv: Path = VENV) -> bool:
    """Whether the interpreter that .venv was made with is still there, and new enough."""
    if not (venv / "pyvenv.cfg").is_file():
        return False
    look = [str(venv / "bin" / "python"), "-c", "import sys; raise SystemExit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(look, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def list_files(page: str) -> list[str]:
    """The addresses in an index's list of a package's files."""
    links = re.findall(r'<a[^>]+href="([^"]+)"', read_page(page))
    return [urllib.parse.urljoin(page, html.unescape(link)).partition("#")[0] for link in links]


def name_file(address: str) -> str:
    return urllib.parse.unquote(address.rpartition("/")[2])


def open_address(address: str) -> IO[bytes]:
    asked = urllib.request.Request(address, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    return urllib.request.urlopen(asked, timeout=FETCH_SECONDS)  # type: ignore[no-any-return]


def read_page(address: str) -> str:
    body = read_address(address)
    return (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode()


def read_address(address: str, tell_size: Callable[[float], None] = lambda _: None) -> bytes:
    """FetchFailed after a few attempts."""
    for pause_seconds in (*PAUSES_SECONDS, None):
        try:
            with open_address(address) as answer:
                tell_size(int(getattr(answer, "headers", {}).get("Content-Length") or 0) / MIB)
                return answer.read()
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            if pause_seconds is None or isinstance(error, urllib.error.HTTPError):
                reason = getattr(error, "reason", error)
                raise FetchFailed(
                    f"{address}: {reason}; another package index is set by PIP_INDEX_URL"
                ) from None
            time.sleep(pause_seconds)
    raise AssertionError


def read_wheel(address: str, name: str, checksums: set[str], progress: Progress) -> bytes:
    """Only what a lock file names."""
    wheel = read_address(address, lambda mebibytes: progress.begin(name, mebibytes))
    if hashlib.sha256(wheel).hexdigest() not in checksums:
        raise FetchFailed(f"{address} is not the file of the lock file (checksum); not used")
    progress.end(name)
    return wheel
