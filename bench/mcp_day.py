"""
Every MCP tool on a day of 100 containers, before and after consolidation: cold, warm, and the server's memory.

The archive is the demo's, 24 h x 100 containers, made once (some minutes): as an
agent leaves it, and consolidated. Cold is the first call of a tool in a new
server, warm are the calls after it. The anchor is DuckDB alone, in the same run:
the mean of memory of every container over the same day, in one query.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from anyio.from_thread import start_blocking_portal
from mcp import Client

from bench.mcp import resident_bytes, started, timed
from bench.prepared import prepare_input
from bench.result import Goal, Options, Row
from nodescope.use.mcp.tools import TOOLS

END = "2026-01-02T00:00:00Z"
HOURS, CONTAINERS = 24, 100
PHASES = ("fresh", "consolidated")
# New servers for each phase, and warm calls in each: a cold day takes seconds.
MOST_ROUNDS, WARM_CALLS = 3, 5
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
}

Call = Callable[[str], None]


def prepare(options: Options) -> Path:
    del options
    return prepare_input("mcp-day", make_day)


def make_day(folder: Path) -> None:
    fresh, merged = (folder / phase for phase in PHASES)
    run_command("demo", "--no-serve", "--data", str(fresh), *list_sizes())
    shutil.copytree(fresh, merged)
    run_command("consolidate", "--once", "--no-retention", "--data", str(merged))


def list_sizes() -> tuple[str, ...]:
    return ("--hours", str(HOURS), "--containers", str(CONTAINERS), "--end", END)


def run_command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "nodescope", *words], check=True, stdout=subprocess.DEVNULL)


def run(options: Options) -> list[Row]:
    day = prepare(options)
    rounds = min(options.rounds, MOST_ROUNDS)
    return [row for phase in PHASES for row in measure_phase(day / phase, phase, rounds)]


def measure_phase(folder: Path, phase: str, rounds: int) -> list[Row]:
    cold: dict[str, list[float]] = {}
    warm: dict[str, list[float]] = {}
    memory = 0.0
    anchor = []
    for _ in range(rounds):
        anchor.append(timed(lambda: read_means(folder)))
        memory = max(memory, ask_all(folder, cold, warm))
    raw = float(np.median(anchor))
    rows = [row for tool in cold for row in render_tool(tool, phase, cold[tool], warm[tool], raw)]
    goal = Goal(MEMORY_BYTES, "ours")
    return [*rows, Row(f"MCP server after all tools, {phase}", memory, "resident", goal=goal)]


def render_tool(tool: str, phase: str, cold: list[float], warm: list[float], raw: float) -> list[Row]:
    return [
        Row(
            f"{tool}, {phase} day, {word}, p95",
            float(np.quantile(seconds, 0.95)),
            "s",
            raw,
            "DuckDB alone, one metric",
            Goal(limit, "ours"),
        )
        for word, seconds, limit in (("cold", cold, COLD_SECONDS), ("warm", warm, WARM_SECONDS))
    ]


def ask_all(folder: Path, cold: dict[str, list[float]], warm: dict[str, list[float]]) -> float:
    """Every tool in one new server; its memory after that."""
    with started("nodescope", "mcp", str(folder), "--port", "0", "--deadline", "120s") as (said, process):
        address = re.search(r"http\S+", said)
        if address is None:
            raise RuntimeError(f"the MCP server did not start: {said}")
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(address.group())) as client,
        ):

            def call(tool: str) -> None:
                result: Any = portal.call(client.call_tool, tool, CALLS[tool])
                if result.is_error:
                    raise RuntimeError(f"{tool}: {result.content[0].text}")

            for tool in (name for name in CALLS if name in TOOLS):
                time_tool(call, tool, cold, warm)
            return resident_bytes(process.pid)


def time_tool(call: Call, tool: str, cold: dict[str, list[float]], warm: dict[str, list[float]]) -> None:
    cold.setdefault(tool, []).append(timed(lambda: call(tool)))
    warm.setdefault(tool, []).extend(timed(lambda: call(tool)) for _ in range(WARM_CALLS))


def read_means(folder: Path) -> None:
    files = [str(path) for path in folder.rglob("*.parquet") if "rollup" not in path.parts]
    duckdb.execute(
        "select l_container_id, avg(value) from read_parquet(?) "
        "where metric_name = 'cgroup.v2.memory.current' group by 1",
        [files],
    ).fetchall()
