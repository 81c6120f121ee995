"""
Every MCP tool on a day of 100 containers, before and after consolidation: cold, warm, and the server's memory.

The archive is the demo's, 24 h x 100 containers, made once (some minutes): hours
with their rollups and a last quarter of an hour in files of 90 s, as they are while the
day goes on (`fresh`); and the day that is over in one file (`consolidated`). The
same hours without rollups (`bare`) are what others write, and what is left where no
consolidator ran. Cold is the first call of a tool
in a new server, warm are the calls after it. CPU is of the server alone, and
holds on a busy machine as well. The anchor is DuckDB alone, in the same run:
the mean of memory of every container over the same day, in one query.
"""

import compileall
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from anyio.from_thread import start_blocking_portal
from mcp import Client

import nodescope
from bench.mcp import started, timed
from bench.prepared import prepare_input
from bench.result import Goal, Options, Row
from nodescope.keep.folder import DataFolder
from nodescope.use.mcp.tools import TOOLS

END = "2026-01-02T00:00:00Z"
HOURS, CONTAINERS = 24, 100
PHASES = ("fresh", "consolidated", "bare")
# New servers for each phase, and warm calls in each: a cold day takes seconds. On a busy machine
# there are fewer rounds, so that all phases are seen within a quarter of an hour.
MOST_ROUNDS, WARM_CALLS = 3, 3
PHASE_SECONDS = 240.0
COLD_SECONDS, WARM_SECONDS, MEMORY_BYTES = 1.5, 0.3, 300 * 2.0**20
DAY = {"from": "-24h"}
ONE = {"container": "api"}
CALLS: dict[str, dict[str, Any]] = {
    "list_nodes": {},
    "top_containers": {"by": "memory", **DAY},
    "list_containers": {"sort": "memory"},
    "summarize_container": {**ONE, **DAY},
    "analyze_container": {**ONE, "study": "trend", "metric": "memory"},
    "explain_incident": {"at": "-30m", "minutes": 60},
    "compare_windows": {"a_from": "-24h", "a_to": "-12h", "b_from": "-12h", "b_to": "now"},
    "find_metrics": {"question": "who leaks?"},
    "list_metrics": {},
    "scan": {"study": "trend", "metric": "memory"},
    "rightsize": {},
    "summarize_node": {},
    "what_is_wrong": {},
}


@dataclass(frozen=True, slots=True)
class Took:
    """One call."""

    seconds: float
    cpu_seconds: float


Call = Callable[[str], Took]
Calls = dict[str, list[Took]]


def prepare(options: Options) -> Path:
    del options
    return prepare_input("mcp-day", make_day)


def make_day(folder: Path) -> None:
    fresh, merged, bare = (folder / phase for phase in PHASES)
    run_command("demo", "--no-serve", "--data", str(fresh), *list_sizes())
    shutil.copytree(fresh, merged)
    run_command("consolidate", "--once", "--no-retention", "--data", str(merged))
    shutil.copytree(fresh, bare)
    shutil.rmtree(DataFolder(bare).rollup.path)


def list_sizes() -> tuple[str, ...]:
    return ("--hours", str(HOURS), "--containers", str(CONTAINERS), "--end", END)


def run_command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "nodescope", *words], check=True, stdout=subprocess.DEVNULL)


def run(options: Options) -> list[Row]:
    day = prepare(options)
    # An installation has its byte code; a first call would compile what it loads.
    compileall.compile_dir(Path(nodescope.__file__).parent, quiet=1)
    rounds = min(options.rounds, MOST_ROUNDS)
    return [row for phase in PHASES for row in measure_phase(day / phase, phase, rounds)]


def measure_phase(folder: Path, phase: str, rounds: int) -> list[Row]:
    cold: Calls = {}
    warm: Calls = {}
    memory = 0.0
    anchor: list[float] = []
    began = time.monotonic()
    while len(anchor) < rounds and (not anchor or time.monotonic() - began < PHASE_SECONDS):
        anchor.append(timed(lambda: read_means(folder)))
        memory = max(memory, ask_all(folder, cold, warm))
    raw = float(np.median(anchor))
    rows = [row for tool in cold for row in render_tool(tool, phase, cold[tool], warm[tool], raw)]
    goal = Goal(MEMORY_BYTES, "ours")
    many = f"{len(anchor)} servers"
    what = f"MCP server, most memory in all tools, {phase}"
    return [*rows, Row(what, memory, "resident", goal=goal, remark=many)]


def render_tool(tool: str, phase: str, cold: list[Took], warm: list[Took], raw: float) -> Iterator[Row]:
    """Time beside its goal, and the CPU that it took."""
    for word, calls, limit in (("cold", cold, COLD_SECONDS), ("warm", warm, WARM_SECONDS)):
        what = f"{tool}, {phase} day, {word}"
        seconds = float(np.quantile([one.seconds for one in calls], 0.95))
        goal = Goal(limit, "ours")
        yield Row(f"{what}, p95", seconds, "s", raw, "DuckDB alone, one metric", goal)
        yield Row(f"{what}, CPU", float(np.median([one.cpu_seconds for one in calls])), "s")


def ask_all(folder: Path, cold: Calls, warm: Calls) -> float:
    """Every tool in one new server; the most memory that it had."""
    with started("nodescope", "mcp", str(folder), "--port", "0", "--deadline", "120s") as (said, process):
        address = re.search(r"http\S+", said)
        if address is None:
            raise RuntimeError(f"the MCP server did not start: {said}")
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(address.group())) as client,
        ):

            def call(tool: str) -> Took:
                before = read_cpu_seconds(process.pid)
                begun = time.perf_counter()
                result: Any = portal.call(client.call_tool, tool, CALLS[tool])
                if result.is_error:
                    raise RuntimeError(f"{tool}: {result.content[0].text}")
                return Took(time.perf_counter() - begun, read_cpu_seconds(process.pid) - before)

            for tool in (name for name in CALLS if name in TOOLS):
                cold.setdefault(tool, []).append(call(tool))
                warm.setdefault(tool, []).extend(call(tool) for _ in range(WARM_CALLS))
            return read_peak_bytes(process.pid)


def read_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_peak_bytes(pid: int) -> float:
    return float(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) * 1024


def read_means(folder: Path) -> None:
    files = [str(path) for path in folder.rglob("*.parquet") if "rollup" not in path.parts]
    duckdb.execute(
        "select l_container_id, avg(value) from read_parquet(?) "
        "where metric_name = 'cgroup.v2.memory.current' group by 1",
        [files],
    ).fetchall()
