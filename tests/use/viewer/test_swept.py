"""Every container at once: what changed in a selection, sums of groups, shares of limits; compared with the files."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.use.viewer.archives import END_MS
from tests.use.viewer.asking import Asker

from nodescope.use.answers.swept.sheet import SWEPT

HOUR = {"range": "all"}
START = END_MS / 1000 - 3600
# The encoder is held back by its limit from the 15th minute to the 30th.
HELD_BACK = {"from": str(START + 900), "to": str(START + 1800)}
GROUPS_TS = Path(__file__).parents[3] / "web" / "src" / "groups.ts"


def read_one(parquet: duckdb.DuckDBPyConnection, query: str, *values: object) -> Any:
    (found,) = parquet.execute(query, list(values)).fetchone() or (None,)
    return found


def find_change(answer: dict[str, Any], name: str, metric: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = answer["changes"]
    (found,) = [row for row in rows if row["name"].endswith(f"/{name}") and row["metric"] == metric]
    return found


# -- what changed ----------------------------------------------------------------------


def test_the_largest_changes_of_a_selection_come_first(hour: Asker) -> None:
    answer = hour.json("/api/changes", **HELD_BACK)
    first = answer["changes"][:2]
    assert {row["name"].rpartition("/")[2] for row in first} == {"encoder"}
    assert {row["metric"] for row in first} == {"pressure_cpu", "cpu_throttled"}
    assert "15 min before" in answer["sentence"]
    assert answer["pairs"] > len(answer["changes"])


def test_the_levels_of_a_change_are_those_of_the_files(
    hour: Asker, parquet: duckdb.DuckDBPyConnection
) -> None:
    change = find_change(hour.json("/api/changes", **HELD_BACK), "encoder", "cpu")
    query = """
        SELECT (max(value) - min(value)) / 1e6 / (epoch(max(time)) - epoch(min(time))) FROM samples
        WHERE metric_name = 'cgroup.v2.cpu.stat.usage_usec' AND l_container_name = 'encoder'
        AND epoch(time) BETWEEN ? AND ?
    """
    after = read_one(parquet, query, START + 900, START + 1800)
    before = read_one(parquet, query, START, START + 900)
    assert change["after"] == pytest.approx(after, rel=0.01)
    assert change["before"] == pytest.approx(before, rel=0.01)
    assert len(change["before_curve"]) == len(change["after_curve"])


def test_who_was_not_there_before_is_told_so(hour: Asker) -> None:
    """Absent is not zero."""
    change = find_change(hour.json("/api/changes", **HELD_BACK), "migrator", "memory")
    assert change["before"] is None
    assert set(change["before_curve"]) == {None}
    assert change["sentence"].endswith("it was not there before")


def test_a_quiet_selection_of_few_says_that_nothing_changed(hour: Asker) -> None:
    quiet = {"from": str(START + 300), "to": str(START + 320)}
    answer = hour.json("/api/changes", search="frontend", **quiet)
    assert answer["changes"] == []
    assert answer["containers"] == 1
    assert answer["sentence"].startswith("Nothing changed beyond noise")


def test_a_selection_of_days_is_refused_with_what_is_accepted(hour: Asker) -> None:
    answer = hour.get("/api/changes", params={"from": str(START - 90_000), "to": str(START)})
    assert answer.status_code == 413
    assert "accepted: up to 24 h" in answer.json()["detail"]


# -- sums of groups --------------------------------------------------------------------


def test_the_sum_of_a_namespace_is_that_of_the_files(hour: Asker, parquet: duckdb.DuckDBPyConnection) -> None:
    answer = hour.json("/api/groups", metric="memory", group="namespace", max_points=60, **HOUR)
    assert (answer["bucket_seconds"], answer["join"]) == (60, "sum")
    (shop,) = [one for one in answer["groups"] if one["name"] == "shop"]
    query = """
        SELECT sum(mean) FROM (SELECT avg(value) AS mean FROM samples
        WHERE metric_name = 'cgroup.v2.memory.current' AND l_namespace = 'shop'
        AND epoch(time) >= ? AND epoch(time) < ? GROUP BY l_container_id)
    """
    for place in (5, 20, 50):
        at = answer["time"][place]
        assert shop["mean"][place] == pytest.approx(read_one(parquet, query, at, at + 60), rel=0.02)


def test_the_sums_by_namespace_and_by_workload_are_the_node_s(hour: Asker) -> None:
    sums = []
    for group in ("namespace", "workload", "node"):
        answer = hour.json("/api/groups", metric="cpu", group=group, max_points=60, **HOUR)
        columns = zip(*(one["mean"] for one in answer["groups"]), strict=True)
        sums.append([sum(value or 0 for value in column) for column in columns])
    assert sums[0] == pytest.approx(sums[2], rel=1e-5)
    assert sums[1] == pytest.approx(sums[2], rel=1e-5)


def test_a_crash_loop_counts_by_the_time_that_its_lives_were_there(
    hour: Asker, parquet: duckdb.DuckDBPyConnection
) -> None:
    """Several lives in one step do not add up to more than one container."""
    answer = hour.json(
        "/api/groups", metric="memory", group="workload", search="migrator", max_points=4, **HOUR
    )
    (loop,) = answer["groups"]
    most = read_one(
        parquet,
        "SELECT max(value) FROM samples WHERE metric_name = 'cgroup.v2.memory.current' AND l_container_name = 'migrator'",
    )
    assert max(value or 0 for value in loop["mean"]) <= most


def test_shares_of_time_are_not_added_up(hour: Asker) -> None:
    answer = hour.json("/api/groups", metric="pressure_cpu", group="node", **HOUR)
    assert answer["join"] == "max"
    assert max(value or 0 for value in answer["groups"][0]["mean"]) <= 1


def test_another_metric_or_group_is_refused_with_what_is_accepted(hour: Asker) -> None:
    answer = hour.get("/api/groups", params={"metric": "memory_peak", **HOUR})
    assert answer.status_code == 400
    assert "accepted: cpu, memory" in answer.json()["detail"]
    assert hour.get("/api/groups", params={"group": "colour", **HOUR}).status_code == 422


def test_the_page_groups_what_the_server_can(hour: Asker) -> None:
    (listed,) = re.findall(r"SWEPT: readonly string\[\] = \[(.*?)\]", GROUPS_TS.read_text())
    assert re.findall(r'"(\w+)"', listed) == [one.name for one in SWEPT]


# -- shares of limits ------------------------------------------------------------------


def test_the_heat_map_has_the_killed_one_first_with_its_share_of_the_limit(
    hour: Asker, parquet: duckdb.DuckDBPyConnection
) -> None:
    answer = hour.json("/api/heat", metric="memory", max_points=120, **HOUR)
    first = answer["rows"][0]
    assert first["name"].endswith("/cache")
    assert (first["of"], first["kills"]) == ("limit", 1)
    used, limit = parquet.execute(
        "SELECT max(value) FILTER (metric_name = 'cgroup.v2.memory.current'),"
        " max(value) FILTER (metric_name = 'cgroup.v2.memory.max') FROM samples WHERE l_container_name = 'cache'"
    ).fetchone()  # type: ignore[misc]
    assert first["whole"] == limit
    assert max(value or 0 for value in first["share"]) == pytest.approx(used / limit, abs=0.03)
    assert answer["total"] == len(answer["rows"]) == 10


def test_a_limit_of_cpu_is_quota_by_period(hour: Asker) -> None:
    rows = hour.json("/api/heat", metric="cpu", **HOUR)["rows"]
    encoder = next(row for row in rows if row["name"].endswith("/encoder"))
    assert encoder["whole"] == pytest.approx(0.5)
    assert rows.index(encoder) == 0
    without = next(row for row in rows if row["name"].endswith("/cache"))
    assert (without["of"], without["kills"]) == ("node", 0)


def test_pressure_is_a_share_of_time(hour: Asker) -> None:
    rows = hour.json("/api/heat", metric="pressure_cpu", **HOUR)["rows"]
    assert {row["of"] for row in rows} == {"time"}
