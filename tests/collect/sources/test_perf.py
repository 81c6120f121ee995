"""The kernel's counters, on faked answers of the system call: this needs no PMU."""

import errno
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.hardware import make_context, value, write_files

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.collect.sources.perf.perf_event import (
    ATTRIBUTES_BYTES,
    Count,
    PerfCalls,
    build_attributes,
    parse_count,
)
from nodescope.collect.sources.perf.source import PerfSource, Sum


@dataclass
class FakeKernel:
    """Answers perf_event_open and read; each group counts what the test says."""

    refuse: dict[int, int] = field(default_factory=dict)
    """errno by event number."""
    counts: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    """(enabled, running, first, second) by the leader's descriptor."""
    opened: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """(event, cpu, leader) by descriptor."""
    closed: list[int] = field(default_factory=list)

    def open(self, attributes: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
        kind, size, event = struct.unpack_from("<IIQ", attributes)
        assert (kind, size, len(attributes), pid) == (0, 64, 64, -1)
        if event in self.refuse:
            raise OSError(self.refuse[event], os.strerror(self.refuse[event]))
        descriptor = 100 + len(self.opened)
        self.opened[descriptor] = (event, cpu, leader)
        return descriptor

    def read(self, descriptor: int) -> bytes:
        if descriptor not in self.counts:
            return b""
        return struct.pack("<5Q", 2, *self.counts[descriptor])

    def close(self, descriptor: int) -> None:
        self.closed.append(descriptor)

    def leader(self, event: int, cpu: int) -> int:
        return next(number for number, known in self.opened.items() if known == (event, cpu, -1))


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_files(tmp_path, {"sys/devices/system/cpu/online": "0-1", "proc/sys/kernel/perf_event_paranoid": 2})
    return tmp_path


def make_source(kernel: FakeKernel, node: Path) -> PerfSource:
    return PerfSource(make_context(node), PerfCalls(kernel.open, kernel.read, kernel.close))


def test_two_pairs_are_opened_on_every_online_core(node: Path) -> None:
    """Cycles lead instructions, references lead misses: each pair is counted at the same moments."""
    kernel = FakeKernel()
    make_source(kernel, node)
    assert [(event, cpu) for event, cpu, _ in kernel.opened.values()] == [
        (event, cpu) for cpu in (0, 1) for event in (0, 1, 2, 3)
    ]
    assert [leader for _, _, leader in kernel.opened.values()][:4] == [-1, 100, -1, 102]


def test_growth_is_scaled_where_the_processor_took_turns(node: Path) -> None:
    """Counted half of the time: twice as much happened. The scale is that of the interval."""
    kernel = FakeKernel()
    source = make_source(kernel, node)
    work, cache = kernel.leader(0, 0), kernel.leader(2, 0)
    kernel.counts = {work: (10**9, 10**9, 1000, 2000), cache: (10**9, 10**9, 100, 10)}
    source.parse(source.read(), 0)
    kernel.counts = {work: (2 * 10**9, 2 * 10**9, 4000, 8000), cache: (2 * 10**9, 15 * 10**8, 300, 60)}
    (block,) = source.parse(source.read(), 10**9)
    assert value(block, "perf.cycles") == 3000
    assert value(block, "perf.instructions") == 6000
    assert value(block, "perf.cache_references") == 400
    assert value(block, "perf.cache_misses") == 100
    assert value(block, "perf.cache.seconds") == 1.0


def test_a_pair_that_never_ran_was_not_measured(node: Path) -> None:
    """Neither its counts nor its seconds grow: a window leaves the interval out."""
    kernel = FakeKernel()
    source = make_source(kernel, node)
    work = kernel.leader(0, 0)
    kernel.counts = {work: (10**9, 10**9, 1000, 2000)}
    source.parse(source.read(), 0)
    kernel.counts = {work: (2 * 10**9, 10**9, 1000, 2000)}
    (block,) = source.parse(source.read(), 10**9)
    assert value(block, "perf.work.seconds") == 0.0
    assert np.isnan(value(block, "perf.cache_misses"))


@pytest.mark.parametrize("level", [2, 3, 4])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_denied_names_the_paranoid_level_and_the_capability(node: Path, level: int, number: int) -> None:
    write_files(node, {"proc/sys/kernel/perf_event_paranoid": level})
    kernel = FakeKernel(refuse=dict.fromkeys(range(4), number))
    with pytest.raises(SourceFailed, match=rf"paranoid is {level}.*CAP_PERFMON"):
        make_source(kernel, node)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV])
def test_no_pmu_is_absent(node: Path, number: int) -> None:
    """What a virtual machine answers; one core speaks for all."""
    kernel = FakeKernel(refuse=dict.fromkeys(range(4), number))
    with pytest.raises(SourceAbsent, match="vPMU"):
        make_source(kernel, node)


def test_no_system_call_is_absent(node: Path) -> None:
    kernel = FakeKernel(refuse=dict.fromkeys(range(4), errno.ENOSYS))
    with pytest.raises(SourceAbsent, match="seccomp"):
        make_source(kernel, node)


def test_too_many_files_says_so(node: Path) -> None:
    kernel = FakeKernel(refuse=dict.fromkeys(range(4), errno.EMFILE))
    with pytest.raises(SourceFailed, match="ulimit"):
        make_source(kernel, node)


def test_a_processor_without_cache_events_still_has_ipc(node: Path) -> None:
    kernel = FakeKernel(refuse={2: errno.ENOENT, 3: errno.ENOENT})
    source = make_source(kernel, node)
    kernel.counts = {kernel.leader(0, cpu): (1, 1, 1, 1) for cpu in (0, 1)}
    (block,) = source.parse(source.read(), 0)
    assert value(block, "perf.cycles") == 0.0
    assert np.isnan(value(block, "perf.cache_misses"))


def test_a_half_opened_pair_is_closed(node: Path) -> None:
    """No descriptor is left behind when the second event is refused."""
    kernel = FakeKernel(refuse={1: errno.ENOENT, 3: errno.ENOENT})
    with pytest.raises(SourceAbsent):
        make_source(kernel, node)
    assert sorted(kernel.closed) == sorted(kernel.opened)


def test_a_core_that_comes_online_is_counted_and_the_sums_go_on(node: Path) -> None:
    kernel = FakeKernel()
    source = make_source(kernel, node)
    kernel.counts = {kernel.leader(0, 0): (10, 10, 100, 200), kernel.leader(0, 1): (10, 10, 100, 200)}
    source.parse(source.read(), 0)
    kernel.counts = {kernel.leader(0, 0): (20, 20, 150, 300), kernel.leader(0, 1): (20, 20, 150, 300)}
    source.parse(source.read(), 0)
    first = dict(kernel.opened)
    write_files(node, {"sys/devices/system/cpu/online": "0-2"})
    kernel.opened, kernel.counts = {}, {100 + n: (5, 5, 10, 20) for n in range(0, 12, 2)}
    (block,) = source.parse(source.read(), 0)
    assert len(block.entities) == 3
    assert value(block, "perf.cycles") == 60
    assert sorted(kernel.closed) == sorted(first)


def test_every_counter_ended_is_failed(node: Path) -> None:
    kernel = FakeKernel()
    source = make_source(kernel, node)
    with pytest.raises(SourceFailed, match="opened again"):
        source.read()


counts = st.tuples(
    st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**12), st.integers(0, 10**12)
)


@given(st.lists(counts, max_size=20))
def test_sums_only_grow(steps: list[tuple[int, int, int, int]]) -> None:
    """forall answers of the kernel: sums never fall, and growth >= what was counted."""
    sums = Sum(Count(0, 0, 0, 0))
    for numbers in steps:
        before = (sums.first, sums.second, sums.seconds)
        sums.add(Count(*numbers), 2)
        assert (sums.first, sums.second, sums.seconds) >= before


def test_the_attributes_are_the_first_version_of_the_struct() -> None:
    """64 bytes: every kernel since 2.6.31 takes them."""
    assert len(build_attributes(3)) == ATTRIBUTES_BYTES
    assert struct.unpack_from("<IIQQQQ", build_attributes(3)) == (0, 64, 3, 0, 0, 11)


def test_a_short_answer_is_a_core_that_went_offline() -> None:
    assert parse_count(b"") is None
    assert parse_count(struct.pack("<5Q", 2, 4, 3, 2, 1)) == Count(4, 3, 2, 1)
