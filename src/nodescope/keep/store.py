"""
An object store, or a folder that is used as one, through Arrow's file systems.

    s3://bucket/path   gs://bucket/path   abfs://container@account.dfs.core.windows.net/path   file:///path

Credentials come from the environment, as each vendor's own tools take them,
and never from the address. An object appears whole or not at all: it is sent
under a staging name, read back, compared, and only then gets its name. A
stream that is merely dropped would be completed by Arrow with what it had.
"""

import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from nodescope.base.clock import Clock, SystemClock
from nodescope.base.errors import ArchiveRefused, RequestRejected
from nodescope.base.text import hint_nearest

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "file")
# One part of an upload at S3 is 10 MiB; a quarter keeps the pace even.
CHUNK_BYTES = 4 * 2**20
STAGING = "_staging"


@dataclass(slots=True)
class Pace:
    """So many bytes a second, both ways; 0 is as fast as it goes."""

    bytes_per_second: int = 0
    clock: Clock = field(default_factory=SystemClock)
    _free_ns: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def spend(self, count: int) -> None:
        """Waits until so many more bytes fit in. A pause is not saved up for later."""
        if not self.bytes_per_second:
            return
        now_ns = self.clock.mono_ns()
        self._free_ns = max(self._free_ns, now_ns) + count * 1_000_000_000 // self.bytes_per_second
        self.clock.wait_until(self._free_ns, self._stop)


def is_url(text: str) -> bool:
    return "://" in text


def check_url(url: str) -> None:
    """Refused without repeating it: an address with a secret in it would be in every log."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise RequestRejected(
            f'"{parts.scheme}://" is not accepted{hint_nearest(parts.scheme, SCHEMES)}; accepted: '
            "s3://, gs://, abfs://, file://"
        )
    names_container = parts.scheme in ("abfs", "abfss") and ":" not in parts.netloc.rpartition("@")[0]
    if "@" in parts.netloc and not names_container:
        raise RequestRejected(
            f"a {parts.scheme}:// address with credentials in it is not accepted; set them in the environment "
            "(AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_... as the vendor's tools read them)"
        )


def open_store(url: str, pace: Pace | None = None) -> "Store":
    check_url(url)
    try:
        files, base = pafs.FileSystem.from_uri(url)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RequestRejected(f"{url}: {str(error).splitlines()[0]}") from error
    return Store(url.rstrip("/"), files, base.rstrip("/"), pace or Pace())


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file's content is known by."""

    size: int
    sha256: str


def digest_file(path: Path) -> Digest:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as source:
        while part := source.read(CHUNK_BYTES):
            digest.update(part)
            size += len(part)
    return Digest(size, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Listed:
    """An object by its listing: key below the base, size, time of change."""

    key: str
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Store:
    """Keys are relative to the address it was opened with."""

    url: str
    files: pafs.FileSystem
    base: str
    pace: Pace

    @property
    def is_local(self) -> bool:
        return isinstance(self.files, pafs.LocalFileSystem)

    def full(self, key: str) -> str:
        return f"{self.base}/{key}" if key else self.base

    # -- reading ----------------------------------------------------------------

    def read(self, key: str) -> bytes | None:
        """A small object; None when there is none."""
        try:
            with self.files.open_input_file(self.full(key)) as source:
                return bytes(source.read())
        except FileNotFoundError:
            return None

    def list(self, key: str = "", *, recursive: bool = True) -> Iterator[Listed]:
        """Objects below a key; nothing below a key that is not there."""
        wanted = pafs.FileSelector(self.full(key), recursive=recursive, allow_not_found=True)
        for one in self.files.get_file_info(wanted):
            if one.type == pafs.FileType.File:
                yield Listed(one.path[len(self.base) + 1 :], one.size, one.mtime_ns or 0)

    def size(self, key: str) -> int | None:
        one = self.files.get_file_info(self.full(key))
        return int(one.size) if one.type == pafs.FileType.File else None

    def digest(self, key: str) -> Digest:
        """Read back whole: what the store holds, not what it says it holds."""
        digest = hashlib.sha256()
        size = 0
        with self.files.open_input_stream(self.full(key)) as source:
            while part := source.read(CHUNK_BYTES):
                self.pace.spend(len(part))
                digest.update(part)
                size += len(part)
        return Digest(size, digest.hexdigest())

    # -- writing ----------------------------------------------------------------

    def write_whole(self, key: str, data: bytes) -> None:
        """A small object in one go, new or instead of the old one."""
        self._make_folder(key)
        if not self.is_local:
            with self.files.open_output_stream(self.full(key)) as output:
                output.write(data)
            return
        path = Path(self.full(key))
        temporary = path.with_name(f".{path.name}.tmp")
        with temporary.open("wb") as output:
            output.write(data)
            output.flush()
            os.fsync(output.fileno())
        temporary.rename(path)
        sync_folder(path.parent)

    def send(self, path: Path, key: str, digest: Digest) -> None:
        """A file under its staging name, read back, and then under its own."""
        staged = f"{STAGING}/{key}"
        self._make_folder(staged)
        with path.open("rb") as source:
            self._upload(source, staged)
        there = self.digest(staged)
        if there != digest:
            self.delete(staged)
            raise ArchiveRefused(
                f"{path.name}: {there.size} bytes with another checksum came back from the store; {digest.size} were sent"
            )
        self._name(staged, key)

    def _upload(self, source: IO[bytes], staged: str) -> None:
        with self.files.open_output_stream(self.full(staged)) as output:
            while part := source.read(CHUNK_BYTES):
                self.pace.spend(len(part))
                output.write(part)

    def _name(self, staged: str, key: str) -> None:
        self._make_folder(key)
        if self.is_local:
            path = Path(self.full(staged))
            with path.open("rb") as written:
                os.fsync(written.fileno())
            path.rename(self.full(key))
            sync_folder(Path(self.full(key)).parent)
            return
        # Done by the server: the new name shows the whole object or nothing.
        self.files.copy_file(self.full(staged), self.full(key))
        self.delete(staged)

    def delete(self, key: str) -> None:
        """Gone already is as good."""
        try:
            self.files.delete_file(self.full(key))
        except FileNotFoundError:
            pass

    def _make_folder(self, key: str) -> None:
        """A bucket has no folders; some file systems have nothing else."""
        if self.is_local:
            Path(self.full(key)).parent.mkdir(parents=True, exist_ok=True)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
