"""
The live page while everything around it changes: containers replaced every five seconds, the agent killed twice.

An hour of it is what is promised; `NODESCOPE_CHURN_SECONDS` says how long, three minutes unless told.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page
from tests.cgroups import Cgroups, Group, kill
from tests.integration.agents import Agent, running_agent, wait_for
from tests.integration.workload import burner
from tests.web.browsing import running_chromium, watching

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("NODESCOPE_CHURN_SECONDS", "180"))
REPLACED_SECONDS = 5.0
# After the agent is well again: the viewer finds its tail.
SETTLE_SECONDS = 10.0
# What is drawn may be this old while the agent is healthy.
OLD_SECONDS = 3.0
HEAP_GROWTH = 1.3
# Whose threads may wait for a CPU: commands of ours, and the browser by its program.
WAITING = ("agent", "viewer", "consolidate", "chromium")


@dataclass(frozen=True)
class Look:
    """What the page showed at a moment, and who was how far by then."""

    since: float
    """Seconds since the agent was well again."""
    age: float
    """Seconds, of the newest point on the screen."""
    edge: float
    """Of the right edge of the plot, which follows the newest sample of anybody."""
    sampled: float
    """Of the agent's newest sample, as it says."""
    told: str
    """What the page says that the viewer said."""
    waited: dict[str, float]
    """Since the look before: seconds that runnable threads waited for a CPU, by what they belong to."""


@dataclass
class Observed:
    """What the page showed, second by second."""

    looks: list[Look] = field(default_factory=list)
    heaps: list[int] = field(default_factory=list)


def test_the_newest_point_is_never_old_and_the_heap_stays_flat(cgroups: Cgroups) -> None:
    with (
        running_agent("--no-kubernetes", command="up", ready_seconds=180) as agent,
        running_chromium() as browser,
    ):
        url = wait_for(
            lambda: [word for word in agent.printed().split() if word.startswith("http://")],
            "up prints its addresses",
        )[0].rstrip("/")
        # While the agent is down the page says so; nothing else may be complained of.
        with watching(browser, url, calm=False) as view:
            churned = churn(cgroups)
            view.page.goto(f"{url}/#range=5m&panels=cpu,memory")
            view.page.locator(".live.on").wait_for(timeout=90_000)
            view.page.locator(".chart canvas").first.wait_for(timeout=90_000)
            seen = observe(view.page, agent, cgroups, churned)
            tell(seen)
            view.picture("churn")
            assert not [one for one in view.complaints if one.startswith("uncaught")]
    late = list_late(seen)
    assert len(seen.looks) >= SECONDS / 10, "the agent was hardly ever well"
    # One look in a hundred may fall into a second in which the machine did something else.
    assert len(late) <= len(seen.looks) / 100, "\n".join(late)
    third = max(1, len(seen.heaps) // 3)
    assert min(seen.heaps[-third:]) <= HEAP_GROWTH * max(seen.heaps[:third])


def tell(seen: Observed) -> None:
    """Before anything is judged or put away: an hour is not looked at twice."""
    ages = sorted(look.age for look in seen.looks) or [0.0]
    heaps = [one >> 10 for one in seen.heaps]
    late = list_late(seen)
    print(
        f"{len(ages)} looks; newest point {ages[len(ages) // 2]:.1f} s old in the middle, {ages[-1]:.1f} s at most; "
        f"{len(late)} late; heap {heaps} KiB",
        *late,
        sep="\n",
        flush=True,
    )


def list_late(seen: Observed) -> list[str]:
    return [render_look(look) for look in seen.looks if look.age > OLD_SECONDS]


def render_look(look: Look) -> str:
    waited = ", ".join(f"{who} {seconds:.1f} s" for who, seconds in look.waited.items())
    return (
        f"{look.since:.0f} s after the agent was well: point {look.age:.1f} s old, edge {look.edge:.1f}, "
        f"agent's sample {look.sampled:.1f}, badge: {look.told}; waited for a CPU: {waited}"
    )


def churn(cgroups: Cgroups) -> list[Group]:
    """Two that stay, and one that is replaced."""
    groups = [cgroups.container() for _ in range(3)]
    for group in groups:
        group.spawn(burner(0.02))
    return groups


def observe(page: Page, agent: Agent, cgroups: Cgroups, groups: list[Group]) -> Observed:
    seen = Observed()
    begin = time.monotonic()
    kills = [begin + SECONDS / 3, begin + 2 * SECONDS / 3]
    well_from: float | None = begin
    replaced, looked = begin, begin
    waits = Waits()
    while (now := time.monotonic()) < begin + SECONDS:
        if now - replaced >= REPLACED_SECONDS:
            replaced = now
            replace_last(cgroups, groups)
        if kills and now >= kills[0]:
            kills.pop(0)
            kill_agent(agent)
            well_from = None
        elif (sampled := read_sampled(agent)) is None:
            well_from = None
        elif well_from is None:
            well_from = now
        elif now - well_from >= SETTLE_SECONDS:
            seen.looks.append(look_at(page, now - well_from, sampled, waits))
        if now - looked >= SECONDS / 12:
            looked = now
            seen.heaps.append(read_heap(page))
        page.wait_for_timeout(500)
    return seen


def read_sampled(agent: Agent) -> float | None:
    """How old its newest sample is; None where it is not well."""
    try:
        answer = agent.get("/readyz")
    except httpx.HTTPError:
        return None
    return float(answer.json()["newest_seconds"]) if answer.status_code == 200 else None


def replace_last(cgroups: Cgroups, groups: list[Group]) -> None:
    old = groups.pop()
    kill(old.pids())
    cgroups.remove(old)
    groups.append(cgroups.container())
    groups[-1].spawn(burner(0.02))


def kill_agent(agent: Agent) -> None:
    """The child of `up` that samples; `up` starts it again."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    found = [int(pid) for pid in children if b"\0agent\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert found, "up has no agent"
    os.kill(found[0], signal.SIGKILL)


class Waits:
    """Seconds that threads were ready to run and had no CPU, by process: what other work on the machine costs."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def take(self) -> dict[str, float]:
        """Since it was taken the last time."""
        found: dict[str, int] = {}
        for pid in read_children(os.getpid()):
            with contextlib.suppress(OSError, IndexError):
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                name = next((name for name in WAITING if name in words or name in words[0]), "")
                found[name] = found.get(name, 0) + read_waited_ns(pid)
        waited = {name: max(0, ns - self._known.get(name, ns)) / 1e9 for name, ns in found.items() if name}
        self._known = found
        return waited


def read_children(pid: int) -> list[int]:
    """All below a process."""
    text = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [each for child in map(int, text.split()) for each in (child, *read_children(child))]


def read_waited_ns(pid: int) -> int:
    """The second number of /proc/PID/task/TID/schedstat: ready to run, but another ran."""
    return sum(int(path.read_text().split()[1]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def look_at(page: Page, since: float, sampled: float, waits: Waits) -> Look:
    """The newest point of the first panel, and the edge of its plot."""
    newest, edge, told = page.evaluate("""() => {
        const age = (text) => Date.now() / 1000 - Number(text);
        const { newest, to } = document.querySelector('.chart').dataset;
        return [age(newest), age(to), document.querySelector('.live')?.textContent ?? ''];
    }""")
    return Look(since, max(newest, edge), edge, sampled, told, waits.take())


def read_heap(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")
    session.detach()
    return int(found["usedSize"])
