"""Many roots at once: names, manifests and sidecars; what is wrong is named, the rest is served."""

import hashlib
import shutil
from pathlib import Path

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import RequestRejected
from nodescope.keep.copy.copier import Copier
from nodescope.keep.copy.manifest import MANIFEST
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.files.file_survey import open_files, survey_again, survey_roots
from nodescope.read.files.sidecar_cache import SidecarCache
from nodescope.read.query.engine import Engine

END_MS = 1_772_366_400_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes of an hour and a bit, and their copy."""
    path = tmp_path_factory.mktemp("roots")
    open_store((path / "store").as_uri()).set_up()
    for node in ("n1", "n2"):
        write_node(DemoRequest(path / "nodes" / node, 1.3, 3, 3, END_MS, node), "0", lambda _: None)
        copier = Copier(
            Disk(),
            DataFolder(path / "nodes" / node),
            open_store((path / "store").as_uri()),
            TurnableClock(END_MS * 1_000_000),
        )
        copier.run_pass(everything=True)
    return path


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "place")
    return tmp_path / "place"


def url_of(place: Path) -> str:
    return (place / "store").as_uri()


def test_a_folder_of_data_folders_is_all_of_its_nodes(place: Path) -> None:
    survey = survey_roots([str(place / "nodes")])
    assert survey.nodes == ["n1", "n2"]
    assert survey.faults == []
    rows = sum(read_catalog([place / "nodes" / node]).rows for node in survey.nodes)
    assert sum(file.rows for file in survey.files) == rows


def test_a_store_serves_what_its_manifests_list(place: Path) -> None:
    """A file that is on its way in, and one that was replaced, are not served."""
    before = survey_roots([url_of(place)])
    partition = next((place / "store").glob("dt=*/identifier=n1"))
    shutil.copy(
        next(partition.glob("*.parquet")),
        partition / "consolidated-20260301T000000Z-20260301T010000Z.parquet",
    )
    after = survey_roots([url_of(place)])
    assert (after.files, after.faults) == (before.files, [])
    assert survey_roots([str(place / "store")]).nodes == before.nodes


def test_the_same_question_has_the_same_answer_from_disk_and_store(place: Path) -> None:
    """Consolidated files only: that is what a store has. Rates, shares and limits."""
    local = [file for file in survey_roots([str(place / "nodes" / "n1")]).files if "consolidated" in file.key]
    there = [file for file in survey_roots([url_of(place)]).files if file.node == "n1"]
    for metric in ("cpu", "memory", "memory_limit", "cpu_throttled", "cpu.load_1m"):
        answers = [
            Engine().query(open_files(files)[0], metric, max_points=90_000) for files in (local, there)
        ]
        lines = [
            [
                (line.subject.identity, line.points.time_ms.tolist(), line.points.mean.tolist())
                for line in one.lines
            ]
            for one in answers
        ]
        assert lines[0]
        assert lines[0] == lines[1]


def test_one_container_of_a_range_is_the_same_as_well(place: Path) -> None:
    local = [file for file in survey_roots([str(place / "nodes" / "n1")]).files if "consolidated" in file.key]
    there = [file for file in survey_roots([url_of(place)]).files if file.node == "n1"]
    catalog = open_files(there)[0]
    container = catalog.containers()[0].label("l_container_id")
    assert container
    found = [
        [
            (line.points.time_ms.tolist(), line.points.mean.tolist())
            for line in Engine()
            .query(open_files(files)[0], "cpu", [container], END_MS - 4_000_000, END_MS - 3_000_000, 90_000)
            .lines
        ]
        for files in (local, there)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_missing_damaged_and_unknown_are_named(place: Path) -> None:
    orphan = next((place / "nodes" / "n1").rglob("consolidated-*.parquet"))
    orphan.with_suffix(".containers").unlink()
    damaged = next((place / "nodes" / "n2").rglob("metrics-*.containers"))
    damaged.write_bytes(b"nothing of ours")
    survey = survey_roots([str(place / "nodes"), str(place / "nowhere")])
    faults = {fault.where: fault.reason for fault in survey.faults}
    assert set(faults) == {str(orphan), str(damaged.with_suffix(".parquet")), str(place / "nowhere")}
    assert "sidecar" in faults[str(orphan)]
    assert survey.nodes == ["n1", "n2"]


def test_a_damaged_manifest_costs_its_partition(place: Path) -> None:
    manifest = next((place / "store").glob(f"dt=*/identifier=n1/{MANIFEST}"))
    manifest.write_bytes(b"{")
    survey = survey_roots([url_of(place)])
    assert survey.nodes == ["n2"]
    assert len(survey.faults) == 1
    assert "manifest" in survey.faults[0].reason


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(RequestRejected, match="accepted: s3://"):
        survey_roots(["http://example.org/data"])


def test_a_replaced_file_is_found_again(place: Path) -> None:
    files = [file for file in survey_roots([url_of(place)]).files if file.node == "n1"]
    assert sorted(survey_again(files), key=lambda one: one.key) == sorted(files, key=lambda one: one.key)
    for path in (place / "store").glob("dt=*/identifier=n1/*.containers"):
        path.unlink()
    with pytest.raises(FileNotFoundError):
        open_files(files)


def test_what_is_cached_is_fetched_once_and_checked(tmp_path: Path) -> None:
    cache = SidecarCache(tmp_path / "cache", most_bytes=150)
    fetched = []

    def fetch() -> bytes:
        fetched.append(1)
        return b"content"

    name = hashlib.sha256(b"content").hexdigest()
    assert [cache.get(name, fetch) for _ in range(3)] == [b"content"] * 3
    assert len(fetched) == 1
    (tmp_path / "cache" / name).write_bytes(b"damaged")
    assert cache.get(name, fetch) == b"content"
    assert len(fetched) == 2
    (tmp_path / "cache" / "old").write_bytes(bytes(200))
    cache.prune()
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 150
