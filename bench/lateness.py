"""
How late a tick starts while somebody scrapes as fast as the agent answers.

From the agent's own histogram: p99 is interpolated inside its bucket, as
histogram_quantile does. The loop runs without a pause, which is far more than
any Prometheus does; beside it stands the lateness with no scrape at all.
"""

import re
import time

from tests.integration.peers.servers import Server, agent_running

from bench.node import containers
from bench.result import Goal, Options, Row

CONTAINERS = 100
SECONDS = 100.0
WARM_UP_SECONDS = 5.0
_BUCKET = re.compile(r'^nodescope_tick_late_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)

Buckets = dict[float, float]


def run(options: Options) -> list[Row]:
    seconds = min(SECONDS, options.seconds)
    with containers(CONTAINERS), agent_running() as server:
        time.sleep(WARM_UP_SECONDS)
        quiet, _ = measure(server, seconds / 2, scraping=False)
        busy, scrapes = measure(server, seconds, scraping=True)
    return [
        Row(
            f"tick late by, p99, {CONTAINERS} containers, scrape loop",
            busy,
            "s",
            quiet,
            "without scrapes",
            Goal(0.020, "ours"),
            f"{scrapes / seconds:.0f} scrapes/s",
        )
    ]


def measure(server: Server, seconds: float, *, scraping: bool) -> tuple[float, int]:
    before, scrapes = parse_buckets(server.scrape()), 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if scraping:
            server.fetch("gzip")
            scrapes += 1
        else:
            time.sleep(1)
    after = parse_buckets(server.scrape())
    return derive_quantile({le: count - before[le] for le, count in after.items()}, 0.99), scrapes


def parse_buckets(text: str) -> Buckets:
    found = {float(le): float(count) for le, count in _BUCKET.findall(text)}
    if not found:
        raise RuntimeError("no nodescope_tick_late_seconds on /metrics")
    return found


def derive_quantile(buckets: Buckets, share: float) -> float:
    """
    The value below which `share` of the observations lie, linear in its bucket.

    Where it falls into the +Inf bucket, the largest finite bound is all that
    can be said.
    """
    bounds = sorted(buckets)
    wanted = share * buckets[bounds[-1]]
    lower, below = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            if bound == float("inf"):
                return lower
            inside = buckets[bound] - below
            return lower + (bound - lower) * ((wanted - below) / inside if inside else 1.0)
        lower, below = bound, buckets[bound]
    return lower
