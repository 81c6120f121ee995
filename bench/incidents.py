"""
How long the incidents of an hour take on a node with 100 containers and 500 short jobs, and the memory for it.

Cold is the first answer of a new process, its imports not counted: the viewer and the MCP
server have them. The anchor reads one metric of the same hour with the engine.

    python -m bench.incidents FOLDER      one cold answer: prints seconds and resident bytes
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from tools.incidents.archive import write_archive
from tools.incidents.stories import generate

from bench.prepared import prepare_input
from bench.result import Goal, Options, Row
from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.snapshots import NodeFolders

SEED = 1
HOUR_MS = 3_600_000
MOST_ROUNDS = 7
GOALS = {"cold": 1.5, "resident": 300 * 2.0**20}


def prepare(_: Options) -> Path:
    def make(folder: Path) -> None:
        write_archive(generate(SEED, "churning", "cpu", step_seconds=1.0), folder / "node")

    return prepare_input("incidents", make) / "node"


def run(options: Options) -> list[Row]:
    folder = prepare(options)
    rounds = [measure_apart(folder) for _ in range(min(options.rounds, MOST_ROUNDS))]
    what = "incidents of an hour, 100 containers and 500 short jobs"
    anchor = float(np.median([one["anchor"] for one in rounds]))
    return [
        Row(
            f"{what}, cold, p95",
            float(np.quantile([one["cold"] for one in rounds], 0.95)),
            "s",
            anchor,
            "one metric of the same hour",
            Goal(GOALS["cold"], "ours"),
        ),
        Row(
            f"{what}, again",
            float(np.median([one["again"] for one in rounds])),
            "s",
            anchor,
            "one metric of the same hour",
        ),
        Row(
            f"{what}: memory of the process",
            max(one["resident"] for one in rounds),
            "resident",
            goal=Goal(GOALS["resident"], "ours"),
        ),
    ]


def measure_apart(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.incidents", str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


def measure(folder: Path) -> dict[str, float]:
    view = NodeFolders([folder], SystemClock()).view()
    newest_ms = view.snapshot.to_ms or 0
    span = TimeRange(newest_ms - HOUR_MS, newest_ms)
    found = {}
    for name in ("cold", "again"):
        begun = time.perf_counter()
        list_incidents(view, span)
        found[name] = time.perf_counter() - begun
    status = Path("/proc/self/status").read_text()
    found["resident"] = float(status.split("VmHWM:")[1].split()[0]) * 1024
    begun = time.perf_counter()
    view.query(view.nodes[0], "memory", None, span, 720)
    found["anchor"] = time.perf_counter() - begun
    return found


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
