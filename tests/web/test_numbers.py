"""Every number on the screen is what DuckDB says of the same Parquet files, and says what it is."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest
from playwright.sync_api import Browser, expect
from tests.web.archives import END_MS, write_demo
from tests.web.browsing import Running, Watched, running_viewer, watching

pytestmark = pytest.mark.real

BYTES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
MEMORY = "metric_name = 'cgroup.v2.memory.current'"
# Three significant figures are shown.
ROUNDED = 0.006


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour with a kill, a crash loop and short lives; a minute and a half are missing, as long again is damaged."""
    folder = write_demo(tmp_path_factory.mktemp("numbers") / "demo")
    files = sorted(folder.glob("dt=*/identifier=*/metrics-*.parquet"))
    files[len(files) // 4].unlink()
    broken = files[len(files) // 2]
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    return folder


@pytest.fixture(scope="module")
def parquet(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """All files that can be read, as a table `samples`."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        whole = []
        for path in sorted(folder.glob("dt=*/identifier=*/*.parquet")):
            try:
                connection.execute(f"SELECT count(*), max(value) FROM read_parquet('{path}')")
            except duckdb.Error:
                continue
            whole.append(str(path))
        connection.execute(
            "CREATE TABLE samples AS SELECT *, l_pod_name || '/' || l_container_name AS name FROM read_parquet(?, union_by_name = true)",
            [whole],
        )
        yield connection


@pytest.fixture(scope="module")
def damaged(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


@pytest.fixture
def screen(browser: Browser, damaged: Running) -> Iterator[Watched]:
    with watching(browser, damaged.url) as watched:
        yield watched


def in_bytes(text: str) -> float:
    found = re.search(r"([\d.]+) (B|KiB|MiB|GiB)\b", text)
    assert found, text
    return float(found[1]) * BYTES[found[2]]


def names(parquet: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """By the name that is shown: the whole one."""
    rows = parquet.execute(
        "SELECT DISTINCT l_container_name, name FROM samples WHERE name IS NOT NULL"
    ).fetchall()
    return dict(rows)


def test_the_list_is_the_mean_of_the_range(screen: Watched, parquet: duckdb.DuckDBPyConnection) -> None:
    page = screen.open("panels=memory&range=all&sort=memory")
    expect(page.locator(".what-list")).to_have_text("memory: mean of the range")
    seconds = list_recorded(parquet)
    known: dict[str, float] = {}
    lives = parquet.execute(
        f"SELECT name, avg(value), epoch(min(time)), epoch(max(time)) FROM samples WHERE {MEMORY} GROUP BY 1, l_container_id"
    ).fetchall()
    for name, mean, first, last in lives:
        known[name] = known.get(name, 0.0) + mean * sum(first <= at <= last for at in seconds)
    whole = names(parquet)
    rows = page.locator(".row").all()
    assert len(rows) == len(known) == 10
    for row in rows:
        name = whole[row.locator(".name").inner_text()]
        assert in_bytes(row.locator(".value").inner_text()) == pytest.approx(
            known[name] / len(seconds), rel=0.01
        ), name


def list_recorded(parquet: duckdb.DuckDBPyConnection) -> list[float]:
    """Every second that has a sample, and those of the damaged file, the later of the two holes: it was recorded, too."""
    times = [
        at for (at,) in parquet.execute("SELECT DISTINCT epoch(time) FROM samples ORDER BY 1").fetchall()
    ]
    _, (before, after) = [(one, two) for one, two in pairwise(times) if two - one > 10]
    return sorted([*times, *(before + step for step in range(1, round(after - before)))])


def test_a_young_agent_is_not_divided_by_the_whole_range(
    screen: Watched, parquet: duckdb.DuckDBPyConnection
) -> None:
    """A range of six hours of an hour's archive: the same figures as of the hour, and the list says of what."""
    page = screen.open(f"panels=memory&sort=memory&from={END_MS // 1000 - 6 * 3600}&to={END_MS // 1000}")
    expect(page.locator(".what-list")).to_have_text("memory: mean of the 58.5 min that were recorded")
    seconds = len(list_recorded(parquet))
    assert seconds == pytest.approx(58.5 * 60, abs=3)
    # Who uses the most was there all the time.
    row = page.locator(".row").first
    (used,) = parquet.execute(
        f"SELECT sum(value) FROM samples WHERE {MEMORY} AND l_container_name = ?",
        [row.locator(".name").inner_text()],
    ).fetchone()  # type: ignore[misc]
    # The damaged file's part is as the rest.
    (there,) = parquet.execute("SELECT count(DISTINCT time) FROM samples").fetchone()  # type: ignore[misc]
    assert in_bytes(row.locator(".value").inner_text()) == pytest.approx(used / there, rel=0.01)


def test_tiles_are_of_the_last_minute(screen: Watched, parquet: duckdb.DuckDBPyConnection) -> None:
    page = screen.open("panels=memory&range=all")
    memory = page.locator(".tile.memory")
    expect(memory.locator(".what")).to_have_text(f"at {minute(END_MS / 1000 - 1)} UTC")
    (used,) = parquet.execute(
        "SELECT avg(total.value - free.value) FROM samples AS total JOIN samples AS free USING (time)"
        " WHERE total.metric_name = 'memory.MemTotal' AND free.metric_name = 'memory.MemAvailable'"
        " AND time > (SELECT max(time) FROM samples) - INTERVAL 60 SECOND"
    ).fetchone()  # type: ignore[misc]
    assert in_bytes(memory.locator(".figure").inner_text()) == pytest.approx(used, rel=ROUNDED)
    (alive,) = parquet.execute(
        f"SELECT count(DISTINCT l_container_id) FROM samples WHERE {MEMORY} AND time = (SELECT max(time) FROM samples)"
    ).fetchone()  # type: ignore[misc]
    assert int(page.locator(".tile.containers .figure").inner_text()) == alive


def minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def test_legend_and_sentence_are_of_the_moment_they_name(
    screen: Watched, parquet: duckdb.DuckDBPyConnection
) -> None:
    """Five minutes are drawn sample by sample: the legend has the last one, the sentence the largest."""
    # A summary is no finding: the sentence is about the picture.
    page = screen.open("panels=memory&range=5m&study=summary")
    (at,) = parquet.execute(f"SELECT epoch(max(time)) FROM samples WHERE {MEMORY}").fetchone()  # type: ignore[misc]
    told = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
    expect(page.locator(".legend .caption")).to_have_text(f"at {told}")
    newest = dict(
        parquet.execute(
            f"SELECT name, arg_max(value, time) FROM samples WHERE {MEMORY} GROUP BY 1"
        ).fetchall()
    )
    whole = names(parquet)
    for line in page.locator(".line").all():
        shown = line.locator(".value").inner_text()
        if not shown.startswith("ended"):
            name = whole[line.locator(".name").inner_text()]
            assert in_bytes(shown) == pytest.approx(newest[name], rel=ROUNDED), name
    most, name, when = parquet.execute(
        f"SELECT max(value), arg_max(l_container_name, value), epoch(arg_max(time, value)) FROM samples"
        f" WHERE {MEMORY} AND time >= to_timestamp({at - 300})"
    ).fetchone()  # type: ignore[misc]
    sentence = page.evaluate("() => document.querySelector('.chart').getAttribute('aria-label')")
    found = re.search(r"peak ([\d.]+ \w+), ([\w-]+), at (\d\d:\d\d:\d\d)", sentence)
    assert found, sentence
    assert in_bytes(found[1]) == pytest.approx(most, rel=ROUNDED)
    assert found[2] == name
    assert found[3] == datetime.fromtimestamp(when, UTC).strftime("%H:%M:%S")


def test_under_the_cursor_stands_the_bucket_that_is_named(
    screen: Watched, parquet: duckdb.DuckDBPyConnection
) -> None:
    page = screen.open("panels=memory&range=all")
    box = screen.plot(0)
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
    caption = page.locator(".legend .caption")
    expect(caption).to_have_text(re.compile(r"at \d\d:\d\d:\d\d, mean of [\d.]+ s"))
    start, width = re.findall(r"at (\d\d:\d\d:\d\d), mean of ([\d.]+) s", caption.inner_text())[0]
    whole = names(parquet)
    for line in page.locator(".line").all()[:3]:
        name = whole[line.locator(".name").inner_text()]
        (mean,) = parquet.execute(
            f"SELECT avg(value) FROM samples WHERE {MEMORY} AND name = ? AND strftime(time, '%H:%M:%S') >= ?"
            f" AND time < (SELECT min(time) FROM samples WHERE strftime(time, '%H:%M:%S') >= ?) + to_seconds({width})",
            [name, start, start],
        ).fetchone()  # type: ignore[misc]
        assert in_bytes(line.locator(".value").inner_text()) == pytest.approx(mean, rel=0.01), name


def test_cpu_in_the_list_is_what_was_used_while_it_was_recorded(
    screen: Watched, parquet: duckdb.DuckDBPyConnection
) -> None:
    """A counter of several lives: what it grew between neighbouring samples; what it grew in a hole is in neither part."""
    page = screen.open("panels=cpu&range=all&sort=cpu")
    whole = names(parquet)
    used = dict(
        parquet.execute(
            "WITH steps AS (SELECT name, value - lag(value) OVER life AS grew, time - lag(time) OVER life AS took"
            " FROM samples WHERE metric_name = 'cgroup.v2.cpu.stat.usage_usec'"
            " WINDOW life AS (PARTITION BY l_container_id ORDER BY time))"
            " SELECT name, sum(grew) / 1e6 FROM steps WHERE took < INTERVAL 10 SECOND GROUP BY 1"
        ).fetchall()
    )
    (seconds,) = parquet.execute("SELECT count(DISTINCT time) FROM samples").fetchone()  # type: ignore[misc]
    rows = page.locator(".row").all()
    assert len(rows) == len(used)
    for row in rows:
        name = whole[row.locator(".name").inner_text()]
        cores = float(row.locator(".value").inner_text().removesuffix(" cores"))
        assert cores == pytest.approx(used[name] / seconds, rel=0.01), name


def test_tooltips_have_the_exact_values(screen: Watched, parquet: duckdb.DuckDBPyConnection) -> None:
    page = screen.open("panels=memory&range=5m&sort=memory&study=summary")
    whole = names(parquet)
    newest, mean = (
        dict(
            parquet.execute(
                f"SELECT name, {what} FROM samples WHERE {MEMORY} AND {when} GROUP BY 1"
            ).fetchall()
        )
        for what, when in (
            ("arg_max(value, time)", "true"),
            ("avg(value)", "time > (SELECT max(time) FROM samples) - INTERVAL 300 SECOND"),
        )
    )
    for line in page.locator(".line").all():
        if not line.locator(".value").inner_text().startswith("ended"):
            name, value = (line.get_attribute("title") or "").split("\n")[:2]
            assert value == f"{newest[name]:.0f} bytes", name
    for row in page.locator(".row").all():
        name = whole[row.locator(".name").inner_text()]
        told = re.search(r"([\d.]+) bytes while there", row.get_attribute("title") or "")
        assert told, name
        assert float(told[1]) == pytest.approx(mean[name], rel=0.005), name


def test_restarts_and_kills_are_those_of_the_files(
    screen: Watched, parquet: duckdb.DuckDBPyConnection
) -> None:
    """In tile, rows, cards and their sentences."""
    page = screen.open("panels=memory&range=all&sort=memory")
    page.locator(".card").first.wait_for()
    whole = names(parquet)
    lives = dict(
        parquet.execute(
            f"SELECT name, count(DISTINCT l_container_id) FROM samples WHERE {MEMORY} GROUP BY 1"
        ).fetchall()
    )
    told: dict[str, int] = {}
    for row in page.locator(".row").all():
        note = row.locator(".under").inner_text()
        found = re.search(r"(\d+) restart", note)
        told[whole[row.locator(".name").inner_text()]] = int(found[1]) if found else int("runs again" in note)
    assert told == {name: count - 1 for name, count in lives.items()}
    tile = page.locator(".tile.containers .counts").inner_text()
    assert re.findall(r"\d+", tile) == [str(sum(told.values())), "1"]
    # Who was killed: the life that ended while another of the same name came after it.
    killed = page.locator(".card.oom_kill")
    (name,) = [name for name in lives if brief(name) == killed.locator(".card-who").inner_text()]
    (ended,) = parquet.execute(
        f"SELECT epoch(min(last)) FROM (SELECT max(time) AS last FROM samples WHERE {MEMORY} AND name = ? GROUP BY l_container_id)",
        [name],
    ).fetchone()  # type: ignore[misc]
    when = re.search(r"at (\d\d:\d\d:\d\d) UTC", killed.inner_text())
    assert when, killed.inner_text()
    assert when[1] in {datetime.fromtimestamp(ended + late, UTC).strftime("%H:%M:%S") for late in range(3)}
    crashed = page.locator(".card.crash_loop")
    (name,) = [name for name in lives if brief(name) == crashed.locator(".card-who").inner_text()]
    assert f"restarted {told[name]} times" in crashed.inner_text()


def brief(name: str) -> str:
    return name.split("/")[1]


def test_what_cannot_be_read_is_said_beside_the_numbers(screen: Watched) -> None:
    page = screen.open("panels=memory&range=all")
    expect(page.locator(".plot .damaged")).to_contain_text("cannot be read")


def test_the_statement_for_duckdb_runs_on_the_folder(
    screen: Watched, folder: Path, parquet: duckdb.DuckDBPyConnection
) -> None:
    """On the files that are whole: what is copied returns the samples of what is drawn."""
    page = screen.open("panels=memory&range=5m")
    page.keyboard.press("e")
    copied = page.locator(".copy", has=page.get_by_role("button", name="DuckDB")).locator("pre").inner_text()
    pattern = "'dt=*/identifier=*/*.parquet'"
    assert pattern in copied
    newest = sorted(folder.glob("dt=*/identifier=*/metrics-*.parquet"))[-2:]
    statement = copied.replace(pattern, "[" + ", ".join(f"'{path}'" for path in newest) + "]")
    # Times as Python objects would need another package: the rest is enough to see that it runs.
    rows = parquet.execute(
        f"SELECT l_container_name, metric_name, value FROM ({statement.rstrip().rstrip(';')})"
    ).fetchall()
    assert len(rows) > 100
    assert {row[0] for row in rows} <= set(names(parquet))
