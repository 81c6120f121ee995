"""The page of a cluster over a real S3: the same cells as from folders, and a store that hangs or is not there."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from math import nan
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.cluster_nodes import NodePlan, name_node, write_node
from tests.fleet.conftest import copy_all
from tests.integration.agents import TurnableClock
from tests.s3.server import S3
from tests.use.cluster.fake_nodes import AtOnce
from tests.use.viewer.asking import Asker
from tests.web.browsing import running_viewer

from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.read.files.file_survey import survey_store
from nodescope.read.files.remote_parquet import read_metadata, store_at
from nodescope.read.files.sidecar_cache import SidecarCache
from nodescope.read.files.store_listing import StoreListing
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.cluster.folder_directory import FolderDirectory
from nodescope.use.cluster.gatherer import Gatherer

pytestmark = pytest.mark.real

END_MS = 1_772_366_400_000
MINUTES = 30
# Of the generated nodes: the first has a kill, the second is well.
NUMBERS = (0, 1)
PATIENCE_SECONDS = 60.0
# Before a request fails; a busy machine needs a part of it.
DEADLINE_SECONDS = 2.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    for number in NUMBERS:
        write_node(NodePlan(folder / name_node(number), number, 3, END_MS - MINUTES * 60_000, END_MS))
    return folder


@pytest.fixture(scope="module")
def url(folder: Path, s3: S3) -> str:
    url = f"{s3.make_bucket('page')}/archive"
    for node in sorted(folder.iterdir()):
        assert not copy_all(node, url).failures
    return url


@pytest.fixture
def listing(url: str, tmp_path: Path) -> StoreListing:
    return StoreListing(url, 2, DEADLINE_SECONDS, SystemClock(), SidecarCache(tmp_path / "sidecars"))


def ask_store(asker: Asker, listing: StoreListing) -> Gatherer:
    """The viewer of an asker with a store in place of folders."""
    asker.viewer.folders = NodeFolders([], asker.clock, None, [listing])
    gatherer = Gatherer(FolderDirectory(asker.viewer.folders), asker.clock, DEADLINE_SECONDS, stores=AtOnce())
    asker.viewer.cluster = (gatherer, asker.clock)
    return gatherer


@pytest.fixture
def asker() -> Iterator[Asker]:
    with Asker() as asker:
        asker.clock = TurnableClock(wall=END_MS * 1_000_000)
        yield asker


def wait_for(what: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
    return found


def read_cells(row: dict[str, Any]) -> list[float]:
    return [nan if cell is None else cell for cell in row["cells"]]


def flatten(value: Any) -> Iterator[Any]:
    """Keys, words and numbers of an answer, one after the other."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield key
            yield from flatten(value[key])
    elif isinstance(value, list):
        yield len(value)
        for one in value:
            yield from flatten(one)
    else:
        yield value


def nearly(value: Any) -> Any:
    """Rollups, which a store has none of, keep a mean to 1/65,536 of its minute's span (decision 0109)."""
    return pytest.approx(value, rel=1e-6) if isinstance(value, float) else value


def test_cells_workloads_and_seconds_are_those_of_the_folders(
    asker: Asker, listing: StoreListing, folder: Path
) -> None:
    listing.look()
    ask_store(asker, listing)
    with Asker(folder, clock=asker.clock) as local:
        near = Gatherer(FolderDirectory(local.viewer.folders), asker.clock, 5.0, AtOnce(), AtOnce())
        local.viewer.cluster = (near, asker.clock)
        for measure in ("memory", "cpu", "pressure"):
            asked = {"measure": measure, "range": "all"}
            walls = [one.json("/api/cluster/wall", **asked) for one in (asker, local)]
            rows = [{row["node"]: row for row in wall["nodes"]} for wall in walls]
            assert {row["state"] for row in rows[0].values()} == {"ok"}
            assert sorted(rows[0]) == [name_node(number) for number in NUMBERS]
            for name, row in rows[0].items():
                assert read_cells(row) == pytest.approx(read_cells(rows[1][name]), rel=1e-6, nan_ok=True)
        for path, words in (
            ("/api/cluster/workloads", {"metric": "memory", "range": "all"}),
            ("/api/timeseries", {"node": name_node(0), "metric": "memory", "range": "all"}),
        ):
            first, second = (one.json(path, **words) for one in (asker, local))
            key = "workloads" if "workloads" in first else "series"
            assert first[key]
            assert list(flatten(first[key])) == [nearly(value) for value in flatten(second[key])]


def test_a_folder_here_counts_before_the_store(listing: StoreListing, folder: Path) -> None:
    listing.look()
    clock = TurnableClock(wall=END_MS * 1_000_000)
    folders = NodeFolders([folder / name_node(0)], clock, None, [listing])
    remote = {node.name: bool(node.catalog.entries[0].remote) for node in folders.snapshot().nodes}
    assert remote == {name_node(0): False, name_node(1): True}


def test_only_the_newest_days_are_listed(listing: StoreListing, url: str) -> None:
    """Names of older days are not even asked for."""
    store = store_at(url)
    older = "dt=2020-01-01/identifier=gone"
    store.write_whole(f"{older}/_files.json", b"not a manifest")
    try:
        assert survey_store(store).faults
        newest = survey_store(store, 1)
        assert not newest.faults
        assert {file.node for file in newest.files} == {name_node(number) for number in NUMBERS}
    finally:
        store.delete(f"{older}/_files.json")


@contextlib.contextmanager
def hanging(s3: S3) -> Iterator[None]:
    """Connections are taken, and nothing comes."""
    os.kill(s3.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(s3.process.pid, signal.SIGCONT)


def test_a_store_that_hangs_is_said_of_its_nodes_and_nobody_waits(
    asker: Asker, listing: StoreListing, s3: S3
) -> None:
    listing.look()
    ask_store(asker, listing)
    listing.start()
    wait_for(lambda: not listing._asking_ns)
    with hanging(s3):
        listing.look_again()
        wait_for(lambda: "no answer within 2 s" in listing.reason)
        wall = asker.json("/api/cluster/wall", measure="cpu", range="all")
        assert [(row["state"], row["node"]) for row in wall["nodes"]] == [
            ("away", name_node(number)) for number in NUMBERS
        ]
        assert all(listing.url in row["reason"] for row in wall["nodes"])
    listing.look_again()
    wait_for(lambda: not listing.reason and not listing._asking_ns)

    def ask() -> Any:
        # An answer is kept for 15 s, and a node is asked again after a pause of its own.
        asker.clock.mono += 120 * 10**9
        asker.clock.wall += 120 * 10**9
        found = asker.json("/api/cluster/wall", measure="cpu", range="all")
        return found if {row["state"] for row in found["nodes"]} == {"ok"} else None

    wall = wait_for(ask)
    assert any(cell is not None for cell in wall["nodes"][0]["cells"])


def test_rows_that_do_not_come_are_not_rows_that_are_not_there(
    asker: Asker, listing: StoreListing, s3: S3
) -> None:
    """Listed, and away when its rows are wanted: the node is away, and not empty."""
    listing.look()
    ask_store(asker, listing)
    read_metadata.cache_clear()
    with hanging(s3):
        wall = asker.json("/api/cluster/wall", measure="cpu", range="all")
    assert {row["state"] for row in wall["nodes"]} == {"away"}
    assert all(row["reason"] for row in wall["nodes"])


def test_a_file_that_was_replaced_meanwhile_is_left_out_and_looked_for(
    asker: Asker, listing: StoreListing
) -> None:
    listing.look()
    gone = [entry for entry in listing.entries if entry.node == name_node(0)]
    for entry in gone:
        assert entry.remote is not None
        entry.remote.key = entry.remote.key.replace("metrics-", "metrics-0").replace(
            "consolidated-", "consolidated-0"
        )
    ask_store(asker, listing)
    answer = asker.json("/api/timeseries", node=name_node(0), metric="memory", range="all")
    assert not answer["series"]
    assert listing._wake.is_set()


def test_a_bucket_that_is_not_there_is_said_in_one_line(s3: S3, tmp_path: Path) -> None:
    listing = StoreListing("s3://nobody", 2, 5.0, SystemClock(), SidecarCache(tmp_path))
    directory = FolderDirectory(NodeFolders([], SystemClock(), None, [listing]))
    assert directory.trouble() == "s3://nobody is being listed"
    listing.look()
    assert not directory.entries()
    assert "nobody" in directory.trouble()
    assert "\n" not in directory.trouble()


def test_an_address_with_a_secret_is_refused_without_being_repeated() -> None:
    with pytest.raises(RequestRejected, match="credentials") as refused:
        StoreListing("s3://key:word@bucket/archive", 2, 5.0, SystemClock())
    assert "word" not in str(refused.value)


def test_the_command_shows_the_nodes_of_a_store(url: str, tmp_path: Path) -> None:
    with running_viewer(None, tmp_path / "output", url, "--days", "1") as viewer:

        def ask() -> Any:
            wall = httpx.get(f"{viewer.url}/api/cluster/wall?range=all&measure=cpu", timeout=60).json()
            return wall if wall["nodes"] and all(row["state"] == "ok" for row in wall["nodes"]) else None

        wall = wait_for(ask)
    assert [row["node"] for row in wall["nodes"]] == [name_node(number) for number in NUMBERS]
