"""
What the agent costs on a node with 100 and 200 containers, beside the peers.

Ours samples every second and is scraped every 10 s. A peer samples when it is
scraped (cAdvisor: by its own housekeeping of 1 s), so for the same resolution
it is scraped every second. cAdvisor is also shown with scrapes every 10 s: then
it does the same work as ours, 1 Hz in memory and 10 s to Prometheus. One runs
at a time, all on the same cgroups.

CPU is user + system of the process, from its tenth second on: start-up is not
what a node pays for. Memory is VmRSS at the end; with --seconds below 130 the
ring is not full yet, and the figure is extended by what it grew.
"""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.integration.peers.binaries import PEERS, Peer
from tests.integration.peers.servers import Server, agent_running, peer_running

from bench.node import PROCESSES, containers
from bench.result import Goal, Options, Row

WARM_UP_SECONDS = 10.0
SCRAPE_SECONDS = 10.0
# A peer's cost is steady from the first scrapes on.
PEER_SECONDS = 45.0
# What it is called in the table, which peer, seconds between scrapes.
RUNS: tuple[tuple[str, Peer, float], ...] = (
    *((f"{peer} at 1 Hz", peer, 1.0) for peer in PEERS),
    ("cadvisor at 10 s", "cadvisor", 10.0),
)
# ring_seconds' default and some ticks: from then on memory is flat.
FULL_SECONDS = 130.0
GOALS = {100: (Goal(0.02, "ours"), Goal(100 * 2**20, "ours"))}


@dataclass(frozen=True)
class Cost:
    cores: float
    resident_bytes: float
    plain_bytes: float
    gzip_bytes: float
    remark: str = ""

    @property
    def figures(self) -> tuple[float, float, float, float]:
        return self.cores, self.resident_bytes, self.plain_bytes, self.gzip_bytes


def run(options: Options) -> list[Row]:
    rows = []
    for count in options.containers:
        with containers(count):
            ours = measure(agent_running(), options.seconds, SCRAPE_SECONDS)
            peer_seconds = min(PEER_SECONDS, options.seconds)
            peers = {name: measure(peer_running(peer), peer_seconds, every) for name, peer, every in RUNS}
        rows += compare(f"{count} containers x {PROCESSES} processes", count, ours, peers)
    return rows


def measure(starting: AbstractContextManager[Server], seconds: float, scrape_seconds: float) -> Cost:
    with starting as server:
        start = time.monotonic()
        warm = min(WARM_UP_SECONDS, seconds / 3)
        scrape_until(server, start + warm, scrape_seconds)
        cpu, mono, resident = server.cpu_seconds(), time.monotonic(), server.resident_bytes()
        scrape_until(server, start + seconds, scrape_seconds)
        elapsed = time.monotonic() - mono
        cores = (server.cpu_seconds() - cpu) / elapsed
        grown = server.resident_bytes()
        plain, gzipped = server.body_bytes()
    if server.name != "nodescope":
        return Cost(cores, grown, plain, gzipped)
    full, remark = extend(resident, grown, elapsed, seconds)
    return Cost(cores, full, plain, gzipped, remark)


def scrape_until(server: Server, deadline: float, every_seconds: float) -> None:
    """Absolute deadlines, so that a slow scrape does not thin out the next."""
    due = time.monotonic()
    while (due := due + every_seconds) < deadline:
        time.sleep(max(0.0, due - time.monotonic()))
        server.fetch("gzip")
    time.sleep(max(0.0, deadline - time.monotonic()))


def extend(start: int, end: int, elapsed: float, seconds: float) -> tuple[float, str]:
    """Memory as it will be when the ring is full: grown on in a straight line."""
    missing = FULL_SECONDS - seconds
    if missing <= 0:
        return end, "ring full"
    return end + (end - start) / elapsed * missing, f"measured {end / 2**20:.1f} MiB, extended to a full ring"


def compare(what: str, count: int, ours: Cost, peers: Mapping[str, Cost]) -> list[Row]:
    cpu_goal, memory_goal = GOALS.get(count, (None, None))
    at_1_hz = [cost for name, cost in peers.items() if name.endswith("at 1 Hz")]
    together = Cost(*(sum(column) for column in zip(*(cost.figures for cost in at_1_hz))))
    return [
        Row(f"{what}: CPU", ours.cores, "core", together.cores, "all three at 1 Hz", cpu_goal),
        *(Row(f"{what}: CPU", ours.cores, "core", cost.cores, name) for name, cost in peers.items()),
        Row(
            f"{what}: resident",
            ours.resident_bytes,
            "resident",
            together.resident_bytes,
            "all three",
            memory_goal,
            ours.remark,
        ),
        Row(f"{what}: a scrape, plain", ours.plain_bytes, "bytes", together.plain_bytes, "all three"),
        Row(f"{what}: a scrape, gzip", ours.gzip_bytes, "bytes", together.gzip_bytes, "all three"),
    ]
