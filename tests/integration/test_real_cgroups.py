"""
Real cgroups with real load: v1 controllers and the v2 tree of this machine.

The kernel's own figure is read from the same files, just before and just
after the agent's answer: what we say must lie between, but for the tolerance.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cgroups import Cgroups, Group, mounts, remove_folder
from tests.integration.agents import Agent, TurnableClock, make_parts, running_agent, serving, tick, wait_for
from tests.integration.exposition import find, value
from tests.integration.workload import burner, holder

from nodescope.base.codec import Decoder
from nodescope.base.frame import Event
from nodescope.collect.sources.container.discovery import RESCAN_TICKS
from nodescope.publish.self_metrics import OBITUARY_SECONDS
from nodescope.wiring import Parts, raise_descriptor_limit

pytestmark = pytest.mark.real

MIB = 2**20
TOLERANCE = 0.02
CPU = "container_cpu_usage_seconds_total"


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with running_agent() as running:
        yield running


def kernel_cpu_seconds(group: Group) -> float:
    try:
        return group.number("cpuacct.usage") / 1e9
    except FileNotFoundError:
        return group.number("cpu.stat", "usage_usec") / 1e6


def kernel_memory_bytes(group: Group) -> int:
    try:
        return group.number("memory.usage_in_bytes")
    except FileNotFoundError:
        return group.number("memory.current")


def hold(group: Group, size_bytes: int) -> subprocess.Popen[bytes]:
    """A process that holds so much; it has touched every page when this returns."""
    process = group.spawn(holder(size_bytes), stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"held\n"
    return process


def next_tick(agent: Agent) -> str:
    """A scrape of the first tick that begins after this call."""
    taken = value(agent.scrape(), "nodescope_ticks_total")
    # The tick in hand may have read the file already: the one after it has not.
    wait_for(lambda: value(agent.scrape(), "nodescope_ticks_total") >= taken + 2, "the next tick")
    return agent.scrape()


def test_cpu_seconds_are_the_kernel_s_within_two_percent(agent: Agent, cgroups: Cgroups) -> None:
    """
    Over 10 s: |ours - kernel's| <= 2 % of the kernel's growth.

    The kernel's figure is read every 20 ms and taken at the very moment that
    the frame says: the monotonic clock is one for all processes.
    """
    group = cgroups.container()
    group.spawn(burner(0.6))
    identifier = "/" + group.path
    wait_for(lambda: find(agent.scrape(), CPU, id=identifier), "the container")
    cursor = agent.get("/live").headers["nodescope-cursor"]
    kernel: list[tuple[int, float]] = []
    end = time.monotonic() + 12
    while time.monotonic() < end:
        kernel.append((time.monotonic_ns(), kernel_cpu_seconds(group)))
        time.sleep(0.02)
    frames = Decoder().decode(agent.client.get("/live", params={"since": cursor}).content)
    ours = [
        (block.mono_ns, row[block.table.columns["cgroup.v1.cpuacct.usage"]] / 1e9)
        for frame in frames
        for block in frame.blocks
        if block.table.name == "container"
        for entity, row in zip(block.entities, block.values)
        if entity.attribute("id") == identifier and kernel[0][0] < block.mono_ns < kernel[-1][0]
    ]
    times_ns = np.array([moment for moment, _ in ours])
    said = np.array([seconds for _, seconds in ours])
    truth = np.interp(times_ns, [moment for moment, _ in kernel], [seconds for _, seconds in kernel])
    assert times_ns[-1] - times_ns[0] >= 10e9
    grown = truth[-1] - truth[0]
    assert grown > 3
    assert said[-1] - said[0] == pytest.approx(grown, rel=TOLERANCE)
    published = value(next_tick(agent), CPU, id=identifier)
    assert said[-1] <= published <= kernel_cpu_seconds(group)


def test_a_thousand_open_files_do_not_hide_a_new_container(cgroups: Cgroups) -> None:
    """A watch whose descriptor is above 1023 works like any other: seen in the next tick, not the next rescan."""
    raise_descriptor_limit()
    with contextlib.ExitStack() as opened:
        for _ in range(1100):
            opened.enter_context(open(os.devnull, "rb"))
        parts = make_parts(TurnableClock())
        try:
            tick(parts, 2)
            group = cgroups.container()
            deadline = parts.sampler.counters.ticks + RESCAN_TICKS // 2
            while group.path not in str(parts.ring.latest()["container"].block.entities):
                assert parts.sampler.counters.ticks < deadline
                time.sleep(0.1)
                tick(parts, 1)
        finally:
            parts.sampler.stop()


def written_bytes(parts: Parts, group: Group) -> float:
    block = parts.ring.latest()["container"].block
    row = next(row for row, entity in enumerate(block.entities) if entity.attribute("id") == "/" + group.path)
    names = ("cgroup.v1.blkio.throttle.io_service_bytes.write", "cgroup.v2.io.stat.wbytes")
    column = next(block.table.columns[name] for name in names if name in block.table.columns)
    return float(block.values[row, column])


def test_what_a_container_writes_is_seen_though_its_parent_was_quiet(
    cgroups: Cgroups, tmp_path: Path
) -> None:
    """Files that stood still are not read while the parent stands still: the first write ends that, at once."""
    parts = make_parts(TurnableClock())
    groups = [cgroups.container() for _ in range(3)]
    for group in groups:
        group.count_io(tmp_path)
    try:
        tick(parts, 3)
        before = [written_bytes(parts, group) for group in groups]
        for round_number in range(1, 8):
            # Never in step with the readings that ask everybody anyway.
            tick(parts, round_number % 3)
            target = tmp_path / str(round_number)
            group = groups[round_number % 3]
            copy = f"dd if=/dev/zero of={target} bs=64k count=4 oflag=direct status=none"
            assert group.spawn(copy.split()).wait(20) == 0
            tick(parts, 1)
            now = [written_bytes(parts, one) for one in groups]
            grown = [after - earlier for after, earlier in zip(now, before)]
            assert grown[round_number % 3] >= 4 * 65536
            assert grown[(round_number + 1) % 3] == 0
            before = now
    finally:
        parts.sampler.stop()


def test_a_folder_made_again_under_the_same_name_is_watched_again(cgroups: Cgroups) -> None:
    """What appears in it later is seen in the next tick, not in the next rescan."""
    top = f"nodescope-again-{os.getpid()}"
    parts = make_parts(TurnableClock())

    def tick_until_seen(group: Group) -> None:
        deadline = parts.sampler.counters.ticks + RESCAN_TICKS // 2
        while group.path not in str(parts.ring.latest()["container"].block.entities):
            assert parts.sampler.counters.ticks < deadline
            time.sleep(0.1)
            tick(parts, 1)

    try:
        tick(parts, 2)
        for number in range(1, 5, 2):
            first = cgroups.make(f"{top}/{number:064x}")
            tick_until_seen(first)
            cgroups.remove(first)
            for folder in first.folders.values():
                folder.parent.rmdir()
                folder.parent.mkdir()
            tick(parts, 2)
            second = cgroups.make(f"{top}/{number + 1:064x}")
            tick_until_seen(second)
            cgroups.remove(second)
            tick(parts, 1)
    finally:
        parts.sampler.stop()
        for root in mounts().values():
            # Made again by hand above: nobody else removes it.
            if (root / top).exists():
                remove_folder(root / top)


def test_memory_is_the_kernel_s_within_two_percent(agent: Agent, cgroups: Cgroups) -> None:
    """A process that allocates 200 MiB; usage is the kernel's, rss and working set are what it holds."""
    group = cgroups.container()
    hold(group, 200 * MIB)
    identifier = "/" + group.path
    wait_for(lambda: find(agent.scrape(), "container_memory_usage_bytes", id=identifier), "the container")
    text = next_tick(agent)
    kernel = kernel_memory_bytes(group)
    usage = value(text, "container_memory_usage_bytes", id=identifier)
    assert usage == pytest.approx(kernel, rel=TOLERANCE)
    # The interpreter itself takes some MiB beside what it was told to hold.
    for name in ("container_memory_rss", "container_memory_working_set_bytes"):
        assert 200 * MIB <= value(text, name, id=identifier) <= usage
    kernel_rss = group.number("memory.stat", "total_rss")
    assert value(text, "container_memory_rss", id=identifier) == pytest.approx(kernel_rss, rel=TOLERANCE)

    def peaks() -> list[float]:
        return [
            item.value for item in find(agent.scrape(), "container_memory_max_usage_bytes", id=identifier)
        ]

    wait_for(lambda: [peak for peak in peaks() if peak >= 200 * MIB], "the slow tier's turn", seconds=40)


def test_a_container_of_a_second_and_a_half_appears_and_leaves_an_obituary(
    agent: Agent, cgroups: Cgroups
) -> None:
    """It is in /live while it lives; afterwards its end is on /metrics and an event in the frames."""
    cursor = agent.get("/live").headers["nodescope-cursor"]
    group = cgroups.container()
    identifier = "/" + group.path
    group.spawn(burner(0.5))
    began = time.monotonic()
    hold(group, 20 * MIB)
    time.sleep(max(0.0, 1.5 - (time.monotonic() - began)))
    used = kernel_cpu_seconds(group)
    cgroups.remove(group)
    wait_for(
        lambda: find(agent.scrape(), "nodescope_container_exit_cpu_seconds", id=identifier), "an obituary"
    )
    text = agent.scrape()
    told = value(text, "nodescope_container_exit_cpu_seconds", id=identifier)
    # The last good reading is at most a tick old.
    assert 0 < told <= used + 0.5
    assert value(text, "nodescope_container_exit_memory_peak_bytes", id=identifier) >= 5 * MIB
    assert 0 < value(text, "nodescope_container_exit_lifetime_seconds", id=identifier) < 10
    assert value(text, "nodescope_container_exit_oom_kills", id=identifier) == 0
    assert find(text, CPU, id=identifier) == []

    frames = list(Decoder().decode(agent.client.get("/live", params={"since": cursor}).content))
    rows = [
        entity
        for frame in frames
        for block in frame.blocks
        if block.table.name == "container"
        for entity in block.entities
        if entity.attribute("id") == identifier
    ]
    assert 1 <= len(rows) <= 12
    events = [
        event for frame in frames for event in frame.events if dict(event.labels).get("id") == identifier
    ]
    assert [event.kind for event in events] == ["start", "exit"]
    assert facts_of(events[1])["cpu_seconds"] == pytest.approx(told)


def facts_of(event: Event) -> dict[str, float | str]:
    return dict(event.facts)


# -- churn ------------------------------------------------------------------------------

ROUNDS = 5
AT_ONCE = 60


def links(pid: int) -> list[str]:
    """Where every descriptor of a process leads."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return found


def test_three_hundred_cgroups_come_and_go_without_a_trace(cgroups: Cgroups) -> None:
    """
    Created and removed within a minute: no descriptor, row or label stays.

    Their obituaries do, for a minute; they are told apart by their name.
    Other containers of this machine may come and go meanwhile.
    """
    with running_agent() as agent:
        before = links(agent.pid)
        paths = []
        began = time.monotonic()
        for _ in range(ROUNDS):
            groups = [cgroups.container() for _ in range(AT_ONCE)]
            paths += [group.path for group in groups]
            wait_for(lambda path=groups[-1].path: f'id="/{path}"' in agent.scrape(), "the last of a round")  # type: ignore[misc]
            for group in groups:
                cgroups.remove(group)
        assert time.monotonic() - began < 60
        assert len(set(paths)) == ROUNDS * AT_ONCE

        def remaining() -> list[str]:
            return [link for link in links(agent.pid) if any(path in link for path in paths)]

        wait_for(lambda: not remaining(), "no descriptor of a removed cgroup", seconds=10)
        # Other processes and containers of this machine come and go, too.
        others = [link for link in links(agent.pid) if not link.startswith(("/sys/", "/proc/"))]
        known = [link for link in before if not link.startswith(("/sys/", "/proc/"))]
        # A connection more or less of our own client.
        assert len(others) <= len(known) + 2

        mine = {f"/{path}" for path in paths}

        def remaining_series() -> list[str]:
            return [
                line
                for line in agent.scrape().splitlines()
                if not line.startswith("nodescope_container_exit_") and any(path in line for path in paths)
            ]

        # Limits are read in a slower tier and stay until its next turn.
        wait_for(lambda: not remaining_series(), "no series of a removed cgroup", seconds=40)
        text = agent.scrape()
        ended = find(text, "nodescope_container_exit_lifetime_seconds")
        assert mine <= {item.labels["id"] for item in ended}

        def remembered() -> set[str]:
            """A window still has who was there at a slow tier's turn inside it."""
            window = agent.get("/window?scope=container&seconds=2").json()
            return mine & {entity["labels"]["id"] for entity in window["entities"]}

        wait_for(lambda: not remembered(), "a window without them", seconds=40)
        assert agent.get("/status").json()["sources"]["container"]["state"] == "ok"


def test_nothing_inside_the_agent_remembers_a_removed_cgroup(cgroups: Cgroups) -> None:
    """Neither sources nor plans nor the ring, once the ring's time and the obituaries' are over."""
    clock = TurnableClock()
    parts = make_parts(clock)
    with serving(parts) as client:
        tick(parts, 2)
        groups = [cgroups.container() for _ in range(20)]

        def tick_and_scrape() -> str:
            tick(parts, 1)
            return only(client.get("/metrics").text, groups)

        wait_for(lambda: groups[-1].path in tick_and_scrape(), "them all")
        for group in groups:
            cgroups.remove(group)
        wait_for(lambda: CPU not in tick_and_scrape(), "their end")
        assert "nodescope_container_exit_" in only(client.get("/metrics").text, groups)
        tick(parts, 3, OBITUARY_SECONDS)
        assert only(client.get("/metrics").text, groups) == ""
        assert only(client.get("/window?scope=container&seconds=100").text, groups) == ""
        source: Any = next(slot.source for slot in parts.sampler._slots if slot.name == "container")
        held = [grid._rows for grid in source._grids.values()]
        assert only("\n".join(str(entity) for rows in held for entity in rows), groups) == ""
        assert only("\n".join(map(str, source._lives)), groups) == ""
        assert only("\n".join(map(str, source._pids._pids)), groups) == ""
        watches = source._discovery._event_watches
        assert only("\n".join(watches), groups) == ""
        held_moments = [
            str(moment.block.entities) for track in parts.ring._tracks.values() for moment in track.moments
        ]
        assert only("\n".join(held_moments), groups) == ""


def only(text: str, groups: list[Group]) -> str:
    """The lines of a text that speak of one of the groups."""
    return "\n".join(line for line in text.splitlines() if any(group.path in line for group in groups))
