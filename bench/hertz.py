"""
Ten samples a second beside one: what the agent costs, how much of its ring, log and archive is taken, and what is missed.

    python -m bench hertz --containers 10 100 --seconds 130

For each number of containers the agent runs three times, one after the other on the same
cgroups: once a second, ten times with as much of a core as it wants, and ten times within
the usual budget (5 % of a core), which slows the costly tables and says which. Below 130 s
the ring is not full yet. The archive is what the log of the run becomes, by the time it covers.
A busy machine misses ticks: CPU, writes and archive are extended to what all ticks would have cost.
"""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.peers.servers import free_port

from bench.agent import WARM_UP_SECONDS
from bench.node import PROCESSES, containers
from bench.pod import (
    DAY_SECONDS,
    NODESCOPE,
    Reading,
    Tree,
    ask_until,
    await_answer,
    data_folder,
    end,
    read_proportional,
    started,
)
from bench.result import Options, Row

WHOLE_CORE = ("--budget-ratio", "1")
FAST = ("--interval", "0.1s")


@dataclass(frozen=True)
class Pace:
    """One run of the agent."""

    cores: float
    proportional_bytes: float
    ring_bytes: float
    written_bytes: float
    day_bytes: float
    missed_share: float
    slowed: dict[str, int]


def run(options: Options) -> list[Row]:
    rows: list[Row] = []
    for count in options.containers:
        with containers(count):
            slow, fast, held = (
                measure(options.seconds, words) for words in (WHOLE_CORE, (*FAST, *WHOLE_CORE), FAST)
            )
        rows += compare(f"{count} containers x {PROCESSES} processes", slow, fast, held)
    return rows


def measure(seconds: float, words: tuple[str, ...]) -> Pace:
    address = f"127.0.0.1:{free_port()}"
    with data_folder() as data:
        command = ("agent", "--listen", address, "--data", str(data), "--no-kubernetes", *words)
        with started(Tree(), *command) as pid:
            url = {"agent": f"http://{address}"}
            await_answer(f"http://{address}/readyz")
            start = time.monotonic()
            ask_until(start + WARM_UP_SECONDS, url)
            before = Reading.of(pid)
            ask_until(start + WARM_UP_SECONDS + seconds, url)
            after = Reading.of(pid)
            status = read_status(address)
            memory = read_proportional(pid)
            end(pid)
            covered = time.monotonic() - start
        missed_share = status["ticks"]["missed"] / max(1, sum(status["ticks"].values()))
        whole = 1 / (1 - missed_share)
        return Pace(
            cores=(after.per_second(before, "cpu") - after.per_second(before, "children_cpu")) * whole,
            proportional_bytes=memory,
            ring_bytes=status["ring"]["bytes"],
            written_bytes=after.per_second(before, "written_bytes") * whole,
            day_bytes=count_archive(data) / covered * DAY_SECONDS * whole,
            missed_share=missed_share,
            slowed=status["budget"]["slowed"],
        )


def read_status(address: str) -> Any:
    with urllib.request.urlopen(f"http://{address}/status", timeout=60) as answer:
        return json.load(answer)


def count_archive(data: Path) -> int:
    words = [*NODESCOPE, "consolidate", "--once", "--data", str(data)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=Tree().environment)
    return sum(file.stat().st_size for file in data.rglob("*.parquet"))


def compare(what: str, slow: Pace, fast: Pace, held: Pace) -> Iterator[Row]:
    beside = "once a second"
    slowed = ", ".join(f"{name} every {ticks} ticks" for name, ticks in sorted(held.slowed.items()))
    missed = f"{fast.missed_share:.1%} of ticks missed, {slow.missed_share:.1%} at 1 Hz"
    yield Row(f"{what}, 10 Hz: CPU", fast.cores, "core", slow.cores, beside, remark=missed)
    yield Row(
        "  within the budget", held.cores, "core", slow.cores, beside, remark=slowed or "nothing slowed"
    )
    for name, unit, scale in (
        ("proportional_bytes", "resident", 1.0),
        ("ring_bytes", "resident", 1.0),
        ("written_bytes", "KiB/s", 1 / 1024),
        ("day_bytes", "MB", 1e-6),
    ):
        ours, anchor = getattr(fast, name) * scale, getattr(slow, name) * scale
        yield Row(f"  {LABELS[name]}", ours, unit, anchor, beside)


LABELS = {
    "proportional_bytes": "memory",
    "ring_bytes": "of it samples in the ring",
    "written_bytes": "disk writes",
    "day_bytes": "archive, a day",
}
