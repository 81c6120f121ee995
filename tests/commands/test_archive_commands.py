"""containers, metrics and export: the answers that the page has, with what is only in the log so far."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.keep.frames import START_NS, A, B, frame_at, frames, write_log

from nodescope.base.clock import SystemClock
from nodescope.base.entity import Entity
from nodescope.base.time_range import TimeRange
from nodescope.cli import main
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.use.answers.metrics import list_metrics
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.viewer.export_data import GROUP_ROWS, Extract, group_tables, write_extract

START = START_NS // 10**9
FILED, LOGGED = 20, 10


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty seconds in a file, ten more in the log."""
    folder = DataFolder(tmp_path_factory.mktemp("commands") / "data")
    write_log(folder, frames(FILED))
    convert_all(Disk(), folder)
    write_log(folder, frames(LOGGED, first=FILED), segment=2)
    return folder.path


def test_containers_are_seen_until_their_last_sample(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["containers", str(data), "--json"]) == 0
    found = {one["container_id"]: one for one in json.loads(capsys.readouterr().out)}
    assert found.keys() == {A.ids[0], B.ids[0]}
    assert {(one["first_seen"], one["last_seen"]) for one in found.values()} == {(START, START + 29)}
    assert found[A.ids[0]]["pod_name"] == "pod-a"
    assert main(["containers", str(data)]) == 0
    assert A.ids[0][:12] in capsys.readouterr().out


def test_metrics_are_those_of_the_page_in_its_order(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", str(data), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    listed = list_metrics(NodeFolders([data], SystemClock()).view().nodes)
    assert [one["name"] for one in found] == [row.name for row in listed]
    kinds = {one["name"]: (one["kind"], one["unit"], one.get("scale")) for one in found}
    assert kinds["cpu"] == ("plain", "cores", None)
    assert kinds["cgroup.v2.cpu.stat.usage_usec"] == ("counter", "seconds", 1e-6)
    assert kinds["cpu.load_1m"] == ("gauge", "count", 1.0)


def test_an_export_of_metrics_has_what_is_only_in_the_log(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.csv"
    assert main(["export", str(data), "--out", str(out), "--metric", "memory", "--metric", "cpu"]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["metric"] for row in rows] == ["memory"] * 60 + ["cpu"] * 58
    memory = [float(row["value"]) for row in rows if row["l_container_id"] == A.ids[0]]
    assert memory[:30] == [4096.0 * number for number in range(30)]
    assert capsys.readouterr().out == f"118 rows in {out}\n"
    assert list(tmp_path.iterdir()) == [out]


def test_the_archives_own_rows_are_those_of_its_files(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    assert main(["export", str(data), "--out", str(out), "--container", "pod-a"]) == 0
    found = pq.read_table(out)
    assert set(found["l_container_id"].to_pylist()) == {A.ids[0]}
    assert found.num_rows == 3 * FILED


def test_a_node_without_containers_has_its_services(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = DataFolder(tmp_path / "data")
    services = tuple(Entity("service", (f"system.slice/{name}.service", "9"), (), ()) for name in "ab")
    write_log(folder, [frame_at(number, services) for number in range(5)])
    convert_all(Disk(), folder)
    assert main(["containers", str(folder.path)]) == 0
    table, sentence = capsys.readouterr().out.split("\n\n")
    _, *rows = table.splitlines()
    assert [row.split()[:4] for row in rows] == [["-", "-", "-", one.ids[0]] for one in services]
    assert sentence.startswith("2 services on node ")
    for more, count in ([], 15), (["--metric", "memory"], 5):
        out = tmp_path / "x.parquet"
        words = ["export", str(folder.path), "--out", str(out), "--container", services[1].ids[0], *more]
        assert main(words) == 0
        assert pq.read_table(out)["l_service"].to_pylist() == [services[1].ids[0]] * count


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_and_the_page_write_the_same_file(data: Path, tmp_path: Path, ending: str) -> None:
    ours, theirs = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    assert main(["export", str(data), "--out", str(ours), "--metric", "memory_limit"]) == 0
    view = NodeFolders([data], SystemClock()).view()
    write_extract(view, Extract(["memory_limit"], None, TimeRange(START * 1000, 2**43)), theirs)
    assert ours.read_bytes() == theirs.read_bytes()
    if ending == "parquet":
        values = pq.read_table(ours).to_pydict()
        # Unlimited is no number, and no zero.
        assert dict(zip(values["l_container_id"], values["value"])) == {A.ids[0]: None, B.ids[0]: 2.0**30}


def test_an_export_that_has_no_rows_leaves_no_file(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--metric", "cpu"]):
        words = ["export", str(data), "--out", str(tmp_path / "x.csv"), "--to", "2020-01-02", *more]
        assert main([*words, "--from", "2020-01-01"]) == 1
        assert capsys.readouterr().err == "nodescope export: there is no data in this range\n"
    assert main(["export", str(data), "--out", str(tmp_path / "x.csv"), "--metric", "memry"]) == 1
    assert 'did you mean "memory"?' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_tables_are_handed_on_before_the_next_ones_are_read() -> None:
    """A month of samples is never held: only as many as one row group has."""
    read = []

    def tables() -> Iterator[pa.Table]:
        for number in range(6):
            read.append(number)
            yield pa.table({"value": pa.nulls(GROUP_ROWS // 2)})

    groups = group_tables(tables())
    assert (next(groups).num_rows, read) == (GROUP_ROWS, [0, 1])
    assert (next(groups).num_rows, read) == (GROUP_ROWS, [0, 1, 2, 3])


def test_an_archive_without_data_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent that has just begun has a session and no sample; a folder that is none of ours is an error."""
    (tmp_path / "session.json").write_text("{}")
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "x.csv")]) == 1
    assert capsys.readouterr().err == f"nodescope export: {tmp_path}: there is no data here yet\n"
    assert main(["containers", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"
