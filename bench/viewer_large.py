"""
What the page asks on a day of 300 containers, and on ten nodes: list, tiles, panels, zooms, heat map, explanations.

The archives are the demo's, made once (many minutes): 24 h x 300 containers,
consolidated as a day-old archive is, and six hours of ten nodes with 30
containers each. Every time is of a question that was not asked before, with files that were: what a
person who zooms waits for. The peak is the viewer's own, VmHWM.
"""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from bench.prepared import prepare_input
from bench.result import Goal, Options, Row, median, quantile
from bench.viewer import END, busiest, fetch, raw_query, running_viewer

CONTAINERS, HOURS = 300, 24
NODES, NODE_CONTAINERS, NODE_HOURS = 10, 30, 6
ZOOMS = 40
PANELS = ("cpu", "memory", "pressure_cpu")


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
        limits = {what: time_one(f"{address}{path}&range=all") for what, path in QUESTIONS.items()}
        panels = time_all(
            [f"{address}/api/timeseries?metric={one}&range=all&lives=joined&max_points=350" for one in PANELS]
        )
        again = time_one(f"{address}{QUESTIONS['list']}&range=all")
        zooms = time_zooms(address, first, last)
        ids = busiest(address)
        peak = peak_bytes(pid)
    raw = raw_query(large, ids, "cgroup.v2.cpu.stat.usage_usec")
    start = time.perf_counter()
    raw()
    alone = time.perf_counter() - start
    what = f"{HOURS} h x {CONTAINERS}"
    goal = Goal(1.5, "ours")
    goals = {"list": goal, "tiles": goal}
    return [
        *(Row(f"{one}, {what}", seconds, "s", goal=goals.get(one)) for one, seconds in limits.items()),
        Row(f"three panels, {what}", panels, "s", alone, "DuckDB alone, 8 series of one metric", goal),
        Row("the list again", again, "s", goal=Goal(0.02, "ours"), remark="from memory"),
        Row(
            "zoom to data p95",
            quantile(zooms, 0.95),
            "s",
            goal=Goal(0.25, "ours"),
            remark=f"median {median(zooms) * 1000:.0f} ms; 1 min to 6 h",
        ),
        Row("viewer's peak", peak, "resident", goal=Goal(300 * 2**20, "ours")),
    ]


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


def time_zooms(address: str, first: float, last: float) -> list[float]:
    """Of one panel: what was zoomed to, wherever it is."""
    chance = random.Random(7)
    found = []
    for _ in range(ZOOMS):
        length = chance.choice((60, 300, 900, 3600, 21600))
        start = first + chance.random() * (last - first - length)
        metric = chance.choice(PANELS)
        found.append(
            time_one(
                f"{address}/api/timeseries?metric={metric}&lives=joined&max_points=350&from={start:.3f}&to={start + length:.3f}"
            )
        )
    return found


def peak_bytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
