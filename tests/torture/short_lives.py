"""
Containers that live a tenth of a second, fifty a second: python -m tests.torture.short_lives [SCALE].

Scale 1 is 3,000 of them, a minute long, in real cgroups of every hierarchy.
Every third has a process; half of them have a pod of their own, which is as
short. Each must have an obituary, or be counted.
"""

import sys
import time
from collections import deque

from tests.cgroups import Cgroups, Group, pod_uid, why_not
from tests.integration.agents import Agent, running_agent
from tests.integration.exposition import find, value
from tests.torture.result import TortureRow

from nodescope.base.codec import Decoder

LIVES = 3000
LIFE_SECONDS = 0.1
PER_SECOND = 50.0
# Obituaries come with the tick after the end; a busy machine has late ticks.
PATIENCE_SECONDS = 60.0
# The agent holds two minutes of frames.
FETCH_EVERY = 250


class ObituaryReader:
    """Obituaries as the agent tells them, by the path of the cgroup."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._cursor = agent.get("/live").headers["nodescope-cursor"]
        self.facts: dict[str, dict[str, object]] = {}

    def fetch(self) -> None:
        answer = self._agent.client.get("/live", params={"since": self._cursor})
        self._cursor = answer.headers["nodescope-cursor"]
        for frame in Decoder().decode(answer.content):
            for event in frame.events:
                if event.kind != "start":
                    self.facts[dict(event.labels)["id"]] = dict(event.facts)


def live(cgroups: Cgroups, count: int, obituaries: ObituaryReader) -> tuple[list[str], float]:
    """The paths of all that lived, and how many began in a second."""
    shared, paths = pod_uid(), []
    alive: deque[tuple[float, Group]] = deque()
    start = time.monotonic()
    for number in range(count):
        group = cgroups.container(shared if number % 2 else None)
        paths.append(f"/{group.path}")
        if number % 3 == 0:
            group.spawn(["true"])
        alive.append((time.monotonic() + LIFE_SECONDS, group))
        bury(cgroups, alive, shared)
        if number % FETCH_EVERY == 0:
            obituaries.fetch()
        time.sleep(max(0.0, start + (number + 1) / PER_SECOND - time.monotonic()))
    pace = count / (time.monotonic() - start)
    time.sleep(LIFE_SECONDS)
    bury(cgroups, alive, shared)
    return paths, pace


def bury(cgroups: Cgroups, alive: deque[tuple[float, Group]], shared: str) -> None:
    while alive and alive[0][0] <= time.monotonic():
        group = alive.popleft()[1]
        cgroups.remove(group)
        if f"pod{shared}" not in group.path:
            for folder in group.folders.values():
                folder.parent.rmdir()


def count_nameless(agent: Agent) -> float:
    """Lives that are counted without a name."""
    found = find(agent.scrape(), "nodescope_container_exits_unmeasured_total")
    return sum(item.value for item in found if item.labels["known"] in ("pod", "number"))


def run(scale: float = 1.0) -> list[TortureRow]:
    reason = why_not()
    if reason:
        return [TortureRow("short lives", "with obituary or counted", "not run", "100 %", False, reason)]
    count = max(10, round(LIVES * scale))
    with running_agent() as agent, Cgroups() as cgroups:
        agent.client.timeout = 60
        obituaries = ObituaryReader(agent)
        paths, pace = live(cgroups, count, obituaries)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not set(paths) <= set(obituaries.facts) and time.monotonic() < deadline:
            time.sleep(1.0)
            obituaries.fetch()
        nameless = count_nameless(agent)
        overflows = value(agent.scrape(), "nodescope_cgroup_queue_overflows_total")
    return [judge(paths, pace, obituaries, nameless, overflows)]


def judge(
    paths: list[str], pace: float, obituaries: ObituaryReader, nameless: float, overflows: float
) -> TortureRow:
    told = [obituaries.facts[path] for path in paths if path in obituaries.facts]
    known = min(len(paths), len(told) + int(nameless))
    looked = sum(1 for facts in told if facts.get("last_look") == "at exit")
    short = sum(1 for facts in told if "unmeasured" in facts)
    remark = (
        f"{len(told)} obituaries, {int(nameless)} counted without a name, {short} too short to measure, "
        f"{looked} with a last look; {pace:.0f} a second; {overflows:.0f} queues overflowed"
    )
    return TortureRow(
        f"{len(paths)} lives of {LIFE_SECONDS} s",
        "with obituary or counted",
        f"{100 * known / len(paths):.6g} %",
        "100 %",
        known == len(paths),
        remark,
    )


if __name__ == "__main__":
    for one in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(one.render())
