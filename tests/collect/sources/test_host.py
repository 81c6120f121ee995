"""The psutil source gives what the Linux sources would, under the same names."""

from types import SimpleNamespace
from typing import Any

import psutil

from nodescope.collect.sources.host import choose_processes, parse_host, read_host


def test_psutil_on_this_machine_becomes_blocks_with_the_linux_names() -> None:
    """A real psutil answer parses; cores, memory and this very process are in it."""
    blocks = {block.table.name: block for block in parse_host(read_host(psutil), 25, 1)}
    assert len(blocks["cpu.cpu"].entities) == psutil.cpu_count()
    assert blocks["memory"].values[0, 0] == psutil.virtual_memory().total
    published = {metric.published for block in blocks.values() for metric in block.table.metrics}
    assert {
        "node_cpu_seconds_total",
        "node_load1",
        "cpu_process_rss_bytes",
        "node_memory_available_bytes",
    } <= published
    assert len(blocks["process"].entities) >= 1


def test_a_process_that_may_not_be_seen_is_left_out() -> None:
    """The system refuses other users' times: no row, not a row of zeros."""
    hidden = SimpleNamespace(
        info={"pid": 1, "name": "launchd", "create_time": 0.0, "cpu_times": None, "memory_info": None}
    )
    fake: Any = SimpleNamespace(
        process_iter=lambda _: [hidden],
        cpu_times=lambda percpu: [],
        getloadavg=lambda: (0.1, 0.2, 0.3),
        virtual_memory=lambda: SimpleNamespace(total=8, available=4),
        net_io_counters=lambda pernic: {},
        disk_io_counters=lambda perdisk: None,
    )
    answer = read_host(fake)
    assert answer["processes"] == []
    assert answer["disk"] == {}


def test_the_top_by_cpu_and_by_memory_are_kept() -> None:
    rows = [[pid, f"p{pid}", 1.0, float(pid), 100.0 - pid] for pid in range(10)]
    chosen = {entity.ids[0] for entity in choose_processes(rows, 2)}
    assert chosen == {"9", "8", "0", "1"}
