"""
Bytes that cannot change, kept on this machine: sidecars of an object store by their checksum.

A second query of the same fleet fetches no sidecar again. The folder may be
removed at any time. Its size is bounded: the least recently used are removed.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# A sidecar is some 10 to 50 KiB: this holds those of some ten thousand files.
MOST_BYTES = 256 * 2**20


def cache_folder(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or "/tmp", ".cache")  # noqa: S108
    return Path(base, "nodescope", "sidecars")


@dataclass(frozen=True, slots=True)
class SidecarCache:
    """Content by its SHA-256; what does not match its name is fetched anew."""

    folder: Path
    most_bytes: int = MOST_BYTES

    def get(self, sha256: str, fetch: Callable[[], bytes]) -> bytes:
        path = self.folder / sha256
        try:
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() == sha256:
                os.utime(path)
                return data
        except OSError:
            pass
        data = fetch()
        if hashlib.sha256(data).hexdigest() == sha256:
            self._put(path, data)
        return data

    def _put(self, path: Path, data: bytes) -> None:
        """On a full or read-only disk nothing is cached, and the next query fetches again."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.rename(path)

    def prune(self) -> None:
        """Once per command, by the process that started it."""
        with suppress(OSError):
            files = [(one.stat(), one) for one in self.folder.iterdir()]
            total = sum(status.st_size for status, _ in files)
            for status, path in sorted(files, key=lambda one: one[0].st_mtime_ns):
                if total <= self.most_bytes:
                    return
                path.unlink(missing_ok=True)
                total -= status.st_size
