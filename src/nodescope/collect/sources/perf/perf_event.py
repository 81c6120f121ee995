"""
perf_event_open(2): the kernel's own hardware counters, one group per core.

    struct perf_event_attr, first version (64 bytes), as linux/perf_event.h has it

     0  u32 type          0 = PERF_TYPE_HARDWARE, 1 = PERF_TYPE_SOFTWARE
     4  u32 size          64
     8  u64 config        0 cycles, 1 instructions, 2 cache references, 3 cache misses
    16  u64 sample_period 0: count only
    24  u64 sample_type   0
    32  u64 read_format   1 time enabled | 2 time running | 8 whole group
    40  u64 flags         0: count user, kernel and hypervisor
    48  ...               0

    read() of a group's leader, all u64:  members, enabled ns, running ns, value 0, value 1

Groups are pairs, because a ratio needs both counted at the same moments: when
the processor has fewer counters than asked for, the kernel takes turns, and a
group is on the processor as a whole or not at all. running < enabled says so.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.collect.files.roots import NodeRoot

# The number of the system call, by architecture (asm/unistd.h).
CALL_NUMBERS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "s390x": 331, "riscv64": 241}
ATTRIBUTES = struct.Struct("<IIQQQQQQIIQ")
ATTRIBUTES_BYTES = 64
READ_FORMAT = 1 | 2 | 8
CLOSE_ON_EXEC = 8
# The "pid" is the descriptor of a cgroup's folder.
OF_CGROUP = 4
HARDWARE = 0
SOFTWARE = 1
GROUPS = {"work": (0, 1), "cache": (2, 3)}
ANSWER = struct.Struct("<5Q")

Open = Callable[[bytes, int, int, int, int], int]
"""(attributes, pid, cpu, group leader, flags) -> descriptor; OSError as the kernel gave it."""
Read = Callable[[int], bytes]

# The kernel has no such event here: no PMU, or one without this event.
NOT_OFFERED = frozenset({errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.ENXIO, errno.EINVAL})
DENIED = frozenset({errno.EACCES, errno.EPERM})
NO_PMU = (
    "no hardware counters: the kernel sees no PMU, as in a virtual machine without vPMU "
    "(KVM: -cpu host,pmu=on); nothing to be done inside it"
)


@dataclass(frozen=True, slots=True)
class Count:
    """A group at one moment: nanoseconds and two values."""

    enabled_ns: int
    running_ns: int
    first: int
    second: int


def open_by_system_call(attributes: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
    """The system call itself: glibc has no function for it."""
    number = CALL_NUMBERS.get(platform.machine())
    if number is None or not hasattr(ctypes.CDLL(None), "syscall"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    descriptor = library.syscall(
        ctypes.c_long(number),
        buffer,
        ctypes.c_int(pid),
        ctypes.c_int(cpu),
        ctypes.c_int(leader),
        ctypes.c_ulong(flags),
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(descriptor)


def read_descriptor(descriptor: int) -> bytes:
    return os.read(descriptor, ANSWER.size)


def close_descriptor(descriptor: int) -> None:
    os.close(descriptor)


def build_attributes(event: int, kind: int = HARDWARE) -> bytes:
    return ATTRIBUTES.pack(kind, ATTRIBUTES_BYTES, event, 0, 0, READ_FORMAT, 0, 0, 0, 0, 0)[:ATTRIBUTES_BYTES]


@dataclass(frozen=True, slots=True)
class PerfCalls:
    """The system calls; a test hands in its own."""

    open_event: Open = open_by_system_call
    read: Read = read_descriptor
    close: Callable[[int], None] = close_descriptor

    def open_group(
        self, cpu: int, events: tuple[int, int], pid: int = -1, flags: int = 0, kind: int = HARDWARE
    ) -> list[int]:
        """Descriptors of the leader and its member, counting everything on one core, or one cgroup's part of it."""
        flags |= CLOSE_ON_EXEC
        leader = self.open_event(build_attributes(events[0], kind), pid, cpu, -1, flags)
        try:
            member = self.open_event(build_attributes(events[1], kind), pid, cpu, leader, flags)
        except OSError:
            self.close(leader)
            raise
        return [leader, member]

    def read_group(self, descriptors: list[int]) -> list[int] | None:
        """[enabled ns, running ns, first, second]; None for a core that went offline."""
        try:
            count = parse_count(self.read(descriptors[0]))
        except OSError:
            return None
        return [count.enabled_ns, count.running_ns, count.first, count.second] if count else None

    def close_groups(self, groups: Iterable[list[int]]) -> None:
        for descriptors in groups:
            for descriptor in descriptors:
                self.close(descriptor)


SYSTEM_CALLS = PerfCalls()


def parse_count(data: bytes) -> Count | None:
    """None for a core that went offline: its events end."""
    if len(data) < ANSWER.size:
        return None
    members, enabled, running, first, second = ANSWER.unpack_from(data)
    return Count(enabled, running, first, second) if members == 2 else None


def explain(error: OSError, root: NodeRoot) -> Exception:
    """One line with the remedy, by what the kernel said."""
    if error.errno in NOT_OFFERED:
        return SourceAbsent(NO_PMU)
    if error.errno == errno.ENOSYS:
        return SourceAbsent("this kernel has no perf_event_open, or a seccomp profile hides it")
    if error.errno in DENIED:
        level = root.read_text("proc/sys/kernel/perf_event_paranoid")
        said = f"kernel.perf_event_paranoid is {level}" if level else "the kernel refused"
        return SourceFailed(
            f"counting whole cores was denied ({said}): grant CAP_PERFMON (Linux 5.8; before, CAP_SYS_ADMIN), "
            "or sysctl kernel.perf_event_paranoid=0; a container's seccomp profile must allow perf_event_open"
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return SourceFailed("too many open files for two groups per core: raise the limit (ulimit -n)")
    return SourceFailed(f"perf_event_open: {error.strerror}")
