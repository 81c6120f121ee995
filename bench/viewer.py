"""
The viewer's API on a day of 100 containers: one panel, the list, the first view, idle memory.

The archive is the demo's, 24 h x 100 containers, made once (some minutes) and
consolidated, as a day-old archive is: it then has its minutes, too. The anchor of the panel is DuckDB alone over the same files: the
same eight series fetched with one query, and nothing derived, downsampled or sent.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.prepared import prepare_input
from bench.result import Goal, Options, Row, median

END = "2026-01-02T00:00:00Z"
SERIES = 8
ROUNDS = 7
SETTLE_SECONDS = 5.0


def prepare(options: Options) -> Path:
    del options
    return prepare_input("demo-day", make_demo)


def run(options: Options) -> list[Row]:
    demo = prepare(options)
    with running_viewer(demo) as (address, pid):
        idle = resident_bytes(pid)
        ids = busiest(address)
        panel = f"{address}/api/timeseries?metric=cpu&containers={','.join(ids)}&range=all&max_points=1000"
        first, ours = clock_cold(panel), clock(lambda: fetch(panel))
        memory = clock(lambda: fetch(panel.replace("metric=cpu", "metric=memory")))
        tag = tag_of(panel)
        again = clock(lambda: unchanged(panel, tag))
        listing = clock(lambda: fetch(f"{address}/api/containers?metric=cpu"))
        tiles = clock(lambda: fetch(f"{address}/api/summary"))
        sent = len(fetch(panel))
        used = resident_bytes(pid)
    raw_cpu = clock(raw_query(demo, ids, "cgroup.v2.cpu.stat.usage_usec"))
    raw_memory = clock(raw_query(demo, ids, "cgroup.v2.memory.current"))
    words = f"{SERIES} series, 24 h, 100 containers, {sent / 1024:.0f} KiB of JSON"
    against = "DuckDB alone"
    return [
        Row("panel of cpu over a day", ours, "s", raw_cpu, against, Goal(0.150, "ours"), words),
        Row("panel of memory over a day", memory, "s", raw_memory, against, Goal(0.150, "ours")),
        Row("the same, first time", first, "s", remark="files not seen before"),
        Row("the same, unchanged (304)", again, "s"),
        Row("list of containers, last hour", listing, "s", remark="ranked, with sparklines"),
        Row("tiles, last hour", tiles, "s"),
        Row("viewer, idle", idle, "resident"),
        Row("viewer, after these", used, "resident"),
    ]


def make_demo(folder: Path) -> None:
    data = ("--data", str(folder))
    for words in (
        ("demo", "--no-serve", *data, "--hours", "24", "--containers", "100", "--end", END),
        ("consolidate", "--once", "--no-retention", *data),
    ):
        subprocess.run([sys.executable, "-m", "nodescope", *words], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def running_viewer(demo: Path) -> Iterator[tuple[str, int]]:
    words = [sys.executable, "-m", "nodescope", "viewer", str(demo), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        fetch(f"{address}/api/instance")
        time.sleep(SETTLE_SECONDS)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait()


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        body: bytes = answer.read()
        return body


def tag_of(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.headers["ETag"])


def unchanged(url: str, tag: str) -> None:
    """Asks again with the tag of the answer before."""
    request = urllib.request.Request(url, headers={"If-None-Match": tag})
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        if error.code != 304:
            raise


def busiest(address: str) -> list[str]:
    found: dict[str, Any] = json.loads(fetch(f"{address}/api/containers?metric=cpu&limit={SERIES}"))
    return [one["id"] for one in found["containers"]]


def raw_query(demo: Path, ids: list[str], metric: str) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET parquet_metadata_cache = true")
    wanted = ", ".join(f"'{one}'" for one in ids)
    question = (
        f"SELECT epoch_ms(time), value, l_container_id FROM read_parquet('{demo}/dt=*/identifier=*/*.parquet') "
        f"WHERE metric_name = '{metric}' AND l_container_id IN ({wanted})"
    )
    return lambda: connection.cursor().sql(question).to_arrow_table()


def clock_cold(url: str) -> float:
    start = time.perf_counter()
    fetch(url)
    return time.perf_counter() - start


def clock(work: Callable[[], object]) -> float:
    """The median of some rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return median(found)


def resident_bytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
