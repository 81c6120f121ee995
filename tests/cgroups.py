"""
Real cgroups for tests and benches: made, filled with processes, limited, removed.

    with Cgroups() as cgroups:
        container = cgroups.container()              # a pod with one container
        container.limit(memory_bytes=256 << 20)
        container.spawn(["sleep", "60"])
        print(container.read("memory.usage_in_bytes"))

A group is one relative path in every hierarchy that was asked for: one folder
per v1 controller, one in the v2 tree. Leaving the block kills what runs inside,
removes the folders, children first, and then the parents, as far as one of us
made them and nobody else uses them.

A killed test run cannot clean up. Therefore the pod UIDs made here carry the
maker's pid (`NNNNNNNN-5c09-4e00-8000-<pid, 12 hex digits>`), and the next
`Cgroups()` removes those whose maker is gone.
"""

import contextlib
import errno
import functools
import itertools
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.torture.cgroup_tenant import empty_folder

Driver = Literal["cgroupfs", "systemd"]
Qos = Literal["guaranteed", "burstable", "besteffort"]

UNIFIED = "unified"
HIERARCHIES = ("memory", "cpu", "cpuacct", "pids", "blkio", UNIFIED)

# A removed process leaves its group when the kernel has finished its exit;
# with a large address space on a busy machine that takes a while.
REMOVAL_SECONDS = 10.0

# Parents made here are told from kubelet's own by their mode: two runs may
# share them, and the last one out removes them.
PARENT_MODE = 0o751

_OURS = re.compile(r"([0-9a-f]{8})[-_]5c09[-_]4e00[-_]8000[-_]([0-9a-f]{12})")
_JOIN = 'for procs in $JOIN; do echo $$ > "$procs" || exit 96; done; unset JOIN; exec "$@"'
_numbers = itertools.count(1)


def pod_uid() -> str:
    return f"{next(_numbers):08x}-5c09-4e00-8000-{os.getpid():012x}"


def container_id() -> str:
    return f"{next(_numbers):016x}{os.getpid():016x}" * 2


def pod_path(uid: str, qos: Qos = "burstable", driver: Driver = "cgroupfs") -> str:
    """Where kubelet puts a pod; guaranteed pods stand directly under the root."""
    if driver == "cgroupfs":
        return f"kubepods/pod{uid}" if qos == "guaranteed" else f"kubepods/{qos}/pod{uid}"
    underscored = uid.replace("-", "_")
    if qos == "guaranteed":
        return f"kubepods.slice/kubepods-pod{underscored}.slice"
    return f"kubepods.slice/kubepods-{qos}.slice/kubepods-{qos}-pod{underscored}.slice"


def container_path(uid: str, identifier: str, qos: Qos = "burstable", driver: Driver = "cgroupfs") -> str:
    leaf = identifier if driver == "cgroupfs" else f"cri-containerd-{identifier}.scope"
    return f"{pod_path(uid, qos, driver)}/{leaf}"


@functools.cache
def mounts() -> Mapping[str, Path]:
    """
    Hierarchy -> mount point, from /proc/self/mountinfo.

    `0 1 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct`: the
    options after the dash name the v1 controllers; cgroup2 is `unified`.
    """
    found: dict[str, Path] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            kind, _, options = after.split(" ", 2)
            if kind == "cgroup2":
                found[UNIFIED] = Path(before.split()[4])
            elif kind == "cgroup":
                found |= {name: Path(before.split()[4]) for name in options.split(",") if name in HIERARCHIES}
    return found


def why_not() -> str | None:
    """The reason why this process cannot make cgroups, None where it can."""
    if not mounts():
        return "no cgroup file system is mounted"
    refused = [str(root) for root in mounts().values() if not os.access(root, os.W_OK)]
    return f"no right to make cgroups in {', '.join(refused)}" if refused else None


@dataclass(frozen=True)
class Group:
    """One path in several hierarchies."""

    path: str
    folders: Mapping[str, Path]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def file(self, name: str) -> Path:
        """`memory.stat` is looked for in every hierarchy of the group."""
        for folder in self.folders.values():
            if (folder / name).exists():
                return folder / name
        raise FileNotFoundError(errno.ENOENT, f"no hierarchy of {self.path} has", name)

    def read(self, name: str) -> str:
        return self.file(name).read_text()

    def number(self, name: str, key: str | None = None) -> int:
        """The only number of a file, or that of one `key number` line."""
        text = self.read(name)
        if key is None:
            return int(text)
        return int(dict(line.split(" ", 1) for line in text.splitlines())[key])

    def write(self, name: str, value: object) -> None:
        self.file(name).write_text(f"{value}")

    def add(self, pid: int) -> None:
        for folder in self.folders.values():
            (folder / "cgroup.procs").write_text(str(pid))

    def pids(self) -> set[int]:
        return {pid for folder in self.folders.values() for pid in read_pids(folder)}

    def limit(
        self, *, memory_bytes: int | None = None, cpu_cores: float | None = None, pids: int | None = None
    ) -> None:
        """Limits in whatever form the group's hierarchies understand."""
        if memory_bytes is not None:
            self._write_first({"memory.limit_in_bytes": memory_bytes, "memory.max": memory_bytes})
        if cpu_cores is not None:
            quota = int(cpu_cores * 100_000)
            self._write_first({"cpu.cfs_quota_us": quota, "cpu.max": f"{quota} 100000"})
        if pids is not None:
            self._write_first({"pids.max": pids})

    def count_io(self, folder: Path) -> None:
        """v1 counts I/O of a disk that has a limit somewhere; v2 counts always."""
        if "blkio" in self.folders:
            device = folder.stat().st_dev
            self.write("blkio.throttle.write_bps_device", f"{os.major(device)}:{os.minor(device)} {2**30}")

    def _write_first(self, choices: Mapping[str, object]) -> None:
        for name, value in choices.items():
            with contextlib.suppress(FileNotFoundError):
                self.write(name, value)
                return
        raise FileNotFoundError(errno.ENOENT, f"{self.path} has none of", ", ".join(choices))

    def spawn(self, command: Sequence[str], **options: object) -> subprocess.Popen[bytes]:
        """
        Starts a command that is inside from its first instruction on.

        Returns once it has joined every hierarchy. `options` go to Popen.
        """
        joins = [str(folder / "cgroup.procs") for folder in self.folders.values()]
        environment = {**os.environ, "JOIN": " ".join(joins)}
        process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            ["/bin/sh", "-c", _JOIN, "sh", *command],
            **{"stdin": subprocess.DEVNULL, "env": environment, "start_new_session": True, **options},
        )
        self.processes.append(process)
        while process.pid not in read_pids(Path(joins[-1]).parent):
            if process.poll() is not None and process.returncode != 0:
                raise RuntimeError(
                    f"{command[0]} left with {process.returncode} before it was in {self.path}"
                )
            if process.returncode is not None:
                break
            time.sleep(0.001)
        return process


def read_pids(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    except OSError as error:
        # The folder went between listing and reading, or is threaded.
        if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
            return []
        raise


class Cgroups:
    """Everything one test made; leaving the block removes all of it."""

    def __init__(self, hierarchies: Sequence[str] = HIERARCHIES) -> None:
        self._roots = {name: mounts()[name] for name in hierarchies if name in mounts()}
        self._groups: dict[str, Group] = {}
        self._parents: set[Path] = set()

    def __enter__(self) -> Self:
        remove_stale()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for group in list(self._groups.values()):
            kill(group.pids())
        for group in list(self._groups.values())[::-1]:
            self.remove(group)
        remove_parents(self._parents)

    def make(self, path: str) -> Group:
        """One group at a path relative to the root of every hierarchy."""
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"a path below the cgroup roots is wanted, not {path!r}")
        group = Group(path, {name: root / path for name, root in self._roots.items()})
        self._groups[path] = group
        for name, root in self._roots.items():
            self._make_folder(name, root, group.folders[name])
        return group

    def container(
        self,
        uid: str | None = None,
        qos: Qos = "burstable",
        driver: Driver = "cgroupfs",
        identifier: str | None = None,
    ) -> Group:
        """A container's group in a pod of its own, or in the pod of `uid`."""
        return self.make(container_path(uid or pod_uid(), identifier or container_id(), qos, driver))

    def remove(self, group: Group) -> None:
        for folder in group.folders.values():
            remove_folder(folder)
        for process in group.processes:
            process.wait()
        self._groups.pop(group.path, None)

    def _make_folder(self, hierarchy: str, root: Path, folder: Path) -> None:
        parents = [
            parent for parent in reversed(folder.parents) if parent.is_relative_to(root) and parent != root
        ]
        self._parents.update(parents)
        while not folder.exists():
            # Another run may remove a parent as empty before the child stands.
            with contextlib.suppress(FileNotFoundError):
                for parent in parents:
                    make_parent(parent)
                    if hierarchy == UNIFIED:
                        delegate(parent.parent)
                if hierarchy == UNIFIED:
                    delegate(folder.parent)
                folder.mkdir()


def make_parent(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(PARENT_MODE)


def remove_parents(folders: Iterable[Path]) -> None:
    """Deepest first; those that are in use or not ours stay."""
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        with contextlib.suppress(OSError):
            if stat.S_IMODE(folder.stat().st_mode) == PARENT_MODE:
                folder.rmdir()


def delegate(folder: Path) -> None:
    """Hands the v2 controllers on that tests use, where the kernel has them."""
    with contextlib.suppress(OSError):
        offered = (folder / "cgroup.controllers").read_text().split()
        wanted = [f"+{name}" for name in ("cpu", "io", "memory", "pids") if name in offered]
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))


def kill(pids: set[int]) -> None:
    for pid in pids - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remove_folder(folder: Path) -> None:
    """Kills what is inside, then removes the folder, children first."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    while folder.exists():
        for below, _, _ in os.walk(folder, topdown=False):
            kill(set(read_pids(Path(below))))
            with contextlib.suppress(OSError):
                Path(below).rmdir()
        if folder.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{folder} is still busy after {REMOVAL_SECONDS:.0f} s")
            time.sleep(0.005)


def remove_stale() -> None:
    """Removes the pods of makers that no longer run."""
    for root in mounts().values():
        for folder in list(_pods(root)):
            match = _OURS.search(folder.name)
            if match and not Path("/proc", str(int(match.group(2), 16))).exists():
                with contextlib.suppress(OSError):
                    # A killed torture may have left thousands, one in the other.
                    empty_folder(folder)
                remove_folder(folder)
                remove_parents((folder.parent, folder.parent.parent))


def _pods(root: Path) -> Iterator[Path]:
    for top in ("kubepods", "kubepods.slice"):
        yield from (root / top).glob("*pod*")
        yield from (root / top).glob("*/*pod*")
