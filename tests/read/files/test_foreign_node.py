"""Files without a sidecar keep their node's name: by their own column, by session.json, by their folder."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.use.mcp.asking import asking

from nodescope.base.unit_guess import NOT_KNOWN
from nodescope.read.files.listing import open_entry
from nodescope.read.files.other_parquet import read_metrics

AT_MS = 1_772_366_400_000


def write_foreign(path: Path, nodes: tuple[str | None, ...], *, statistics: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    count = len(nodes) or 1
    columns = {
        "time": pa.array([AT_MS + place for place in range(count)]).cast(pa.timestamp("ms")),
        "metric_name": pa.array(["cgroup.v2.memory.current"] * count),
        "value": pa.array([1.0] * count),
        "l_container_id": pa.array(["ab" * 32] * count),
    }
    if nodes:
        columns["l_node_name"] = pa.array(nodes, pa.string())
    # Without statistics of this column the rows tell.
    pq.write_table(pa.table(columns), path, write_statistics=True if statistics else ["time"])
    return path


@pytest.mark.parametrize("statistics", [True, False])
def test_the_column_names_the_node(tmp_path: Path, statistics: bool) -> None:
    path = write_foreign(
        tmp_path / "dt=1/identifier=x/a.parquet", ("w-1", "w-1", None), statistics=statistics
    )
    assert open_entry(path).node == "w-1"


@pytest.mark.parametrize("nodes", [(), ("w-1", "w-2"), (None,)])
def test_where_it_does_not_the_folder_does(tmp_path: Path, nodes: tuple[str | None, ...]) -> None:
    path = write_foreign(tmp_path / "dt=1/identifier=x/a.parquet", nodes)
    assert open_entry(path).node == "x"
    assert open_entry(write_foreign(tmp_path / "plain" / "a.parquet", nodes)).node == ""


def test_the_session_names_the_node_of_its_identifier(tmp_path: Path) -> None:
    """An identifier may be a pod's name; one that the session does not know stays as it is."""
    (tmp_path / "session.json").write_text(json.dumps({"identifier": "agent-x2k4p", "node_name": "w-7"}))
    mine = write_foreign(tmp_path / "dt=1/identifier=agent-x2k4p/a.parquet", ())
    other = write_foreign(tmp_path / "dt=1/identifier=agent-bcdf2/a.parquet", ())
    assert [open_entry(path).node for path in (mine, other)] == ["w-7", "agent-bcdf2"]
    (tmp_path / "session.json").write_text("[]")
    assert open_entry(mine).node == "agent-x2k4p"


def test_a_tool_calls_the_node_by_that_name(tmp_path: Path) -> None:
    write_foreign(tmp_path / "dt=2026-03-01/identifier=w-3/a.parquet", ())
    with asking(tmp_path) as asker:
        assert [one["node"] for one in asker.ask("list_nodes")["findings"]] == ["w-3"]


@pytest.mark.parametrize(
    ("total", "names", "scale"),
    [
        (32 * 2.0**20, ("cgroup.v2.memory.current",), (1024.0, 0.01)),
        (32 * 2.0**30, ("cgroup.v2.memory.current",), (None, None)),
        (32 * 2.0**20, (), (None, None)),
    ],
    ids=["kernel's kB", "already bytes", "maybe no Linux"],
)
def test_kilobytes_and_ticks_are_known_where_cgroups_prove_linux(
    tmp_path: Path, total: float, names: tuple[str, ...], scale: tuple[float | None, ...]
) -> None:
    """A number that is a thousand times too large is worse than none: elsewhere the unit stays unknown."""
    rows = [("memory.MemTotal", total), ("cpu.user", 7.0), *((name, 1.0) for name in names)]
    columns = {
        "time": pa.array([AT_MS] * len(rows)).cast(pa.timestamp("ms")),
        "metric_name": pa.array([name for name, _ in rows]),
        "value": pa.array([value for _, value in rows]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found = {one.name: one for one in read_metrics(tmp_path / "a.parquet")}
    for name, wanted in zip(("memory.MemTotal", "cpu.user"), scale, strict=True):
        assert (None if found[name].unit == NOT_KNOWN else found[name].scale) == wanted
