"""
What the page asks on a day of 300 containers, and on ten nodes: list, tiles, panels, zooms, heat map, explanations.

The archives are the demo's, made once (many minutes): 24 h x 300 containers,
consolidated as a day-old archive is, and six hours of ten nodes with 30
containers each. Every time is of a question that was not asked before, with files that were: what a
person who zooms waits for. The peak is the viewer's own, VmHWM. The anchor is DuckDB over the same files: the sums
that the answer needs, without rates, names, limits, lives that are joined, or JSON.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.prepared import prepare_input
from bench.result import Goal, Options, Row, median, quantile
from bench.viewer import END, busiest, fetch, running_viewer

CONTAINERS, HOURS = 300, 24
NODES, NODE_CONTAINERS, NODE_HOURS = 10, 30, 6
ZOOMS = 40
PANELS = ("cpu", "memory", "pressure_cpu")
RAW = {
    "cpu": "cgroup.v2.cpu.stat.usage_usec",
    "memory": "cgroup.v2.memory.current",
    "pressure_cpu": "cgroup.v2.cpu.pressure.some.total",
}


def prepare(options: Options) -> tuple[Path, Path]:
    del options
    return prepare_input("demo-large", make_large), prepare_input("demo-ten", make_ten)


def nodescope(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "nodescope", *words], check=True, stdout=subprocess.DEVNULL)


def make_large(folder: Path) -> None:
    data = ("--data", str(folder))
    nodescope(
        "demo", "--no-serve", *data, "--hours", str(HOURS), "--containers", str(CONTAINERS), "--end", END
    )
    nodescope("consolidate", "--once", "--no-retention", *data)


def make_ten(folder: Path) -> None:
    size = ("--hours", str(NODE_HOURS), "--containers", str(NODE_CONTAINERS), "--end", END)
    nodescope("demo", "--no-serve", "--data", str(folder), "--nodes", str(NODES), *size)
    for node in sorted(one for one in folder.iterdir() if one.is_dir()):
        nodescope("consolidate", "--once", "--no-retention", "--data", str(node))


def run(options: Options) -> list[Row]:
    large, ten = prepare(options)
    rows = measure_large(large)
    with running_viewer(ten) as (address, _):
        tiles = time_one(f"{address}/api/summary?range=1h")
        whole = time_one(f"{address}/api/summary?range=all")
    goal = Goal(2.0, "ours")
    return [
        *rows,
        Row("ten nodes: tiles, last hour", tiles, "s", goal=goal, remark="first question about it"),
        Row("ten nodes: tiles, all", whole, "s", goal=goal),
    ]


def measure_large(large: Path) -> list[Row]:
    with running_viewer(large) as (address, pid):
        first, last = span_of(address)
        looks = {what: time_one(f"{address}{path}&range=all") for what, path in QUESTIONS.items()}
        panels = time_all(
            [f"{address}/api/timeseries?metric={one}&range=all&lives=joined&max_points=350" for one in PANELS]
        )
        again = time_one(f"{address}{QUESTIONS['list']}&range=all")
        windows = list(choose_windows(first, last))
        zooms = [time_one(render_zoom(address, *one)) for one in windows]
        ids = busiest(address)
        peak = peak_bytes(pid)
    ask = RawAnswers(large)
    alone = {"list": ask.time_list(), "tiles": ask.time_tiles()}
    raw_panels = sum(ask.time_panel(one, ids, first, last) for one in PANELS)
    raw_zooms = [ask.time_panel(*one[:1], ids, *one[1:]) for one in windows]
    what = f"{HOURS} h x {CONTAINERS}"
    goal, own = Goal(1.5, "ours"), "DuckDB alone"
    goals = {"list": goal, "tiles": goal}
    return [
        *(
            Row(f"{one}, {what}", seconds, "s", alone.get(one), own if one in alone else "", goals.get(one))
            for one, seconds in looks.items()
        ),
        Row(f"three panels, {what}", panels, "s", raw_panels, f"{own}, eight series of each", goal),
        Row("the list again", again, "s", goal=Goal(0.02, "ours"), remark="from memory"),
        Row(
            "zoom to data p95",
            quantile(zooms, 0.95),
            "s",
            quantile(raw_zooms, 0.95),
            f"{own}, eight series that are known",
            Goal(0.25, "ours"),
            f"median {median(zooms) * 1000:.0f} ms; 1 min to 6 h",
        ),
        Row("viewer's peak", peak, "resident", goal=Goal(300 * 2**20, "ours")),
    ]


class RawAnswers:
    """DuckDB over the same files: the sums that a list, tiles or a panel need, and nothing derived, named or sent."""

    def __init__(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute("SET parquet_metadata_cache = true")
        self._files = f"read_parquet('{folder}/dt=*/identifier=*/*.parquet')"
        self._time("SELECT count(*) FROM {files} WHERE metric_name = 'none'")

    def time_list(self) -> float:
        return self._time(
            "SELECT l_container_id, max(value) - min(value) AS used FROM {files} "
            f"WHERE metric_name = '{RAW['cpu']}' GROUP BY 1 ORDER BY 2 DESC"
        )

    def time_tiles(self) -> float:
        """Each minute of three metrics, over all containers."""
        names = ", ".join(f"'{one}'" for one in RAW.values())
        return self._time(
            "SELECT metric_name, time_bucket(INTERVAL 1 MINUTE, time), sum(value), max(value) FROM {files} "
            f"WHERE metric_name IN ({names}) GROUP BY 1, 2"
        )

    def time_panel(self, metric: str, ids: list[str], first: float, last: float) -> float:
        wanted = ", ".join(f"'{one}'" for one in ids)
        width = max(1000, round((last - first) * 1000 / 350))
        return self._time(
            f"SELECT l_container_id, epoch_ms(time) // {width}, min(value), avg(value), max(value) FROM {{files}} "
            f"WHERE metric_name = '{RAW[metric]}' AND l_container_id IN ({wanted}) "
            f"AND epoch_ms(time) BETWEEN {first * 1000:.0f} AND {last * 1000:.0f} GROUP BY 1, 2"
        )

    def _time(self, question: str) -> float:
        start = time.perf_counter()
        self._connection.cursor().sql(question.format(files=self._files)).to_arrow_table()
        return time.perf_counter() - start


QUESTIONS = {
    "list": "/api/containers?metric=cpu&lives=joined&limit=300",
    "tiles": "/api/summary?node=",
    "events": "/api/events?limit=500",
    "heat map of memory": "/api/heat?metric=memory&max_points=240",
    "CPU by namespace": "/api/groups?metric=cpu&group=namespace&max_points=240",
    "incidents": "/api/incidents?most=5",
}


def span_of(address: str) -> tuple[float, float]:
    found = json.loads(fetch(f"{address}/api/instance"))
    return found["from"], found["to"]


def time_one(url: str) -> float:
    start = time.perf_counter()
    fetch(url)
    return time.perf_counter() - start


def time_all(urls: list[str]) -> float:
    return sum(time_one(url) for url in urls)


def choose_windows(first: float, last: float) -> Iterator[tuple[str, float, float]]:
    """A metric, from when, until when: what somebody zooms to, wherever it is."""
    chance = random.Random(7)
    for _ in range(ZOOMS):
        length = chance.choice((60, 300, 900, 3600, 21600))
        start = first + chance.random() * (last - first - length)
        yield chance.choice(PANELS), start, start + length


def render_zoom(address: str, metric: str, first: float, last: float) -> str:
    span = f"from={first:.3f}&to={last:.3f}"
    return f"{address}/api/timeseries?metric={metric}&lives=joined&max_points=350&{span}"


def peak_bytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
