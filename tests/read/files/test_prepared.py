"""Files that were prepared to cost gigabytes are refused before they do; each in a process that may have little."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.keep.frames import frames, write_log
from tests.read.files import crafted

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.convert import convert_all
from nodescope.keep.copy import object_store
from nodescope.keep.copy.manifest import FORMAT, Listing, Manifest, parse_manifest, render_manifest
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.sidecar import parse_sidecar
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine

MEGABYTE = 2**20
# Beyond what the reader has when it has read nothing.
MOST_BYTES = 300 * MEGABYTE
READ = """
import sys
from pathlib import Path
from nodescope.keep.check.verify import list_folder_work
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.files.other_parquet import run
from nodescope.read.query.engine import Engine

def read_peak():
    (peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(peak.split()[1]) * 1024

before = read_peak()
catalog = read_catalog([Path(sys.argv[1])])
reasons = [one.reason for one in catalog.refusals]
try:
    catalog.metrics, catalog.subjects
    for metric in ("cgroup.v2.memory.current", "m"):
        if metric in catalog.metrics:
            reasons += Engine().query(catalog, metric, max_points=2**40).refused
except Exception as error:
    reasons.append(str(error))
reasons += [work.judge().reason for work in list_folder_work(DataFolder(Path(sys.argv[1])))]
print(read_peak() - before)
print(reasons)
"""


def compress_much(start: bytes, fill: bytes, times: int, end: bytes, *, says_size: bool) -> bytes:
    """One frame of zstd that unpacks to gigabytes."""
    packer = zstandard.ZstdCompressor(level=3)
    size = len(start) + times * len(fill) + len(end) if says_size else -1
    writer = packer.compressobj(size=size)
    parts = [writer.compress(start)]
    parts += [writer.compress(fill) for _ in range(times)]
    return b"".join([*parts, writer.compress(end), writer.flush()])


def prepare_sidecar(folder: DataFolder, *, says_size: bool) -> None:
    """Its metrics are 1 GiB of empty lists."""
    bomb = compress_much(b"[", b"[],[]," * 170_000, 1000, b"[]]", says_size=says_size)
    write_prepared(next(iter(folder.files())).sidecar, bomb)


def write_prepared(path: Path, bomb: bytes) -> None:
    """A sidecar whose first part, its metrics, is this."""
    head = {
        "format": "nodescope-sidecar",
        "version": 2,
        "rows": 30,
        "from_ms": 0,
        "to_ms": 2_000_000_000_000,
        "node": "n1",
        "identifier": "n1",
        "segments": {},
        "replaces": [],
        "sizes": [len(bomb), 20, 20, 20],
    }
    packed = zstandard.compress(json.dumps(head).encode())
    path.write_bytes(packed + bomb + bytes(60))
    assert path.stat().st_size < MEGABYTE


SCHEMA = pa.schema([("time", pa.timestamp("ms")), ("metric_name", pa.string()), ("value", pa.float64())])


def prepare_foreign(folder: DataFolder, names: pa.Array, groups: int, *, use_dictionary: bool) -> None:
    """A file without a sidecar, of so many equal row groups."""
    file = next(iter(folder.files()))
    file.sidecar.unlink()
    time = pa.nulls(len(names), pa.int64()).fill_null(1_772_366_340_000).cast(pa.timestamp("ms"))
    table = pa.table([time, names, pa.nulls(len(names), pa.float64()).fill_null(1.0)], SCHEMA)
    with pq.ParquetWriter(file.path, SCHEMA, compression="zstd", use_dictionary=use_dictionary) as writer:
        for _ in range(groups):
            writer.write_table(table)
    assert file.path.stat().st_size < 2 * MEGABYTE


def prepare_rows(folder: DataFolder) -> None:
    """2^27 equal rows."""
    prepare_foreign(folder, pa.array(["m"] * 2**19), 256, use_dictionary=True)


def prepare_texts(folder: DataFolder) -> None:
    """Names that are a gibibyte of one letter."""
    prepare_foreign(folder, pa.array(["m" + "x" * MEGABYTE] * 128), 8, use_dictionary=False)


def replace_file(folder: DataFolder, content: bytes, *, with_sidecar: bool = False) -> None:
    """A file made by hand, as a foreign one, or beside the sidecar of the one that it replaces."""
    file = next(iter(folder.files()))
    file.path.write_bytes(content)
    if not with_sidecar:
        file.sidecar.unlink()
    assert file.path.stat().st_size < 3 * MEGABYTE


def prepare_page(folder: DataFolder) -> None:
    """One page that unpacks to a gibibyte; the footer says a hundred bytes."""
    bomb = compress_much(b"", bytes(MEGABYTE), 1024, b"", says_size=True)
    replace_file(folder, crafted.make_rows(bomb, 2**30))


def prepare_words(folder: DataFolder) -> None:
    """A sidecar of 1 MB whose metrics are short words, each another one."""
    file = next(iter(folder.files()))
    words = b",".join(b'"%x"' % (number * 2_654_435_761 % 2**32) for number in range(2**16))
    bomb = compress_much(b"[", words + b",", 200, b'"x"]', says_size=True)
    bomb += b"\0" * max(0, MEGABYTE // 2 - len(bomb))
    write_prepared(file.sidecar, bomb)


BOMBS: dict[str, Callable[[DataFolder], None]] = {
    "a page": prepare_page,
    "a page that says more than it has": lambda folder: replace_file(
        folder, crafted.make_rows(None, 2**31 - 1)
    ),
    "columns": lambda folder: replace_file(folder, crafted.make_columns(100_000)),
    "fewer columns": lambda folder: replace_file(folder, crafted.make_columns(10_000)),
    "nested columns": lambda folder: replace_file(folder, crafted.make_deep(50_000)),
    "row groups": lambda folder: replace_file(folder, crafted.make_groups(20_000)),
    "words in a sidecar": prepare_words,
    "a sidecar": lambda folder: prepare_sidecar(folder, says_size=True),
    "a sidecar that does not say its size": lambda folder: prepare_sidecar(folder, says_size=False),
    "rows": prepare_rows,
    "texts": prepare_texts,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_prepared_file_is_refused_by_name(tmp_path: Path, bomb: str) -> None:
    folder = DataFolder(tmp_path)
    write_log(folder, frames(5))
    convert_all(Disk(), folder)
    BOMBS[bomb](folder)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder.path)], capture_output=True, text=True, check=True
    )
    peak, reasons = done.stdout.splitlines()
    wanted = ("accepted: up to", "cut short or damaged", "nested", "failed to allocate")
    assert any(words in reasons for words in wanted), reasons
    assert int(peak) < MOST_BYTES


def test_rows_made_by_hand_are_read(tmp_path: Path) -> None:
    """What the prepared files begin with is a file like any other."""
    path = tmp_path / "metrics-20260301T115900Z.parquet"
    path.write_bytes(crafted.make_rows())
    catalog = read_catalog([tmp_path])
    assert not catalog.refusals
    (line,) = Engine().query(catalog, "m", max_points=2**40).lines
    assert line.points.mean.tolist() == [1.0] * 10


def test_deep_json_is_refused_not_a_crash() -> None:
    """A hundred thousand brackets, in a sidecar's head and in a manifest."""
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(ArchiveRefused):
        parse_sidecar(zstandard.compress(deep))
    with pytest.raises(ArchiveRefused):
        parse_manifest(deep)


@pytest.mark.parametrize(
    "changed",
    [
        {"rows": 10**400},
        {"rows": -1},
        {"size": "1"},
        {"to_ms": 1e300},
        {"from_ms": True},
        {"name": "../../dt=2026-03-01/identifier=other/metrics-1.parquet"},
        {"name": "x" * 300 + ".parquet"},
        {"name": "list.json"},
        {"node": ["n1"]},
        {"node": "n" * 100_000},
    ],
    ids=str,
)
def test_a_manifest_of_a_store_says_what_a_copier_would_say(changed: dict[str, object]) -> None:
    """Whoever may write to the bucket: no count beyond reason, no file of another partition."""
    listing = Listing("metrics-1.parquet", 1, "a" * 64, 1, "b" * 64, 1, 1, 2, "n1")
    assert parse_manifest(render_manifest(Manifest({listing.name: listing}))).files == {listing.name: listing}
    row = {**asdict(listing), **changed}
    content = {"format": FORMAT, "version": 1, "files": [row], "gone": []}
    with pytest.raises(ArchiveRefused):
        parse_manifest(json.dumps(content).encode())


def test_a_bucket_with_more_objects_than_any_archive_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "OBJECTS_MOST", 3)
    for number in range(4):
        (tmp_path / f"{number}.parquet").write_bytes(b"")
    store = open_store(tmp_path.as_uri())
    with pytest.raises(OSError, match="more than 3 objects"):
        list(store.list())
    (tmp_path / "0.parquet").unlink()
    assert len(list(store.list())) == 3
