"""
The node as a fixture: the files that the agent reads, at two instants.

    node/node.toml           kernel, page size, the measured time between both
    node/t0/{proc,sys,var}   the first instant
    node/t1/{proc,sys,var}   the second, about a second later

Only what nodescope has a use for: of the kernel's threads one stands for all,
and of a cgroup's files those that no reader of ours opens stay behind.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS_BETWEEN = 1.0
NODE_FILES = (
    *("stat", "loadavg", "meminfo", "vmstat", "diskstats", "uptime", "mounts", "1/mounts", "net/dev"),
    *("pressure/cpu", "pressure/memory", "pressure/io", "sys/fs/file-nr"),
    *("sys/kernel/ostype", "sys/kernel/osrelease", "sys/kernel/version", "sys/kernel/hostname"),
)
PROCESS_FILES = ("stat", "statm", "status", "cgroup", "comm", "smaps_rollup", "net/dev")
CGROUP_FILES = (
    *("cgroup.controllers", "cgroup.events", "cgroup.procs", "cgroup.stat", "cgroup.threads"),
    *("cpu.max", "cpu.pressure", "cpu.stat", "cpu.weight", "io.pressure", "io.stat"),
    *("memory.current", "memory.events", "memory.high", "memory.max", "memory.min", "memory.peak"),
    *("memory.pressure", "memory.stat", "memory.swap.current", "memory.swap.max", "pids.current", "pids.max"),
)
KERNEL_THREADS = (2,)


def find_processes() -> Iterator[Path]:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda one: int(one.name)):
        # A kernel thread has an empty command line.
        if int(folder.name) in KERNEL_THREADS or read(folder / "cmdline"):
            yield folder


def find_files() -> Iterator[Path]:
    """In the order of reading: the same at both instants, so that rates hold for every file."""
    yield from (Path("/proc") / name for name in NODE_FILES)
    for cgroup in (Path("/sys/fs/cgroup"), *sorted(Path("/sys/fs/cgroup").rglob("*/"))):
        yield from (cgroup / name for name in CGROUP_FILES)
    for process in find_processes():
        yield from (process / name for name in PROCESS_FILES)


def read(path: Path) -> bytes:
    """Empty where there is none or it answers with an error: then it is not part of the node."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def read_instant() -> dict[Path, bytes]:
    """All of it into memory first: writing between two readings would stretch the instant."""
    kept = ("cgroup.procs", "cgroup.threads", "io.stat")
    return {
        path: content
        for path in find_files()
        if (content := read(path)) or (path.name in kept and path.exists())
    }


def write_instant(folder: Path, files: dict[Path, bytes]) -> None:
    for path, content in files.items():
        target = folder / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for log in Path("/var/log/pods").rglob("*.log"):
        target = folder / log.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def write_node(folder: Path) -> None:
    t0_mono_ns = time.monotonic_ns()
    first = read_instant()
    time.sleep(max(0.0, SECONDS_BETWEEN - (time.monotonic_ns() - t0_mono_ns) / 1e9))
    t1_mono_ns = time.monotonic_ns()
    second = read_instant()
    write_instant(folder / "t0", first)
    write_instant(folder / "t1", second)
    (folder / "node.toml").write_text(
        f'kernel = "{os.uname().release}"\n'
        f"page_bytes = {os.sysconf('SC_PAGE_SIZE')}\n"
        "cgroup = 2\n"
        f"elapsed_ns = {t1_mono_ns - t0_mono_ns:_}\n"
        'captured_with = "tests/vm/run --capture DIR"\n'
    )
