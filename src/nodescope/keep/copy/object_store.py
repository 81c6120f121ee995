"""
An object store, or a folder that is used as one, through Arrow's file systems.

    s3://bucket/path   gs://bucket/path   abfs://container@account.dfs.core.windows.net/path   file:///path

Credentials come from the environment, as each vendor's own tools take them,
and never from the address. An object appears whole or not at all: it is sent
under a staging name, read back, compared, and only then gets its name. A
stream that is merely dropped would be completed by Arrow with what it had.

A folder must have been set up as a store: it has `_store.json`, or a manifest
of ours. Without either it may be the mount point of a store that is away, and
nothing is made there.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.fs as pafs

from nodescope.base.clock import Clock, SystemClock
from nodescope.base.errors import ArchiveRefused, RequestRejected
from nodescope.base.text import hint_nearest
from nodescope.keep.copy import azure
from nodescope.keep.copy.manifest import MANIFEST as MANIFEST_NAME
from nodescope.keep.disk import Disk
from nodescope.keep.folder import STAGING
from nodescope.keep.parquet import first_line

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "file")
# Not every build of Arrow has all of its file systems.
BUILDS = {
    "s3": "S3FileSystem",
    "gs": "GcsFileSystem",
    "gcs": "GcsFileSystem",
    "abfs": "AzureFileSystem",
    "abfss": "AzureFileSystem",
}
# Says that a folder is a store; hidden from Spark and Hive, as manifests are.
MARK = "_store.json"
# One part of an upload at S3 is 10 MiB; a quarter keeps the pace even.
CHUNK_BYTES = 4 * 2**20
# Read at once: a manifest, a sidecar.
OBJECT_BYTES = 64 * 2**20
# A thousand nodes for a year have some 700,000: two files a day. Each takes half a KiB of memory here.
OBJECTS_MOST = 2_000_000
GOOGLE = ("gs", "gcs")
# Longer than a hiccup of the network; a copy is tried again every five minutes anyhow.
RETRY_SECONDS = 20
LONGEST_REASON = 200
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role",
    **dict.fromkeys(("gs", "gcs"), "GOOGLE_APPLICATION_CREDENTIALS, or the machine's service account"),
    **dict.fromkeys(
        azure.SCHEMES,
        "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_CONNECTION_STRING, AZURE_CLIENT_ID ..., or an identity",
    ),
}
_UNKNOWN_USER = re.compile(
    r"(?i)credential|access token|access.?denied|forbidden|unauthor|signature|\b40[13]\b"
)
_SECRET = re.compile("secret|token|password|key|sig")


@dataclass(slots=True)
class UploadPace:
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
    names_container = parts.scheme in azure.SCHEMES and ":" not in parts.netloc.rpartition("@")[0]
    # Arrow would take a client's secret or a token from the query as well.
    asked = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if ("@" in parts.netloc and not names_container) or any(_SECRET.search(name) for name in asked):
        raise RequestRejected(
            f"a {parts.scheme}:// address with credentials in it is not accepted; set them in the environment "
            "(AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_KEY, as the vendor's tools read them)"
        )


def open_store(
    url: str,
    pace: UploadPace | None = None,
    environment: Mapping[str, str] = os.environ,
    silence_seconds: float = RETRY_SECONDS,
) -> "ObjectStore":
    """A request fails when the store has said nothing for so long; it is tried again a few times."""
    check_url(url)
    try:
        files, base = open_files(url, environment)
        files = bound_silence(files, silence_seconds)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RequestRejected(f"{url}: {first_line(error)}") from error
    return ObjectStore(url.rstrip("/"), files, base.rstrip("/"), pace or UploadPace())


def check_build(scheme: str, arrow: object = pafs) -> None:
    kind = BUILDS.get(scheme)
    if kind and not hasattr(arrow, kind):
        raise RequestRejected(
            f"{scheme}:// cannot be opened: this build of pyarrow has no {kind}; "
            "the wheels on PyPI have it (pip install pyarrow)"
        )


def open_files(url: str, environment: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    """Arrow's file system for an address, and the path in it."""
    scheme = urlsplit(url).scheme
    check_build(scheme)
    if scheme in azure.SCHEMES and (account := azure.read_account(environment)):
        place = azure.parse_place(url)
        files = pafs.AzureFileSystem(**azure.file_system_arguments(place, account))
        return files, f"{place.container}/{place.path}"
    files, base = pafs.FileSystem.from_uri(limit_retries(url) if scheme in GOOGLE else url)
    return files, str(base)


def bound_silence(files: pafs.FileSystem, seconds: float) -> pafs.FileSystem:
    """Amazon's client waits for minutes by default, and an address cannot say otherwise."""
    if not hasattr(pafs, "S3FileSystem") or not isinstance(files, pafs.S3FileSystem):
        return files
    # As Arrow itself sends one to another process: everything that the address and the environment said.
    make, (given, *more) = files.__reduce__()
    made: pafs.FileSystem = make({**given, "request_timeout": seconds, "connect_timeout": seconds}, *more)
    return made


def limit_retries(url: str) -> str:
    """Google's client retries for a quarter of an hour by default; we give up sooner."""
    parts = urlsplit(url)
    asked = dict(parse_qsl(parts.query))
    asked.setdefault("retry_limit_seconds", str(RETRY_SECONDS))
    return urlunsplit(parts._replace(query=urlencode(asked)))


@contextmanager
def one_line(scheme: str) -> Iterator[None]:
    """What a vendor's client says in a paragraph, or as an error that is none of Python's, as an OSError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        if scheme == "file":
            raise
        raise OSError(render_reason(str(error), scheme)) from error


def render_reason(text: str, scheme: str) -> str:
    """Its first line, not longer than two on a screen, and the remedy where there is one."""
    line = (text.splitlines() or ["no reason given"])[0]
    short = line if len(line) <= LONGEST_REASON else line[:LONGEST_REASON].rsplit(" ", 1)[0] + " ..."
    if not _UNKNOWN_USER.search(text):
        return short
    return f"{short} (credentials come from the environment: {CREDENTIALS[scheme]})"


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file's content is known by."""

    size: int
    sha256: str


def digest_file(path: Path) -> Digest:
    with path.open("rb") as source:
        return digest_stream(source, UploadPace())


def digest_stream(source: IO[bytes], pace: UploadPace) -> Digest:
    digest = hashlib.sha256()
    size = 0
    while part := source.read(CHUNK_BYTES):
        pace.spend(len(part))
        digest.update(part)
        size += len(part)
    return Digest(size, digest.hexdigest())


class StoreAway(OSError):
    """A folder that is not set up as a store, or whose mount is away."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An object by its listing; its key is relative to the store's address."""

    key: str
    size: int


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Keys are relative to the address it was opened with."""

    url: str
    files: pafs.FileSystem
    base: str
    pace: UploadPace

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def is_local(self) -> bool:
        return isinstance(self.files, pafs.LocalFileSystem)

    def full(self, key: str) -> str:
        return f"{self.base}/{key}" if key else self.base

    # -- reading ----------------------------------------------------------------

    def read(self, key: str) -> bytes | None:
        """A small object; None when there is none."""
        try:
            with one_line(self.scheme), self.files.open_input_file(self.full(key)) as source:
                if source.size() > OBJECT_BYTES:
                    raise ArchiveRefused(f"{key}: larger than {OBJECT_BYTES} bytes, and not one of ours")
                return bytes(source.read())
        except FileNotFoundError:
            return None

    def list(self, key: str = "", *, recursive: bool = True) -> Iterator[Listed]:
        """Objects below a key; nothing below a key that is not there."""
        wanted = pafs.FileSelector(self.full(key), recursive=recursive, allow_not_found=True)
        with one_line(self.scheme):
            found = self.files.get_file_info(wanted)
        if len(found) > OBJECTS_MOST:
            raise OSError(f"{self.full(key)}: more than {OBJECTS_MOST} objects; name a folder that has fewer")
        for one in found:
            if one.type == pafs.FileType.File:
                yield Listed(one.path[len(self.base) + 1 :], one.size)

    def list_folders(self, key: str = "") -> tuple[str, ...]:
        """The folders right below a key, by their own names; a bucket has what its names are cut at."""
        wanted = pafs.FileSelector(self.full(key), allow_not_found=True)
        with one_line(self.scheme):
            found = self.files.get_file_info(wanted)
        return tuple(sorted(one.base_name for one in found if one.type == pafs.FileType.Directory))

    def check_bucket(self) -> None:
        """A listing of a bucket that is not there is as empty as one of a bucket with nothing in it."""
        bucket = self.base.partition("/")[0]
        if self.is_local or not bucket:
            return
        with one_line(self.scheme):
            there = self.files.get_file_info(bucket)
        if there.type == pafs.FileType.NotFound:
            raise OSError(f'there is no bucket "{bucket}", or these credentials may not see it')

    # -- set-up -----------------------------------------------------------------

    def is_set_up(self) -> bool:
        """A bucket is there or it is not; a folder says it by its mark, or by what lies in it."""
        if not self.is_local:
            return True
        base = Path(self.base)
        return (base / MARK).is_file() or any(base.glob(f"dt=*/identifier=*/{MANIFEST_NAME}"))

    def check_set_up(self) -> None:
        if not self.is_set_up():
            raise StoreAway(
                f"{self.url}: no {MARK} there, so it is not mounted, or was never set up as a store "
                "(once: nodescope consolidate --set-up-store)"
            )

    def set_up(self) -> None:
        """Once, by a person."""
        if self.is_local:
            Path(self.base).mkdir(parents=True, exist_ok=True)
        content = {"format": "nodescope-store", "version": 1}
        data = (json.dumps(content) + "\n").encode()
        if self.is_local:
            Disk().write_whole(Path(self.full(MARK)), data)
        else:
            self.write_whole(MARK, data)

    def size(self, key: str) -> int | None:
        with one_line(self.scheme):
            one = self.files.get_file_info(self.full(key))
        return int(one.size) if one.type == pafs.FileType.File else None

    def digest(self, key: str) -> Digest:
        """Read back whole: what the store holds, not what it says it holds."""
        with one_line(self.scheme), self.files.open_input_stream(self.full(key)) as source:
            return digest_stream(source, self.pace)

    # -- writing ----------------------------------------------------------------

    def write_whole(self, key: str, data: bytes) -> None:
        """A small object in one go, new or instead of the old one."""
        self._make_folder(key)
        if not self.is_local:
            with one_line(self.scheme), self.files.open_output_stream(self.full(key)) as output:
                output.write(data)
            return
        Disk().write_whole(Path(self.full(key)), data)

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
        with one_line(self.scheme), self.files.open_output_stream(self.full(staged)) as output:
            while part := source.read(CHUNK_BYTES):
                self.pace.spend(len(part))
                output.write(part)

    def _name(self, staged: str, key: str) -> None:
        self._make_folder(key)
        if self.is_local:
            path = Path(self.full(staged))
            with path.open("rb") as written:
                os.fsync(written.fileno())
            target = Path(self.full(key))
            path.rename(target)
            Disk().sync_folder(target.parent)
            return
        # Done by the server: the new name shows the whole object or nothing.
        with one_line(self.scheme):
            self.files.copy_file(self.full(staged), self.full(key))
        self.delete(staged)

    def delete(self, key: str) -> None:
        """Gone already is as good."""
        with suppress(FileNotFoundError), one_line(self.scheme):
            self.files.delete_file(self.full(key))

    def _make_folder(self, key: str) -> None:
        """A bucket has no folders; some file systems have nothing else."""
        if self.is_local:
            self.check_set_up()
            Path(self.full(key)).parent.mkdir(parents=True, exist_ok=True)
