"""A container over all its lives: one row, one curve, one count; filters reach every answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.use.viewer.archives import END_MS, write_demo
from tests.use.viewer.asking import Asker

from nodescope.base.time_range import TimeRange
from nodescope.read.live.tail import LiveTail
from nodescope.use.answers.container_table import Filter
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.overview import read_overview
from nodescope.use.viewer import routes_charts
from nodescope.use.viewer.answer_memory import AnswerMemory
from nodescope.use.viewer.live import LiveListener, follow_lives, status_of

HOUR = {"range": "all"}
LOOP = "migrator"


def one(rows: list[dict[str, Any]], word: str) -> dict[str, Any]:
    (found,) = [row for row in rows if row["name"].endswith(f"/{word}")]
    return found


def test_a_crash_loop_is_one_row_with_its_restarts(hour: Asker, parquet: duckdb.DuckDBPyConnection) -> None:
    answer = hour.json("/api/containers", metric="memory", lives="joined", **HOUR)
    row = one(answer["containers"], LOOP)
    (lives,) = parquet.execute(
        "SELECT count(DISTINCT l_container_id) FROM samples WHERE l_container_name = ?", [LOOP]
    ).fetchone()  # type: ignore[misc]
    assert lives > 2
    assert len(row["lives"]) == lives
    assert row["restarts"] == lives - 1
    assert answer["total"] == len(answer["containers"]) == 10
    assert one(answer["containers"], "cache")["kills"] == 1


def test_a_row_is_the_mean_of_the_range(hour: Asker, parquet: duckdb.DuckDBPyConnection) -> None:
    """Of every container: what its lives used, by how long each was there."""
    answer = hour.json("/api/containers", metric="memory", lives="joined", **HOUR)
    instance = hour.json("/api/instance")
    span = instance["to"] - instance["from"] + 1
    known = parquet.execute(
        "SELECT l_pod_name || '/' || l_container_name, sum(used) FROM (SELECT l_pod_name, l_container_name,"
        " avg(value) * (epoch(max(time)) - epoch(min(time)) + 1) AS used FROM samples"
        " WHERE metric_name = 'cgroup.v2.memory.current' GROUP BY 1, 2, l_container_id) GROUP BY 1"
    ).fetchall()
    assert len(known) == 10
    for name, used in known:
        row = next(row for row in answer["containers"] if row["name"] == name)
        assert row["over_span"] == pytest.approx(used / span, rel=2e-3), name


def test_all_lives_are_one_curve_with_every_sample(hour: Asker, parquet: duckdb.DuckDBPyConnection) -> None:
    row = one(hour.json("/api/containers", lives="joined", **HOUR)["containers"], LOOP)
    query = {"metric": "memory", "lives": "joined", "max_points": 5000, **HOUR}
    # Any of its lives means the whole container.
    for word in (row["lives"][0], row["lives"][-1], row["name"]):
        (series,) = hour.json("/api/timeseries", containers=word, **query)["series"]
        assert series["lives"] == row["lives"]
        assert series["id"] == row["id"]
    samples, least, most = parquet.execute(
        "SELECT count(*), min(value), max(value) FROM samples"
        " WHERE metric_name = 'cgroup.v2.memory.current' AND l_container_name = ?",
        [LOOP],
    ).fetchone()  # type: ignore[misc]
    assert series["samples"] == samples
    measured = [value for value in series["mean"] if value is not None]
    assert (min(measured), max(measured)) == pytest.approx((least, most), rel=1e-6)
    assert series["gaps"]
    assert {gap["reason"] for gap in series["gaps"]} == {
        "it was not running: one life had ended, the next had not begun"
    }


def test_lives_stay_apart_unless_joined(hour: Asker) -> None:
    row = one(hour.json("/api/containers", lives="joined", **HOUR)["containers"], LOOP)
    apart = hour.json("/api/timeseries", metric="memory", containers=row["name"], **HOUR)["series"]
    assert sorted(series["id"] for series in apart) == sorted(row["lives"])
    assert all(series["lives"] == [] for series in apart)


def test_a_filter_reaches_every_answer(hour: Asker) -> None:
    named = {"namespace": "media", **HOUR}
    assert {row["namespace"] for row in hour.json("/api/containers", **named)["containers"]} == {"media"}
    curves = hour.json("/api/timeseries", metric="cpu", lives="joined", **named)["series"]
    assert curves
    assert {series["labels"]["namespace"] for series in curves} == {"media"}
    every = hour.json("/api/events", **HOUR)["events"]
    some = hour.json("/api/events", **named)["events"]
    assert len(some) < len(every)
    ids = {
        life
        for row in hour.json("/api/containers", lives="joined", **named)["containers"]
        for life in row["lives"]
    }
    assert {event["container"] for event in some} <= ids
    tiles = {tile["id"]: tile for tile in hour.json("/api/summary", **named)["tiles"]}
    whole = {tile["id"]: tile for tile in hour.json("/api/summary", **HOUR)["tiles"]}
    assert 0 < tiles["cpu"]["value"] < whole["cpu"]["value"]
    assert tiles["memory"]["value"] < whole["memory"]["value"]
    assert tiles["containers"]["value"] == len(curves)
    assert hour.json("/api/summary", **named)["whose"] == "1 container"


def test_the_server_finds_any_container_however_short_the_list(hour: Asker) -> None:
    """The smallest is beyond the first row, and is found by its name."""
    everybody = hour.json("/api/containers", metric="memory", lives="joined", **HOUR)
    last = everybody["containers"][-1]
    found = hour.json(
        "/api/containers", metric="memory", lives="joined", limit=1, search=last["name"], **HOUR
    )
    assert [row["id"] for row in found["containers"]] == [last["id"]]
    assert hour.json("/api/containers", lives="joined", limit=1, **HOUR)["total"] == 10


def test_letters_in_order_only_where_no_name_has_the_text(hour: Asker) -> None:
    def names(text: str) -> list[str]:
        rows = hour.json("/api/containers", lives="joined", search=text, **HOUR)["containers"]
        return [row["container"] for row in rows]

    assert names("cache") == ["cache"]
    assert names("rprtcron") == ["report-cron"]
    assert names("there is no such thing") == []
    lives = hour.viewer.view().lives()
    assert len(filter_lives(lives, Filter(search="ch"))) < len(lives)


def test_whole_words_come_first(hour: Asker) -> None:
    rows = hour.json("/api/containers", metric="memory", lives="joined", search="ca", **HOUR)["containers"]
    begins = [any(word.startswith("ca") for word in row["name"].replace("/", "-").split("-")) for row in rows]
    assert begins == sorted(begins, reverse=True)


def test_filters_count_containers_and_not_lives(hour: Asker) -> None:
    filters = hour.json("/api/filters")
    assert sum(row["count"] for row in filters["namespaces"]) == 10
    assert [row["count"] for row in filters["nodes"]] == [10]


def test_the_curve_of_all_containers_is_what_they_used(
    hour: Asker, parquet: duckdb.DuckDBPyConnection
) -> None:
    """A job of seconds counts for seconds: the mean of the tile's curve is the use of the range."""
    tile = next(one for one in hour.json("/api/summary", **HOUR)["tiles"] if one["id"] == "cpu")
    (used,) = parquet.execute(
        "SELECT sum(used) / 1e6 FROM (SELECT max(value) - min(value) AS used FROM samples"
        " WHERE metric_name = 'cgroup.v2.cpu.stat.usage_usec' GROUP BY l_container_id)"
    ).fetchone()  # type: ignore[misc]
    curve = [value for value in tile["spark"] if value is not None]
    assert sum(curve) / len(curve) == pytest.approx(used / 3600, rel=0.02)


def test_a_figure_at_the_end_is_the_mean_of_its_minute(
    hour: Asker, parquet: duckdb.DuckDBPyConnection
) -> None:
    answer = hour.json("/api/summary", **HOUR)
    tiles = {tile["id"]: tile for tile in answer["tiles"]}
    assert answer["at"] == hour.json("/api/instance")["to"]
    minute = f"time > to_timestamp({answer['at'] - 60}) AND time <= to_timestamp({answer['at']})"
    (used,) = parquet.execute(
        f"SELECT avg(total.value - free.value) FROM samples AS total JOIN samples AS free USING (time)"
        f" WHERE total.metric_name = 'memory.MemTotal' AND free.metric_name = 'memory.MemAvailable' AND {minute}"
    ).fetchone()  # type: ignore[misc]
    assert tiles["memory"]["value"] == pytest.approx(used, rel=1e-6)
    (cpu,) = parquet.execute(
        f"SELECT sum(rate) / 1e6 FROM (SELECT (max(value) - min(value)) / (epoch(max(time)) - epoch(min(time))) AS rate"
        f" FROM samples WHERE metric_name = 'cgroup.v2.cpu.stat.usage_usec' AND {minute}"
        f" GROUP BY l_container_id HAVING count(*) > 50)"
    ).fetchone()  # type: ignore[misc]
    assert tiles["cpu"]["value"] == pytest.approx(cpu, rel=0.03)


def test_pressure_now_is_not_that_of_a_life_that_is_gone(
    hour: Asker, parquet: duckdb.DuckDBPyConnection
) -> None:
    """The killed life waited for memory until it ended; what is told of it is a peak, with its time."""
    view = hour.viewer.view()
    (life,) = [one for one in view.lives() if one.container_name == "cache" and one.last_ms < END_MS - 60_000]
    span = TimeRange(life.last_ms - 600_000, END_MS - 1)
    named = Filter(search="cache")
    tile = next(one for one in read_overview(view, span, named).tiles if one.id == "pressure")
    assert tile.curve.value is not None
    assert tile.peak is not None
    assert tile.peak.resource == "memory"
    assert tile.curve.value < 0.2 * tile.peak.value
    at, most = parquet.execute(
        "SELECT epoch_ms(arg_max(time, rate)), max(rate) FROM (SELECT time, (value - lag(value) OVER win) / 1e6"
        " / (epoch(time) - epoch(lag(time) OVER win)) AS rate FROM samples"
        " WHERE metric_name = 'cgroup.v2.memory.pressure.some.total' AND l_container_id = ?"
        " WINDOW win AS (ORDER BY time))",
        [life.id],
    ).fetchone()  # type: ignore[misc]
    assert tile.peak.value == pytest.approx(most, rel=1e-3)
    assert tile.peak.from_ms <= at <= tile.peak.to_ms


def test_the_same_question_is_answered_from_memory(hour: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"metric": "cpu", "max_points": "77", **HOUR}
    first = hour.json("/api/timeseries", **query)

    def refuse(*_: object) -> None:
        raise AssertionError("asked the archive again")

    monkeypatch.setattr(routes_charts, "read_timeseries", refuse)
    assert hour.json("/api/timeseries", **query) == first
    with pytest.raises(AssertionError, match="asked the archive again"):
        hour.json("/api/timeseries", **{**query, "max_points": "78"})


def test_the_memory_of_answers_is_bounded() -> None:
    memory = AnswerMemory(bytes_most=100)
    for name in "abc":
        memory.keep(name, name.encode() * 40)
    assert memory.find("a") is None
    assert memory.find("b") == b"b" * 40
    memory.keep("d", b"d" * 40)
    assert memory.find("c") is None, "the one that was asked for longest ago makes room"
    memory.keep("e", b"e" * 101)
    assert memory.find("e") is None


def test_a_live_tail_follows_a_container_into_its_next_life(hour: Asker) -> None:
    view = hour.viewer.view()
    lives = sorted((one for one in view.lives() if one.container_name == LOOP), key=lambda one: one.first_ms)
    listener = LiveListener(("cpu",), (lives[0],), "")
    (node,) = (replace(one) for one in view.nodes)
    node.__dict__["recent"] = LiveTail(subjects={lives[-1].subject.identity: lives[-1].subject})
    view = replace(view, nodes=(node,))
    assert [one.id for one in follow_lives(view, listener)] == [lives[-1].id]
    assert listener.asked == {lives[-1].id: lives[0].id}
    assert "subjects" not in node.__dict__, "the archive was looked through, for every second of every page"


def test_the_status_says_when_the_newest_sample_was(hour: Asker) -> None:
    """A page whose containers are all gone moves on by it."""
    snapshot = hour.viewer.view().snapshot
    assert snapshot.to_ms is not None
    assert status_of(snapshot, None)["at"] == snapshot.to_ms / 1000


def test_a_damaged_file_is_told_where_its_time_is_asked_for(tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", containers=4)
    files = sorted(folder.glob("dt=*/identifier=*/*.parquet"))
    broken = files[len(files) // 2]
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    with Asker(folder) as asker:
        answer = asker.json("/api/timeseries", metric="memory", lives="joined", range="all")
        told = [*answer["refused"], *(gap["reason"] for one in answer["series"] for gap in one["gaps"])]
    assert any("cannot be read" in line or broken.name in line for line in told), told
