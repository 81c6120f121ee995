"""
Tenants who make cgroups by the thousand beside an agent, and what that does to the others: nothing.

`run(scale)` is one part of the fault suite: scale 1.0 is 100,000 operations and 5,000
folders one in the other. Two tenants, each of an ordinary user: one with a
delegated slice, one inside a container of his own. Their folders bear the ids
and pods of three victims, whose series must not change.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cgroups import Cgroups, Group
from tests.integration.agents import Agent, running_agent, wait_for
from tests.torture.cgroup_tenant import Tenant
from tests.torture.result import TortureRow, at_most

from nodescope.base.codec import Decoder
from nodescope.base.entity import Entity
from nodescope.base.frame import Frame

OPERATIONS = 100_000
DEPTH = 5_000
VICTIMS = 3
UID = 64_242
# Operations between two looks at the frames: the ring holds two minutes of them.
ROUND_SECONDS = 10.0
# The part of the machine's other containers in the frames is not looked at.
TABLE = "container"


@dataclass
class Watch:
    """What the frames say of the victims."""

    agent: Agent
    victims: list[Group]
    cursor: str = ""
    frames: int = 0
    altered: list[str] = field(default_factory=list)
    first: dict[str, Entity] = field(default_factory=dict)
    last: int | None = None
    unseen: int = 0
    """Frames that had left the ring before they were looked at."""

    def look(self) -> None:
        """An answer has a bounded size: asked on until nothing is left."""
        more = "true"
        while more == "true":
            answer = self.agent.client.get("/live", params={"since": self.cursor} if self.cursor else {})
            self.cursor, more = answer.headers["nodescope-cursor"], answer.headers["nodescope-more"]
            for frame in Decoder().decode(answer.content):
                self._check(frame)

    def _check(self, frame: Frame) -> None:
        self.unseen += frame.sequence - self.last - 1 if self.last is not None else 0
        self.last = frame.sequence
        for block in frame.blocks:
            if block.table.name != TABLE:
                continue
            self.frames += 1
            rows = [entity for entity in block.entities if self._is_victim_s(entity.ids[0])]
            found = {entity.ids[0]: entity for entity in rows}
            self.first = self.first or found
            if len(rows) != len(self.victims) or found != self.first:
                self.altered.append(
                    f"frame {frame.sequence}: {len(rows)} rows of {len(self.victims)} victims"
                )
        ended = [event.ids[0] for event in frame.events if self._is_victim_s(event.ids[0])]
        self.altered += [f"frame {frame.sequence}: an event of {one[:12]}" for one in ended]

    def _is_victim_s(self, identifier: str) -> bool:
        return any(group.path.endswith(identifier) for group in self.victims)


@dataclass(frozen=True, slots=True)
class CpuShare:
    """What the agent's threads had of the cores: a tick is late by its own work, or because others had them."""

    used_seconds: float
    waited_seconds: float
    """Ready to run, and no core was free."""

    def since(self, before: "CpuShare") -> "CpuShare":
        return CpuShare(self.used_seconds - before.used_seconds, self.waited_seconds - before.waited_seconds)

    def render(self, ticks: int) -> str:
        used, waited = (1000 * one / max(1, ticks) for one in (self.used_seconds, self.waited_seconds))
        return (
            f"of {ticks}; each took the agent {used:.0f} ms of CPU, and {waited:.0f} ms of waiting for a core"
        )


def read_share(pid: int) -> CpuShare:
    """From schedstat: nanoseconds on a core, nanoseconds in its queue, times it ran; threads that ended are left out."""
    used = waited = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = path.read_text().split()
            used, waited = used + int(words[0]), waited + int(words[1])
    return CpuShare(used / 1e9, waited / 1e9)


@contextlib.contextmanager
def tenants(cgroups: Cgroups, victims: list[Group]) -> Iterator[list[Tenant]]:
    """One with a slice of his own, one inside a container."""
    paths = [victim.path for victim in victims]
    slice_ = cgroups.make(f"user.slice/user-{UID}.slice/user@{UID}.service")
    inside = cgroups.container()
    with (
        Tenant(list(slice_.folders.values()), UID, paths, seed=1) as user,
        Tenant(list(inside.folders.values()), UID + 1, paths, seed=2) as contained,
    ):
        yield [user, contained]


def run(scale: float = 1.0, seconds: float = 3600.0) -> list[TortureRow]:
    """The whole trial, within a number of operations and of seconds."""
    operations, depth = max(200, int(OPERATIONS * scale)), max(1500, int(DEPTH * scale))
    deadline = time.monotonic() + seconds
    with Cgroups() as cgroups, running_agent() as agent:
        victims = [cgroups.container() for _ in range(VICTIMS)]
        watch = Watch(agent, victims)
        wait_for(lambda: all(f"/{one.path}" in agent.scrape() for one in victims), "the victims")
        agent.get("/live")
        watch.cursor = agent.get("/live").headers["nodescope-cursor"]
        before = agent.get("/status").json()
        began = read_share(agent.pid)
        with tenants(cgroups, victims) as made:
            reached = min(tenant.nest(depth) for tenant in made)
            done = 0
            while done < operations and time.monotonic() < deadline:
                for tenant in made:
                    done += tenant.work(min(5000, operations - done), ROUND_SECONDS)
                watch.look()
            ready = can_start_again()
            status = agent.get("/status").json()
            text = agent.scrape()
            share = read_share(agent.pid).since(began)
        watch.look()
    refused = sum(status["containers"]["refused_so_far"].values())
    return [
        at_most(
            "cgroup fuzzer", "others' containers altered", len(watch.altered), 0, "; ".join(watch.altered[:3])
        ),
        at_most("cgroup fuzzer", "frames not looked at", watch.unseen, 0),
        at_most(
            "cgroup fuzzer",
            "ticks missed",
            status["ticks"]["missed"] - before["ticks"]["missed"],
            0,
            share.render(status["ticks"]["taken"] - before["ticks"]["taken"]),
        ),
        at_most(
            "cgroup fuzzer",
            "container source failed",
            int(status["sources"]["container"]["state"] != "ok"),
            0,
        ),
        at_most("cgroup fuzzer", "an agent that starts meanwhile not ready", int(not ready), 0),
        at_most("cgroup fuzzer", "claims not refused", int(refused == 0), 0, f"{refused} refused"),
        at_most(
            "cgroup fuzzer",
            "victims missing on /metrics",
            sum(f'id="/{one.path}"' not in text for one in victims),
            0,
        ),
        at_most(
            "cgroup fuzzer",
            "operations short of the plan",
            operations - done,
            0,
            f"{done} operations, depth {reached}, {watch.frames} frames",
        ),
    ]


def can_start_again() -> bool:
    """An agent that starts while all this stands becomes ready, with its containers."""
    with running_agent("--no-archive") as second:
        found = second.get("/status").json()
        return bool(found["health"]["ready"] and found["sources"]["container"]["state"] == "ok")


if __name__ == "__main__":
    for row in run():
        print(row.render())
