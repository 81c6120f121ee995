"""
The page of a cluster in a real chromium: first useful paint, zoom, memory; 100 nodes x 100 containers.

All nodes are behind real viewers over HTTP: eight processes, each in front of
a part of the folders, because a hundred viewers do not fit on one machine
beside a browser. The cluster's viewer asks every node by its name, as it asks
a hundred of them. In a cluster each node answers with cores of its own; here
all of it shares this machine's.

First useful paint is from the navigation to the frame in which every node has
its row with its cells. The page is measured as people meet it, over a viewer
that runs (its answers are kept up to date while somebody looks), and once
cold: the viewers have read nothing yet. The anchor is an empty page of the same
server. Zoom is from the wheel's event to the frame in which the cells of
the new range have come from the server. Its anchor is DuckDB alone, in memory, without a server and a browser:
the same cells as a table of minutes, of which it gives the same columns of the same ranges.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import httpx
import pyarrow as pa
from playwright.sync_api import Browser, Page

from bench.cluster_nodes import name_node, write_cluster
from bench.prepared import prepare_input
from bench.result import Goal, Options, Row, median, quantile
from bench.viewer_page import running_browser, time_blank, with_page

NODES = 100
CONTAINERS = 100
HOURS = 3.0
END_MS = 1_772_366_400_000
VIEWERS = 8
PAINTS = 7
ZOOMS = 40

WHEN_USEFUL = """nodes => {
    const look = () => {
        if (document.querySelectorAll('.wnode.hurt, .wnode.calm').length >= nodes) window.useful = performance.now();
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
# From the wheel to the frame that draws the cells of the new range. The list of resources is emptied before: a
# browser notes the first 250 and no more. A zoom that asks nothing (the range cannot become shorter) is null.
ZOOM = """async factor => {
    const axis = document.querySelector('.axis');
    const box = axis.getBoundingClientRect();
    const answered = () => performance.getEntriesByType('resource').some(one => one.name.includes('/api/cluster/wall') && one.startTime >= start && one.responseEnd > 0);
    performance.clearResourceTimings();
    const start = performance.now();
    axis.dispatchEvent(new WheelEvent('wheel', {bubbles: true, cancelable: true, deltaY: factor, clientX: box.left + box.width * 0.4, clientY: box.top + 4}));
    while (!answered()) {
        if (performance.now() - start > 30000) return null;
        await new Promise(done => setTimeout(done, 1));
    }
    await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - start;
}"""
COLUMNS = 180


def prepare(_: Options) -> Path:
    return prepare_input(
        "cluster-page", lambda folder: write_cluster(folder, NODES, CONTAINERS, HOURS, END_MS)
    )


def run(options: Options) -> list[Row]:
    folder = prepare(options)
    with running_cluster(folder) as (url, process), running_browser() as browser:
        cold = time_wall(browser, url)
        paints = [time_wall(browser, url) for _ in range(PAINTS)]
        blanks = [time_blank(browser, url) for _ in range(PAINTS)]
        zooms = time_zooms(browser, url)
        alone = time_duckdb(url)
        resident = resident_bytes(process.pid)
    what = f"{NODES} nodes x {CONTAINERS} containers"
    return [
        Row(
            f"cluster page: first useful paint, {what}",
            median(paints),
            "s",
            median(blanks),
            "an empty page",
            Goal(1.5, "ours"),
            f"worst {max(paints):.2f} s; cold, {VIEWERS} viewers of all nodes included, {cold:.1f} s",
        ),
        Row(
            f"cluster page: zoom to new cells p95, {what}",
            quantile(zooms, 0.95),
            "s",
            quantile(alone, 0.95),
            "DuckDB in memory, the same cells",
            Goal(0.15, "ours"),
            f"median {median(zooms) * 1000:.0f} ms, {len(zooms)} zooms",
        ),
        Row("cluster page: memory of the cluster's viewer after it", resident, "resident"),
    ]


@contextmanager
def running_cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    names = [name_node(number) for number in range(NODES)]
    with ExitStack() as stack:
        flags = []
        for part in range(VIEWERS):
            mine = names[part::VIEWERS]
            url, _ = stack.enter_context(started(*(str(folder / name) for name in mine)))
            flags += [word for name in mine for word in ("--viewer", f"{name}={url}")]
        yield stack.enter_context(started("--deadline", "60s", *flags))


@contextmanager
def started(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "nodescope", "viewer", "--port", "0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline() if process.stdout else ""
        address = re.search(r"http\S+", said)
        if address is None:
            raise RuntimeError(f"a viewer did not start: {said}")
        yield address.group(), process
    finally:
        process.terminate()
        process.wait()


def time_wall(browser: Browser, url: str) -> float:
    def look(page: Page) -> float:
        page.add_init_script(f"({WHEN_USEFUL})({NODES})")
        page.goto(f"{url}/cluster")
        return float(page.wait_for_function("() => window.useful", timeout=120_000).json_value()) / 1000

    return with_page(browser, look)


def time_zooms(browser: Browser, url: str) -> list[float]:
    def look(page: Page) -> list[float]:
        page.add_init_script(f"({WHEN_USEFUL})({NODES})")
        page.goto(f"{url}/cluster")
        page.wait_for_function("() => window.useful", timeout=120_000)
        page.wait_for_load_state("networkidle", timeout=60_000)
        found = []
        for number in range(ZOOMS):
            # In for a while, then out again, as a person does.
            taken = page.evaluate(ZOOM, -100 if number % 10 < 5 else 100)
            if taken is None:
                raise RuntimeError(f"zoom {number + 1} of {ZOOMS} asked for nothing within 30 s")
            found.append(float(taken) / 1000)
            page.wait_for_timeout(50)
        return found

    return with_page(browser, look)


def time_duckdb(url: str) -> list[float]:
    """As many ranges as were zoomed to, each in and out again: the largest minute of each column, of every node."""
    wall = httpx.get(f"{url}/api/cluster/wall?columns={COLUMNS}", timeout=120).raise_for_status().json()
    start, step = wall["start"], wall["step"]
    rows = [
        (row["node"], start + place * step, value)
        for row in wall["nodes"]
        for place, value in enumerate(row["cells"])
        if value is not None
    ]
    connection = duckdb.connect()
    connection.execute("create table cells (node varchar, moment double, cpu double)")
    columns = {name: list(values) for name, values in zip(("node", "moment", "cpu"), zip(*rows, strict=True))}
    table = pa.table(columns)
    connection.register("given", table)
    connection.execute("insert into cells select * from given")
    ask = (
        "select node, floor((moment - ?) / ?) as place, max(cpu) from cells "
        "where moment >= ? and moment < ? group by all order by node, place"
    )
    found = []
    length, end = wall["to"] - wall["from"], wall["to"]
    for number in range(ZOOMS):
        wide = length * 0.8 ** (number % 10 if number % 10 < 5 else 10 - number % 10)
        begun = time.perf_counter()
        connection.execute(ask, [end - wide, wide / COLUMNS, end - wide, end]).fetchall()
        found.append(time.perf_counter() - begun)
    return found


def resident_bytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return float(found.group(1)) * 1024 if found else 0.0
