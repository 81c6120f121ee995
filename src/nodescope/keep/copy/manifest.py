"""
The manifest of a partition in an object store: which of its objects are served.

    dt=.../identifier=.../_files.json
    {"format": "nodescope-files", "version": 1,
     "files": [{"name", "size", "sha256", "sidecar_size", "sidecar_sha256",
                "rows", "from_ms", "to_ms", "node"}, ...],
     "gone": [names that a file above replaces],
     "sum": checksum of all of this (check/seal.py)}

One object, replaced in one go: that is the commit. A reader that follows it sees
the hours or the day made of them, never both and never neither. The leading
underscore keeps it out of the way of Spark, Hive and pyarrow.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.check.seal import seal_json, unseal_json
from nodescope.keep.folder import PARQUET, SIDECAR

MANIFEST = "_files.json"
FORMAT = "nodescope-files"
VERSION = 1
# Of any count, size or time in it: above this JSON's numbers are not whole any more.
NUMBER_MOST = 2**53
NAME_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class Listing:
    """One file that is served, with all that a catalog needs of it."""

    name: str
    size: int
    sha256: str
    sidecar_size: int
    sidecar_sha256: str
    rows: int
    from_ms: int
    to_ms: int
    node: str

    @property
    def sidecar(self) -> str:
        return self.name.removesuffix(PARQUET) + SIDECAR


@dataclass(slots=True)
class Manifest:
    """A partition's files by name."""

    files: dict[str, Listing] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def replace(self, listing: Listing, replaces: tuple[str, ...]) -> None:
        """The new file in, those it was made of out."""
        leaving = {name for name in replaces if name in self.files}
        self.files = {name: one for name, one in self.files.items() if name not in leaving}
        self.files[listing.name] = listing
        self.gone = (self.gone | leaving) - {listing.name}


def render_manifest(manifest: Manifest) -> bytes:
    files = [asdict(one) for one in sorted(manifest.files.values(), key=lambda one: one.from_ms)]
    content = {"format": FORMAT, "version": VERSION, "files": files, "gone": sorted(manifest.gone)}
    return seal_json(content)


def parse_listing(row: Mapping[str, Any]) -> Listing:
    """Whoever can write to a store writes its manifests: what no copier would write is refused."""
    listing = Listing(**{key: row[key] for key in Listing.__dataclass_fields__})
    numbers: tuple[Any, ...] = (
        listing.size,
        listing.sidecar_size,
        listing.rows,
        listing.from_ms,
        listing.to_ms,
    )
    if not all(type(number) is int and abs(number) <= NUMBER_MOST for number in numbers):
        raise ValueError("a number that is none")
    texts: tuple[object, ...] = (listing.name, listing.sha256, listing.sidecar_sha256, listing.node)
    if not all(isinstance(text, str) and len(text) <= NAME_CHARACTERS for text in texts):
        raise ValueError("a name that is none")
    if min(numbers[:3]) < 0 or "/" in listing.name or not listing.name.endswith(PARQUET):
        raise ValueError("a file that is none")
    return listing


def parse_manifest(data: bytes) -> Manifest:
    try:
        content: Mapping[str, Any] = json.loads(unseal_json(data).data)
        if content["format"] != FORMAT:
            raise ArchiveRefused("not a manifest of ours")
        if content["version"] > VERSION:
            raise ArchiveRefused(
                f"manifest of version {content['version']}; this build reads up to {VERSION}"
            )
        rows = [parse_listing(row) for row in content["files"]]
        return Manifest({row.name: row for row in rows}, set(content["gone"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveRefused("a manifest that is cut short or damaged") from error
