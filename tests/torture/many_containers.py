"""
Thousands of containers on one node: the agent's memory while they are there, and a minute after they are gone.

`run(scale)`: scale 1.0 is 5,000 containers in real cgroups of every hierarchy, scraped every ten seconds.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cgroups import Cgroups, pod_uid, remove_parents
from tests.integration.agents import Agent, running_agent, wait_for
from tests.torture.result import TortureRow, at_most

CONTAINERS = 5000
LIMIT_MIB = 256.0
# The ring of an agent that has just started is still empty: what it grows to is not theirs.
SETTLE_SECONDS = 125.0
STAY_SECONDS = 90.0
SCRAPE_SECONDS = 10.0
BACK_SECONDS = 60.0
# Of what they had cost between scrapes. Python's small objects leave holes: those that stay hold a page each (decision 1127).
KEPT_RATIO = 0.5


def read_mib(pid: int, field: str) -> float:
    """VmRSS or VmHWM, the most so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def run(scale: float = 1.0) -> list[TortureRow]:
    count = max(10, int(CONTAINERS * scale))
    with Cgroups() as cgroups, running_agent() as agent:
        agent.client.timeout = 120
        for _ in scraping(agent, SETTLE_SECONDS):
            pass
        before = read_mib(agent.pid, "VmRSS")
        with crowd(cgroups, count):
            wait_for(lambda: count_shown(agent) >= count, f"{count} containers", seconds=300)
            for _ in scraping(agent, STAY_SECONDS):
                pass
            there, most = read_mib(agent.pid, "VmRSS"), read_mib(agent.pid, "VmHWM")
        gone = time.monotonic()
        for _ in scraping(agent, BACK_SECONDS):
            pass
        back = read_mib(agent.pid, "VmRSS")
    seconds = time.monotonic() - gone
    kept = (back - before) / max(1.0, there - before)
    remark = (
        f"{before:.0f} MiB before, {there:.0f} with {count}, {most:.0f} while scraped, "
        f"{back:.0f} after {seconds:.0f} s"
    )
    return [
        at_most(f"{count} containers", "resident memory at its most, MiB", most, LIMIT_MIB, remark),
        at_most(
            f"{count} containers", "share of what they cost kept a minute after", kept, KEPT_RATIO, remark
        ),
    ]


@contextlib.contextmanager
def crowd(cgroups: Cgroups, count: int) -> Iterator[None]:
    """Two containers a pod; with its last container the kubelet removes the pod's cgroup, too."""
    uids = [pod_uid() for _ in range((count + 1) // 2)]
    groups = [cgroups.container(uids[number // 2]) for number in range(count)]
    yield
    for group in groups:
        cgroups.remove(group)
    remove_parents(folder.parent for group in groups for folder in group.folders.values())


def count_shown(agent: Agent) -> int:
    return agent.client.get("/metrics").text.count("\ncontainer_cpu_usage_seconds_total{")


def scraping(agent: Agent, seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        agent.client.get("/metrics")
        yield
        time.sleep(min(SCRAPE_SECONDS, max(0.0, deadline - time.monotonic())))


if __name__ == "__main__":
    for row in run():
        print(row.render())
