"""
Tenants with real cgroups of their own: they nest, they forge, they come and go; the node is not blinded.

Each test does on the real thing what once stopped the container source, doubled
a victim's rows or went unseen. `tests/torture/cgroup_fuzzer.py` does all of it by the thousand.
"""

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest
from tests.cgroups import Cgroups, Group, container_id, mounts, pod_uid
from tests.integration.agents import TurnableClock, make_parts, running_agent, serving, tick, wait_for
from tests.integration.exposition import find, value
from tests.torture import cgroup_fuzzer
from tests.torture.cgroup_tenant import Tenant

from nodescope.base.codec import Decoder
from nodescope.base.frame import Event
from nodescope.collect.sources.container.facts import TOO_SHORT
from nodescope.wiring import Parts

pytestmark = pytest.mark.real

UID = 64_111
DEEP = 1500
"""Python ends a recursion at 1,000."""


@pytest.fixture
def parts() -> Iterator[Parts]:
    made = make_parts(TurnableClock())
    yield made
    made.sampler.stop()


def rows_of(parts: Parts, identifier: str) -> list[str]:
    """The paths of all rows that bear a container id."""
    block = parts.ring.latest()["container"].block
    return [str(entity.attribute("id")) for entity in block.entities if entity.ids[0] == identifier]


def tick_until(parts: Parts, group: Group) -> None:
    def seen() -> bool:
        tick(parts, 1)
        return bool(rows_of(parts, group.path.rpartition("/")[2]))

    wait_for(seen, f"{group.path} in the frames")


# -- nesting ------------------------------------------------------------------------------


def test_a_thousand_nested_cgroups_blind_nobody_and_an_agent_starts_beside_them(cgroups: Cgroups) -> None:
    tenant_s, neighbour = cgroups.container(), cgroups.container()
    neighbour.spawn(["sleep", "600"])
    with Tenant(list(tenant_s.folders.values()), UID, [neighbour.path]) as tenant:
        assert tenant.nest(DEEP) == DEEP
        with running_agent() as agent:
            status = agent.get("/status").json()
            assert status["sources"]["container"]["state"] == "ok"
            assert list(status["containers"]["cut"]) != []
            assert all(tenant_s.path in path for path in status["containers"]["cut"])

            def counted() -> bool:
                return bool(find(agent.scrape(), "container_processes", id=f"/{neighbour.path}"))

            wait_for(counted, "the neighbour's processes", seconds=60)
            text = agent.scrape()
            assert value(text, "container_processes", id=f"/{neighbour.path}") == 1
            assert find(text, "container_processes", id=f"/{tenant_s.path}") == []
            assert find(text, "container_cpu_usage_seconds_total", id=f"/{tenant_s.path}") != []
            assert value(text, "nodescope_cgroups_cut") == 1
            assert value(text, "nodescope_source_errors_total", source="container", reason="cut") >= 1
            assert "Traceback" not in agent.printed()


# -- forging ------------------------------------------------------------------------------


def test_a_user_s_cgroup_with_a_victim_s_id_is_refused(cgroups: Cgroups, parts: Parts) -> None:
    """By a delegated slice, and from inside a container, before and after the victim is known."""
    victim, host = cgroups.container(), cgroups.container()
    identifier = victim.path.rpartition("/")[2]
    slice_ = cgroups.make(f"user.slice/user-{UID}.slice/user@{UID}.service")
    with (
        Tenant(list(slice_.folders.values()), UID, [victim.path]) as user,
        Tenant(list(host.folders.values()), UID, [victim.path]) as contained,
    ):
        assert user.claim(victim.path) == len(slice_.folders)
        tick_until(parts, victim)
        assert contained.claim(victim.path) == len(host.folders)
        tick(parts, 35)
        assert rows_of(parts, identifier) == [f"/{victim.path}"]
        counters = parts.context.container_counters
        assert counters.refused["container"] == 2
        assert {f"/{slice_.path}/{victim.path}", f"/{host.path}/{victim.path}"} == set(counters.refused_now)
        with serving(parts) as client:
            text = client.get("/metrics").text
            assert value(text, "nodescope_cgroups_refused_total", claim="container") == 2
            assert len(client.get("/status").json()["containers"]["refused"]) == 2


def test_the_victim_s_processes_are_not_counted_with_the_forger_s(cgroups: Cgroups, parts: Parts) -> None:
    """A process that a user puts into a folder of the victim's name is not shown as the victim's."""
    victim = cgroups.container()
    victim.spawn(["sleep", "600"])
    slice_ = cgroups.make(f"user.slice/user-{UID}.slice/user@{UID}.service")
    forged = cgroups.make(f"{slice_.path}/{victim.path}")
    for group in (slice_, forged):
        for folder in group.folders.values():
            os.chown(folder, UID, UID)
    intruder = forged.spawn(["sleep", "600"])
    tick_until(parts, victim)
    member = parts.context.live_containers.by_container[victim.path.rpartition("/")[2]]
    assert member.path == victim.path
    assert intruder.pid not in member.pids
    with open(f"/proc/{intruder.pid}/cgroup") as file:
        lines = file.read().strip().split("\n")
    found = [parts.context.live_containers.identify(line.split(":", 2)[-1]) for line in lines]
    assert all(one is None and not cgroup.container_id for cgroup, one in found)


# -- short lives --------------------------------------------------------------------------


def ends_in(frames: list[Event]) -> dict[str, Event]:
    return {dict(event.labels)["id"]: event for event in frames if event.kind != "start"}


def test_every_container_of_a_tenth_of_a_second_has_an_obituary(cgroups: Cgroups) -> None:
    """Half of them in a pod of their own, which is as short; with their facts where there was time to look."""
    with running_agent() as agent:
        cursor = agent.get("/live").headers["nodescope-cursor"]
        before = value(agent.scrape(), "nodescope_container_exits_total")
        shared, paths = pod_uid(), []
        for number in range(60):
            group = cgroups.container(shared if number % 2 else None)
            paths.append(f"/{group.path}")
            if number % 3 == 0:
                group.spawn(["true"]).wait(20)
            time.sleep(0.1)
            cgroups.remove(group)
        found: dict[str, Event] = {}

        def all_told() -> bool:
            answer = agent.client.get("/live", params={"since": cursor}).content
            found.update(ends_in([event for frame in Decoder().decode(answer) for event in frame.events]))
            return set(paths) <= set(found)

        wait_for(all_told, "an obituary of each", seconds=15)
        short = [found[path] for path in paths if found[path].facts.get("unmeasured") == TOO_SHORT]
        assert len(short) > 20
        assert all(0 < float(event.facts["lifetime_seconds"]) < 30 for event in short)
        looked = [event for event in short if event.facts["last_look"] == "at exit"]
        assert looked
        assert all(float(event.facts["cpu_seconds"]) > 0 for event in looked)
        assert all("cpu_seconds" not in event.facts for event in short if event not in looked)
        text = agent.scrape()
        counted = find(text, "nodescope_container_exits_unmeasured_total")
        assert sum(item.value for item in counted) >= len(short)
        assert value(text, "nodescope_container_exits_total") - before >= 60
        assert value(text, "nodescope_cgroup_queue_overflows_total") == 0


# -- memory -------------------------------------------------------------------------------


def test_over_its_memory_budget_the_agent_shortens_its_ring_and_says_so(cgroups: Cgroups) -> None:
    """With the least budget that settings accept: less than the agent takes anyway."""
    for _ in range(60):
        cgroups.container()
    with running_agent("--memory-bytes", "32MiB") as agent:

        def given_up() -> bool:
            return value(agent.scrape(), "nodescope_memory_given_up", what="ring") == 1

        wait_for(given_up, "a shortened ring", seconds=60)
        status = agent.get("/status").json()
        assert status["memory"]["is_ring_shortened"]
        assert status["ring"]["bytes_most"] < 64 * 2**20
        assert status["memory"]["resident_bytes"] > status["memory"]["budget_bytes"] == 32 * 2**20
        wait_for(
            lambda: agent.get("/status").json()["memory"]["containers_most"] is not None,
            "fewer containers",
            seconds=90,
        )
        assert agent.get("/readyz").status_code == 200


# -- all of it ----------------------------------------------------------------------------


@pytest.mark.usefixtures("cgroups")
def test_the_fuzzer_alters_nobody_and_no_tick_is_missed() -> None:
    """The short form of the torture's row."""
    rows = cgroup_fuzzer.run(scale=0.01, seconds=90)
    # A machine that runs other tests beside this one may be late by itself: `make torture` counts ticks alone.
    missed = [row for row in rows if not row.met and row.figure != "ticks missed"]
    assert missed == []


def test_a_container_id_is_taken_from_the_first_hierarchy_that_has_it(cgroups: Cgroups, parts: Parts) -> None:
    """Runtimes make a container in one hierarchy after the other: it is one container all the time."""
    identifier = container_id()
    path = f"kubepods/pod{pod_uid()}/{identifier}"
    group = cgroups.make(path)
    tick_until(parts, group)
    block = parts.ring.latest()["container"].block
    row = next(number for number, entity in enumerate(block.entities) if entity.ids[0] == identifier)
    assert int(block.entities[row].ids[1]) in {
        (root / path).stat().st_ino for root in mounts().values() if (root / path).exists()
    }
    assert not np.isnan(block.values[row]).all()
