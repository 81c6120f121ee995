"""
The archive: bytes per sample, cost of writing, time to answer, merging.

Figures of size come from a recording of a real machine: artifacts/capture.frames
where there is one (`python -m bench.recording artifacts/capture.frames`, ten
minutes), else one that is recorded now, for --seconds. The cost of writing is
also taken of a node of a hundred containers (artifacts/node.frames, or
recorded now): what is done once a segment weighs less there. Each costly step
runs in a process of its own (bench/archive_steps.py), so that its peak memory
is its own. What is asked (a day, a thousand files) is made once and kept.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.archive_steps import DAY_SECONDS, SEGMENT_FRAMES
from bench.prepared import prepare_input
from bench.result import Goal, Options, Row

CAPTURE = Path("artifacts/capture.frames")
NODE = Path("artifacts/node.frames")
NODE_CONTAINERS = 100
DAY_CONTAINERS = 300
PANEL_CONTAINERS = 100
MANY_FILES = 1000
SYNC_SECONDS = 5
MIB = 2**20
Facts = dict[str, Any]


def prepare(options: Options) -> dict[str, Path]:
    """What is asked, by name."""
    del options
    wanted = {"day": DAY_CONTAINERS, "panel": PANEL_CONTAINERS, "many": MANY_FILES}
    return {
        name: prepare_input(
            f"archive-{name}",
            lambda folder, name=name, count=count: call(f"make_{name}", str(folder), str(count)),  # type: ignore[misc]
        )
        for name, count in wanted.items()
    }


def run(options: Options) -> list[Row]:
    kept = prepare(options)
    with workplace() as place:
        capture = find_capture(CAPTURE, place / "capture.frames", round(options.seconds), 24)
        node = find_capture(NODE, place / "node.frames", SEGMENT_FRAMES + 5, NODE_CONTAINERS)
        facts = call("size_up", str(capture), str(place / "data"))
        merged = call("merge", str(place / "data"))
        demo = call("demo_size", str(place / "demo"))
        cost = call("write_cost", str(capture), str(place / "cost"))
        node_cost = call("write_cost", str(node), str(place / "node-cost"))
        call("cut", str(node), str(place / "memory"))
        memory = call("write_memory", str(place / "memory"))
        panel = call("panel", str(kept["panel"]))
        day = call("day_query", str(kept["day"]))
        listing = call("list_files", str(kept["many"]))
    return [
        *size_rows(facts, merged, demo),
        *disk_rows(facts, merged),
        *cost_rows(cost, node_cost, memory, merged),
        *answer_rows(day, panel, listing),
    ]


@contextmanager
def workplace() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="nodescope-bench-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def find_capture(kept: Path, fresh: Path, seconds: int, containers: int) -> Path:
    if kept.exists():
        return kept.absolute()
    words = [sys.executable, "-m", "bench.recording", str(fresh), "--seconds", str(seconds)]
    subprocess.run([*words, "--containers", str(containers)], check=True)
    return fresh


def call(step: str, *arguments: str) -> Facts:
    """A step in a process of its own; its last line is JSON."""
    words = [sys.executable, "-m", "bench.archive_steps", step, *arguments]
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
    result: Facts = json.loads(output.splitlines()[-1])
    return result


def size_rows(facts: Facts, merged: Facts, demo: Facts) -> list[Row]:
    rows = facts["rows"]
    per_day = merged["bytes"] / facts["seconds"] / facts["containers"] * 100 * DAY_SECONDS
    words = (
        f"{facts['containers']:.0f} containers, {facts['seconds']:.0f} s, {rows} samples, sidecars included"
    )
    return [
        Row("archive, fresh", facts["bytes"] / rows, "bytes/sample", goal=Goal(1.2, "ours"), remark=words),
        Row("archive, consolidated", merged["bytes"] / rows, "bytes/sample", goal=Goal(0.6, "ours")),
        Row("the demo, fresh", demo["fresh"] / demo["rows"], "bytes/sample"),
        Row("the demo, consolidated", demo["merged"] / demo["rows"], "bytes/sample"),
        Row("a node-day of 100 containers", per_day / 1e6, "MB", 75.0, "fgm's claim of 50-100 MB"),
        Row("rollups of it", merged["rollup_bytes"] / rows, "bytes/sample"),
    ]


def disk_rows(facts: Facts, merged: Facts) -> list[Row]:
    """One append a tick, one sync every five seconds; then Parquet, fresh and merged twice."""
    seconds = facts["seconds"]
    writes = 1 + facts["writes"] / seconds
    written = facts["log_bytes"] + facts["written_bytes"] + 2 * merged["written_bytes"]
    syncs = 1 / SYNC_SECONDS + facts["syncs"] / seconds
    words = f"{syncs:.2f} syncs/s; log {facts['log_bytes'] / seconds / 1024:.1f} KiB/s of it"
    return [
        Row("disk writes per second", writes, "writes", remark="log and fresh Parquet"),
        Row("bytes written per second", written / seconds, "bytes", remark=words),
    ]


def cost_rows(cost: Facts, node: Facts, memory: Facts, merged: Facts) -> list[Row]:
    bare = "a bare pyarrow write"
    goal = Goal(1.3, "ratio")
    return [
        Row(
            "writing a million samples",
            node["ours"],
            "s",
            node["bare"],
            bare,
            goal,
            f"{NODE_CONTAINERS} containers, {node['rows']} rows a segment, CPU",
        ),
        Row(
            "the same of the small recording",
            cost["ours"],
            "s",
            cost["bare"],
            bare,
            remark=f"{cost['rows']} rows a segment",
        ),
        Row("its extra memory", memory["extra_bytes"], "resident", goal=Goal(64 * MIB, "ours")),
        Row("merging, rows a second", merged["rows"] / merged["seconds"], "rows/s"),
        Row("its peak memory", merged["peak_bytes"], "resident", goal=Goal(256 * MIB, "ours")),
    ]


def answer_rows(day: Facts, panel: Facts, listing: Facts) -> list[Row]:
    one = f"24 h of {DAY_CONTAINERS} containers, {day['points']} points of one"
    many = f"24 h of {PANEL_CONTAINERS} containers"
    quick = Goal(0.15, "ours")

    def row(what: str, facts: Facts, name: str, goal: Goal | None = None, words: str = "") -> Row:
        cpu = f"{facts[name + '_cpu'] * 1e3:.0f} ms of CPU"
        remark = f"{words}; {cpu}" if words else cpu
        anchor = facts.get("raw") if name != "ranking" else None
        return Row(what, facts[name], "s", anchor, "raw DuckDB" if anchor else "", goal, remark)

    return [
        row("one series of a day", day, "ours", quick, one),
        row("its rate", day, "rate"),
        row("the same from samples", day, "samples", quick),
        row("every sample of it", day, "every"),
        row("a panel of eight rates", panel, "minutes", quick, many),
        row("the same from samples", panel, "samples"),
        row("the ten largest by cpu", panel, "ranking", None, many),
        row("catalog of 1,000 files", listing, "listing", Goal(0.1, "ours")),
        row("and every container in them", listing, "containers"),
    ]
