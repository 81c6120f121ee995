"""
`python -m bench [NAME...] [--json]`: runs benches and prints one table.

    python -m bench                     all of them, about a quarter of an hour
    python -m bench tick exposition     the short ones
    python -m bench agent --seconds 60 --containers 100
    python -m bench pod --seconds 600 --containers 100 --markdown
    python -m bench --prepare archive   makes what it measures and is kept; measures nothing
"""

import argparse
import contextlib
import importlib
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from bench.result import Bench, Options, Row, render_markdown, render_table

# Name -> what it measures. The module bench/<name>.py has a function `run`.
BENCHES = {
    "tick": "one tick over 200 containers against the floor of pread in C",
    "reads": "the files of a tick, read by C once a second, beside the agent: what no reader can be cheaper than",
    "processes": "480 processes against psutil",
    "exposition": "12,000 series as text against prometheus_client",
    "archive": "bytes per sample, cost of writing, time to answer, merging",
    "writes": "what the archive of 100 containers writes to its disk, by part; what it keeps of it",
    "fleet": "a fleet's studies a second, workers, bytes fetched, catalog, copy, what is found",
    "viewer": "the viewer's answers over a day of 100 containers, beside DuckDB alone",
    "agent": "the agent's CPU and memory at 1 Hz beside the peers, and without its watcher",
    "beside": "the agent's CPU beside that of an earlier commit (--against), both at once",
    "pod": "the whole pod at 100 containers: CPU, memory, disk, beside its limits, the peers and --against",
    "growth": "what a container costs on nodes with 10 to 1,000 of them, and at the limit of descriptors",
    "lateness": "how late a tick starts while a scrape loop runs",
    "viewer_large": "what the page asks on a day of 300 containers and on ten nodes",
    "viewer_page": "the viewer's page in chromium: first paint, zoom",
    "cluster_page": "the page of 100 nodes x 100 containers in chromium: first paint, zoom, memory",
    "viewer_live": "the heap of the viewer's page over a live tail of --seconds",
    "mcp": "one MCP server in front of 100 viewers: top_containers, memory",
    "incidents": "the incidents of an hour on a node with 100 containers and 500 short jobs",
    "mcp_day": "every MCP tool on a day of 100 containers, before and after consolidation",
    "intake": "the agent's CPU at 1,000 FPGA events a second, beside a bare server of the same stack",
    "hertz": "ten samples a second beside one: CPU, memory, ring, writes, archive, missed ticks",
    "leases": "what a window costs the control plane, at the Node and at a Lease",
    "pod_list": "the extender's memory while it lists 50,000 pods",
    "adapter": "metrics for autoscalers: answers, dead agents, memory at 50,000 pods, cost, load step to scale-up",
    "watcher": "what the watcher finds on generated nodes, when, and what it tells without need",
    "watcher_judge": "the same on nodes of a second generator, weeks of healthy ones included",
    "scheduler_cpu": "the extender's CPU for one FPGA pod at 5,000 nodes",
    "scheduler_pods": "pods/s of a stock scheduler at 500 and 5,000 nodes: alone, with the extender, beside a second one",
    "scheduler_interference": "pods that slow each other down, placed by profiles, by requests, and by who knows all",
    "scheduler": "the extender: pods/s, both verbs at 1,000 nodes, a replay against 1-2-2",
}


def main() -> int:
    arguments = _parser().parse_args()
    # Cgroups are removed on the way out; a plain SIGTERM would skip that.
    signal.signal(signal.SIGTERM, _leave)
    options = Options(tuple(arguments.containers), arguments.seconds, arguments.rounds, arguments.against)
    rows: list[Row] = []
    if arguments.prepare:
        for name in arguments.names or BENCHES:
            getattr(importlib.import_module(f"bench.{name}"), "prepare", lambda _: None)(options)
        return 0
    for name in arguments.names or BENCHES:
        rows += _run(name, options)
    if arguments.json:
        print(json.dumps({"machine": _machine(), "rows": [row.plain() for row in rows]}, indent=1))
    else:
        print(_machine(), render_markdown(rows) if arguments.markdown else render_table(rows), sep="\n\n")
    return 1 if any(row.met is False for row in rows) else 0


def _run(name: str, options: Options) -> list[Row]:
    print(f"bench {name}: {BENCHES[name]}", file=sys.stderr, flush=True)
    start = time.monotonic()
    bench: Bench = importlib.import_module(f"bench.{name}").run
    rows = bench(options)
    print(f"bench {name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n".join(f"  {name:12} {what}" for name, what in BENCHES.items()),
        epilog="Exit code 1: a goal was missed.",
    )
    default = Options()
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], metavar="NAME", help="default: all")
    parser.add_argument("--prepare", action="store_true", help="only make the inputs that are kept")
    parser.add_argument("--json", action="store_true", help="base units, nothing rounded")
    parser.add_argument("--markdown", action="store_true", help="a table for the README")
    parser.add_argument(
        "--seconds", type=float, default=default.seconds, help="length of each run of `agent` and `pod`"
    )
    parser.add_argument("--rounds", type=int, default=default.rounds, help="turns of the short benches")
    parser.add_argument(
        "--against",
        default=default.against,
        metavar="COMMIT",
        help="whose agent `beside`, and whose pod `pod` compares with (there also no-watch: without the watcher)",
    )
    parser.add_argument("--containers", type=int, nargs="+", default=default.containers, metavar="N")
    return parser


def _machine() -> str:
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        model = next(
            (line.split(": ", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    return (
        f"{model} x {os.cpu_count()}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {load}"
    )


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
