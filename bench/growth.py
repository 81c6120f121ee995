"""
The agent on nodes with 10, 100, 500 and 1,000 containers: what one container costs.

One process a container, which works once a second: more would keep the
machine busy with them. The agent keeps its archive and is scraped every 10 s.
The budget would slow it down at 1,000 containers; here it may use a whole
core, so that the cost is the cost. One row has two containers that write to
the disk all the time, one below each parent: then nobody is spared a reading of
what he wrote. In another 90 of 100 sleep, as sandboxes and most
sidecars do. The last has so few descriptors that most files are opened and
closed at each reading.
"""

import json
import os
import sys
import tempfile
import time
import urllib.request
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.integration.peers.servers import Server, agent_running

from bench.agent import SCRAPE_SECONDS, WARM_UP_SECONDS, Reading, Scrapes
from bench.node import containers
from bench.result import Goal, Options, Row

COUNTS = (10, 100, 500, 1000)
# The per-container cost is compared with that of the usual node.
USUAL = 100
SECONDS = 40.0
PAUSE_MS = 1000
FEW_DESCRIPTORS = 1024
# One of each driver, whose parents are two.
WRITERS = 2
SLEEPERS = 90
# Longer than any run.
SLEEP_MS = 3_600_000
# A page past the cache, ten times a second.
WRITE = """
import mmap, os, sys, time
page = mmap.mmap(-1, 4096)
target = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
while True:
    os.pwrite(target, page, 0)
    time.sleep(0.1)
"""
GOAL = Goal(1.1, "ratio")


@dataclass(frozen=True)
class Growth:
    count: int
    cores: float
    resident: int
    files: dict[str, int]
    shown: int
    """Containers with a CPU series on /metrics."""

    @property
    def share(self) -> float:
        return self.cores / self.count

    def describe(self) -> str:
        open_files = f"{self.files['kept_open']} files open of {self.files['limit']}"
        reopened = f", {self.files['reopened']} opened at each reading" if self.files["reopened"] else ""
        return f"{self.cores:.2%} of a core, {self.resident >> 20} MiB, {open_files}{reopened}, {self.shown} containers shown"


def run(options: Options) -> list[Row]:
    seconds = min(SECONDS, options.seconds)
    found = {count: measure(count, seconds, None) for count in COUNTS}
    writing = measure(USUAL, seconds, None, WRITERS)
    asleep = measure(USUAL, seconds, None, sleepers=SLEEPERS)
    few = measure(USUAL, seconds, FEW_DESCRIPTORS)
    usual = found[USUAL]
    rows = [
        Row(
            f"{growth.count} containers: CPU for one",
            growth.share,
            "core",
            usual.share,
            f"of {USUAL}",
            GOAL if growth.count > USUAL else None,
            growth.describe(),
        )
        for growth in found.values()
    ]
    what = f"{USUAL} containers, {WRITERS} of which write: CPU for one"
    rows.append(Row(what, writing.share, "core", usual.share, "of quiet ones", remark=writing.describe()))
    what = f"{USUAL} containers, {SLEEPERS} of which sleep: CPU for one"
    rows.append(Row(what, asleep.share, "core", usual.share, "of working ones", remark=asleep.describe()))
    what = f"{USUAL} containers, {FEW_DESCRIPTORS:,} descriptors: CPU for one"
    return [*rows, Row(what, few.share, "core", usual.share, "with all files open", remark=few.describe())]


def measure(
    count: int, seconds: float, descriptors: int | None, writers: int = 0, sleepers: int = 0
) -> Growth:
    unlimited = mock.patch.dict(os.environ, {"NODESCOPE_BUDGET_RATIO": "1"})
    with (
        containers(count - sleepers, processes=1, pause_ms=PAUSE_MS) as made,
        containers(sleepers, processes=1, pause_ms=SLEEP_MS),
        tempfile.TemporaryDirectory() as folder,
        unlimited,
    ):
        for number, group in enumerate(made[:writers]):
            group.count_io(Path(folder))
            group.spawn([sys.executable, "-S", "-c", WRITE, f"{folder}/written-{number}"])
        return observe(count, seconds, agent_running(Path(folder, "data"), descriptors))


def observe(count: int, seconds: float, starting: AbstractContextManager[Server]) -> Growth:
    with starting as server:
        start = time.monotonic()
        scrapes = Scrapes(server, SCRAPE_SECONDS, start + SCRAPE_SECONDS)
        scrapes.go_on(start + WARM_UP_SECONDS)
        before = Reading.of(server, None)
        scrapes.go_on(start + WARM_UP_SECONDS + seconds)
        after = Reading.of(server, None)
        shown = server.scrape().count("\ncontainer_cpu_usage_seconds_total{")
        files = read_files(server)
    return Growth(count, after.cores_since(before), after.resident, files, shown)


def read_files(server: Server) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/status", timeout=60) as answer:
        files: dict[str, int] = json.load(answer)["files"]
    return files
