"""Counters of single containers: on faked answers of the system call, and really with software events."""

import errno
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cgroups import why_not
from tests.collect.hardware import make_context, value, write_files
from tests.collect.sources.test_perf import FakeKernel
from tests.integration.agents import TurnableClock, wait_for

from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.perf_requests import MOST_REQUESTS, REQUEST_SECONDS, PerfRequests
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.perf.cgroup_source import NOBODY_ASKED, PerfCgroupSource, choose
from nodescope.collect.sources.perf.perf_event import SOFTWARE, PerfCalls

SECOND = 10**9
CONTAINERS = ("web", "database", "batch")


class CgroupKernel(FakeKernel):
    """Knows by the folder's inode which cgroup a descriptor is about."""

    def open(self, attributes: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
        kind, size, event = struct.unpack_from("<IIQ", attributes)
        assert (kind, size, flags) == (0, 64, 4 | 8)
        if event in self.refuse:
            raise OSError(self.refuse[event], os.strerror(self.refuse[event]))
        descriptor = 100 + len(self.opened)
        self.opened[descriptor] = (event, cpu, leader)
        self.cgroup_of = {**getattr(self, "cgroup_of", {}), descriptor: os.fstat(pid).st_ino}
        return descriptor

    def leaders(self, folder: Path, event: int) -> list[int]:
        """The open ones, by core."""
        inode = folder.stat().st_ino
        found = [
            number
            for number, (known, _, leader) in self.opened.items()
            if known == event and leader == -1 and self.cgroup_of[number] == inode
        ]
        return [number for number in found if number not in self.closed]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_files(
        tmp_path,
        {
            "sys/devices/system/cpu/online": "0-1",
            "proc/sys/kernel/perf_event_paranoid": 2,
            "sys/fs/cgroup/cgroup.procs": "",
            **{f"sys/fs/cgroup/kubepods/{name}/cgroup.procs": "" for name in CONTAINERS},
        },
    )
    return tmp_path


def make_member(name: str) -> LiveContainer:
    labels = (("namespace", "shop"), ("pod", f"{name}-0"), ("container", name))
    number = f"{CONTAINERS.index(name) + 1:064x}"
    path = f"kubepods/{name}"
    return LiveContainer(
        Entity("container", (number, "7"), labels),
        CgroupName(container_id=number),
        path,
        f"sys/fs/cgroup/{path}",
    )


def open_source(node: Path, kernel: FakeKernel, **settings: Any) -> tuple[PerfCgroupSource, Context]:
    context = make_context(node, **settings)
    context.live_containers.replace(tuple(make_member(name) for name in CONTAINERS))
    source = PerfCgroupSource(context, PerfCalls(kernel.open, kernel.read, kernel.close))
    return source, context


def names(source: PerfCgroupSource) -> list[str]:
    (block,) = source.parse(source.read(), 0)
    return [dict(entity.labels)["container"] for entity in block.entities]


def test_nothing_is_counted_unless_somebody_asks(node: Path) -> None:
    """One pair is tried at the start and closed again."""
    kernel = CgroupKernel()
    source, _ = open_source(node, kernel)
    assert names(source) == []
    assert source.note == NOBODY_ASKED
    assert sorted(kernel.closed) == sorted(kernel.opened)


def test_a_wish_opens_and_its_end_closes(node: Path) -> None:
    kernel = CgroupKernel()
    source, context = open_source(node, kernel)
    context.perf_requests.add("web")
    assert names(source) == ["web"]
    assert len(kernel.leaders(node / "sys/fs/cgroup/kubepods/web", 0)) == 2
    context.perf_requests._until_mono_ns.clear()
    assert names(source) == []
    assert sorted(kernel.closed) == sorted(kernel.opened)


def test_cores_are_summed_and_each_interval_scaled(node: Path) -> None:
    """Core 0 counted half of the time; core 1 all of it; on a core it never ran on it did nothing."""
    kernel = CgroupKernel()
    source, _ = open_source(node, kernel, perf_containers=("shop/web-0/web",))
    source.read()
    work = kernel.leaders(node / "sys/fs/cgroup/kubepods/web", 0)
    cache = kernel.leaders(node / "sys/fs/cgroup/kubepods/web", 2)
    kernel.counts = {
        work[0]: (SECOND, SECOND // 2, 1000, 2000),
        work[1]: (SECOND, SECOND, 500, 700),
        cache[0]: (0, 0, 0, 0),
        cache[1]: (SECOND, SECOND, 100, 10),
    }
    (block,) = source.parse(source.read(), 0)
    assert value(block, "perf_cgroup.cycles") == 2500
    assert value(block, "perf_cgroup.instructions") == 4700
    assert value(block, "perf_cgroup.cache_references") == 100
    kernel.counts[work[0]] = (2 * SECOND, SECOND + SECOND // 2, 1100, 2100)
    (block,) = source.parse(source.read(), SECOND)
    assert value(block, "perf_cgroup.cycles") == 2600, "the second interval was counted whole"


def test_the_budget_is_descriptors(node: Path) -> None:
    """Two cores, two pairs: eight a container. The first in the order of the perf_requests fit."""
    kernel = CgroupKernel()
    source, _ = open_source(node, kernel, perf_containers=("database", "*"), perf_descriptors=17)
    assert names(source) == ["database", "web"]
    assert "1 more do not fit: perf_descriptors allow 2" in source.note
    assert len(kernel.opened) - len(kernel.closed) == 16


def test_a_container_that_goes_is_closed_and_one_that_comes_is_opened(node: Path) -> None:
    kernel = CgroupKernel()
    source, context = open_source(node, kernel, perf_containers=("*",))
    assert names(source) == list(CONTAINERS)
    context.live_containers.replace((make_member("batch"),))
    assert names(source) == ["batch"]
    assert len(kernel.opened) - len(kernel.closed) == 8


def test_a_cgroup_that_is_gone_is_said_and_the_others_go_on(node: Path) -> None:
    kernel = CgroupKernel()
    (node / "sys/fs/cgroup/kubepods/web/cgroup.procs").unlink()
    (node / "sys/fs/cgroup/kubepods/web").rmdir()
    source, _ = open_source(node, kernel, perf_containers=("*",))
    assert names(source) == ["database", "batch"]
    assert "No such file" in source.note


def test_a_core_that_comes_online_goes_on_with_the_sums(node: Path) -> None:
    kernel = CgroupKernel()
    source, _ = open_source(node, kernel, perf_containers=("web",))
    source.read()
    folder = node / "sys/fs/cgroup/kubepods/web"
    kernel.counts = dict.fromkeys(kernel.leaders(folder, 0), (9, 9, 100, 200))
    source.parse(source.read(), 0)
    write_files(node, {"sys/devices/system/cpu/online": "0-2"})
    source.read()
    kernel.counts = dict.fromkeys(kernel.leaders(folder, 0), (9, 9, 10, 20))
    (block,) = source.parse(source.read(), 0)
    assert value(block, "perf_cgroup.cycles") == 230


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (errno.ENOENT, SourceAbsent, "vPMU"),
        (errno.ENOSYS, SourceAbsent, "seccomp"),
        (errno.EACCES, SourceFailed, "paranoid is 2.*CAP_PERFMON"),
        (errno.EMFILE, SourceFailed, "ulimit"),
    ],
)
def test_a_refusal_has_its_reason(node: Path, number: int, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        open_source(node, CgroupKernel(refuse=dict.fromkeys(range(4), number)))


def test_a_processor_without_cache_events_still_has_cycles(node: Path) -> None:
    kernel = CgroupKernel(refuse={2: errno.ENOENT, 3: errno.ENOENT})
    source, _ = open_source(node, kernel, perf_containers=("web",))
    source.read()
    kernel.counts = dict.fromkeys(kernel.leaders(node / "sys/fs/cgroup/kubepods/web", 0), (1, 1, 5, 6))
    (block,) = source.parse(source.read(), 0)
    assert value(block, "perf_cgroup.cycles") == 10
    assert np.isnan(value(block, "perf_cgroup.cache_misses"))


def test_no_tree_for_perf_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="perf_event"):
        PerfCgroupSource(make_context(tmp_path))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("shop/web-0/web", ["web"]),
        ("shop/*", list(CONTAINERS)),
        ("database-0", ["database"]),
        ("b*", ["batch"]),
        ("0" * 63 + "2", ["database"]),
        ("nobody", []),
        ("", []),
    ],
)
def test_containers_are_meant_by_name_or_id(pattern: str, found: list[str]) -> None:
    chosen, left_out = choose([make_member(name) for name in CONTAINERS], [pattern], 10)
    assert [dict(member.entity.labels)["container"] for member in chosen] == found
    assert left_out == 0


def test_a_wish_ends_by_itself_and_there_are_not_many() -> None:
    clock = TurnableClock()
    perf_requests = PerfRequests(clock)
    perf_requests.add("a")
    clock.turn(REQUEST_SECONDS / 2)
    perf_requests.add("b")
    clock.turn(REQUEST_SECONDS / 2)
    assert perf_requests.current() == ("b",)
    for number in range(2 * MOST_REQUESTS):
        perf_requests.add(str(number))
    assert len(perf_requests.current()) == MOST_REQUESTS
    assert perf_requests.current()[-1] == str(2 * MOST_REQUESTS - 1)


# -- the real kernel ----------------------------------------------------------------

UNIFIED = Path("/sys/fs/cgroup/unified")
BUSY = "while True: pass"
# PERF_COUNT_SW_* of linux/perf_event.h
CPU_CLOCK = 0
CONTEXT_SWITCHES = 3


@pytest.fixture
def groups() -> Any:
    """Two cgroups of cgroup v2, one of which is busy; gone afterwards."""
    base = UNIFIED if (UNIFIED / "cgroup.procs").exists() else Path("/sys/fs/cgroup")
    reason = why_not() or ("" if (base / "cgroup.procs").exists() else "no cgroup v2 tree")
    if reason:
        pytest.skip(reason)
    folders = [base / f"nodescope-perf-{os.getpid()}-{word}" for word in ("busy", "idle")]
    for folder in folders:
        folder.mkdir()
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        (folders[0] / "cgroup.procs").write_text(str(process.pid))
        yield folders
    finally:
        process.kill()
        process.wait()
        for folder in folders:
            wait_for(remover(folder), f"{folder} empty")


def remover(folder: Path) -> Callable[[], bool]:
    def remove() -> bool:
        try:
            folder.rmdir()
        except OSError:
            return False
        return True

    return remove


@pytest.mark.real
def test_software_events_of_a_cgroup_are_counted_really(groups: list[Path]) -> None:
    """
    cpu-clock in nanoseconds lies within what the cgroup's own cpu.stat grew by; the idle one has none.

    Beside it context switches, not task-clock: the kernel takes that from a clock that all events of
    the core share, and it was seen to fall behind cpu-clock and the time the pair itself was running.
    """
    context = make_context(Path("/"), perf_containers=("nodescope-perf-*",))
    assert isinstance(context.root, NodeRoot)
    members = tuple(
        LiveContainer(
            Entity("service", (folder.name, str(folder.stat().st_ino)), (("service", folder.name),)),
            CgroupName(),
            folder.name,
            str(folder)[1:],
        )
        for folder in groups
    )
    context.live_containers.replace(members)
    try:
        source = PerfCgroupSource(context, kind=SOFTWARE, groups={"clock": (CPU_CLOCK, CONTEXT_SWITCHES)})
    except (SourceAbsent, SourceFailed) as error:
        pytest.skip(f"software events are refused here: {error}")
    try:
        # Taken around both readings: however long this test is kept waiting, the count lies between.
        before_us = used_us(groups[0])
        source.parse(source.read(), 0)
        opened_us = used_us(groups[0])
        wait_for(lambda: used_us(groups[0]) - opened_us > 300_000, "0.3 s of CPU time")
        least_us = used_us(groups[0]) - opened_us
        (block,) = source.parse(source.read(), 0)
        most_us = used_us(groups[0]) - before_us
        counted_us = block.values[0, 0] / 1000
        # The kernel books a running process's time at its next timer tick: a tenth is more than that.
        assert 0.9 * least_us <= counted_us <= 1.1 * most_us
        assert block.values[1, 0] == 0
    finally:
        source.close()


def used_us(folder: Path) -> int:
    return int((folder / "cpu.stat").read_text().split()[1])
