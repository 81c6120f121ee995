"""
The node as a fixture: the files that the agent reads, at two instants.

    node/node.toml                 kernel, page size, the measured time between both
    node/t0/{calls,proc,sys,var}   the first instant
    node/t1/{calls,proc,sys,var}   the second, about a second later

Only what nodescope has a use for: of the kernel's threads one stands for all,
and of a cgroup's files those that no reader of ours opens stay behind.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CGROUP = Path("/sys/fs/cgroup")
SECONDS_BETWEEN = 1.0
NODE_FILES = (
    *("stat", "loadavg", "meminfo", "vmstat", "diskstats", "uptime", "mounts", "1/mounts", "net/dev"),
    *("pressure/cpu", "pressure/memory", "pressure/io", "sys/fs/file-nr"),
    *("sys/kernel/ostype", "sys/kernel/osrelease", "sys/kernel/version", "sys/kernel/hostname"),
    *("sys/kernel/domainname", "sys/kernel/arch"),
)
PROCESS_FILES = ("stat", "cgroup", "comm", "smaps_rollup", "net/dev", "ns/net")
CGROUP_FILES = (
    *("cgroup.procs", "cpu.max", "cpu.pressure", "cpu.stat", "io.pressure", "io.stat"),
    *("memory.current", "memory.events", "memory.max", "memory.peak", "memory.pressure", "memory.stat"),
    *("memory.swap.current", "pids.current", "pids.max"),
)
# Told apart by name: the tree's root, pods and slices (what outlives their
# containers), groups inside a container (whose processes are the container's).
ROOT_FILES = ("cgroup.controllers", "cgroup.procs", "cpu.stat", "memory.stat", "io.stat")
INNER_FILES = ("memory.events",)
NESTED_FILES = ("cgroup.procs",)
# File systems with storage of their own: the disks and /run.
FILESYSTEMS = ("ext4", "tmpfs")
# These are meant when they are empty; any other empty file is one that the kernel refuses to answer.
MAY_BE_EMPTY = ("cgroup.procs", "io.stat")
KERNEL_THREADS = (2,)


def read(path: Path) -> bytes:
    """Empty where there is none or it answers with an error: then it is not part of the node."""
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return b""


def find_processes() -> Iterator[Path]:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda one: int(one.name)):
        # A kernel thread has an empty command line.
        if int(folder.name) in KERNEL_THREADS or read(folder / "cmdline"):
            yield folder


def find_cgroups() -> list[Path]:
    return [CGROUP, *sorted(path for path in CGROUP.rglob("*") if path.is_dir())]


def list_cgroup_files(cgroup: Path) -> tuple[str, ...]:
    if cgroup == CGROUP:
        return ROOT_FILES
    if cgroup.suffix == ".slice" or cgroup.name.startswith(("kubepods", "burstable", "besteffort", "pod")):
        return INNER_FILES
    return NESTED_FILES if cgroup.name == "init.scope" else CGROUP_FILES


def find_files() -> Iterator[Path]:
    """In the order of reading: the same at both instants, so that rates hold for every file."""
    yield from (Path("/proc") / name for name in NODE_FILES)
    for cgroup in find_cgroups():
        yield from (cgroup / name for name in list_cgroup_files(cgroup))
    for process in find_processes():
        yield from (process / name for name in PROCESS_FILES)
    for folder in ("/var/log/pods", "/var/log/containers"):
        yield from Path(folder).rglob("*.log")


def is_part(path: Path, content: bytes) -> bool:
    return bool(content) or path.suffix == ".log" or (path.name in MAY_BE_EMPTY and path.exists())


def read_instant() -> dict[Path, bytes]:
    """All of it into memory first: writing between two readings would stretch the instant."""
    return {path: content for path in find_files() if is_part(path, content := read(path))}


def read_filesystems() -> list[dict[str, Any]]:
    """What statvfs says, which no file does; saved as the filesystem source's own answer."""
    answers = []
    for line in Path("/proc/mounts").read_text().splitlines():
        device, point, kind, *_ = line.split(" ")
        if kind in FILESYSTEMS:
            asked = os.statvfs(point)
            sizes = [blocks * asked.f_frsize for blocks in (asked.f_blocks, asked.f_bfree, asked.f_bavail)]
            counts = [asked.f_files, asked.f_ffree, bool(asked.f_flag & os.ST_RDONLY)]
            values = [float(value) for value in (*sizes, *counts)]
            answers.append({"device": device, "mountpoint": point, "fstype": kind, "values": values})
    return answers


def write_instant(folder: Path, files: dict[Path, bytes]) -> None:
    for path, content in files.items():
        target = folder / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".log":
            # Names are read from these, never their content.
            target.touch()
        elif path.name == "net" and path.parent.name == "ns":
            target.symlink_to(os.fsdecode(content))
        else:
            target.write_bytes(content)


def write_node(folder: Path) -> None:
    t0_mono_ns = time.monotonic_ns()
    first = read_instant()
    time.sleep(max(0.0, SECONDS_BETWEEN - (time.monotonic_ns() - t0_mono_ns) / 1e9))
    t1_mono_ns = time.monotonic_ns()
    second = read_instant()
    for name, files in (("t0", first), ("t1", second)):
        write_instant(folder / name, files)
        (folder / name / "calls").mkdir()
        (folder / name / "calls/filesystem.json").write_text(json.dumps(read_filesystems(), indent=1) + "\n")
    (folder / "node.toml").write_text(
        f'kernel = "{os.uname().release}"\n'
        f"page_bytes = {os.sysconf('SC_PAGE_SIZE')}\n"
        "cgroup = 2\n"
        f"elapsed_ns = {t1_mono_ns - t0_mono_ns:_}  # t1 - t0, measured, not nominal\n"
        'captured_with = "tests/vm/run --capture DIR"\n'
    )
