"""
Network traffic per pod, through one of its processes.

Reads   /proc/PID/net/dev, /proc/PID/ns/net
Needs   Linux; the host's pid namespace. Telling host-network pods apart needs CAP_SYS_PTRACE
Docs    https://man7.org/linux/man-pages/man7/network_namespaces.7.html

    Inter-|   Receive                                                |  Transmit
     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
      eth0: 1215     14    0    0    0     0          0         0     1480      19    0    0    0     0       0          0

All containers of a pod share a network namespace, so one process is read for
all. A pod on the host's network would show the node's traffic as its own and
is left out: its namespace is process 1's, or one that several pods share.
"""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from nodescope.base.block import Block, Table, Values
from nodescope.base.entity import Entity, Labels
from nodescope.base.errors import ParseError, SourceAbsent
from nodescope.base.frame import Event
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.containers.cgroup_path import find_group
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.files.batch import FileFault, ReadSegment, describe_fault
from nodescope.collect.files.layout import DeviceRows, RowPlan, plan_rows
from nodescope.collect.files.native import NativeGrid
from nodescope.collect.run.source import Context, Tick
from nodescope.collect.sources.network import interface_rows

# Place in net/dev behind the name: word of cAdvisor's name.
WORDS = {
    0: ("receive", "bytes"),
    1: ("receive", "packets"),
    2: ("receive", "errors"),
    3: ("receive", "packets_dropped"),
    8: ("transmit", "bytes"),
    9: ("transmit", "packets"),
    10: ("transmit", "errors"),
    11: ("transmit", "packets_dropped"),
}
TABLE = Table(
    "pod",
    "pod",
    ("pod",),
    tuple(
        Metric(
            f"pod.network.{direction}_{word}",
            "counter",
            f"{word.capitalize()} that the pod's interface had, {direction} side.",
            f"container_network_{direction}_{word}_total",
            unit="bytes" if word == "bytes" else "",
        )
        for direction, word in WORDS.values()
    ),
)
# Which process is read for a pod is checked again at this pace, and at once when one of its
# containers or processes came or went.
LOOK_TICKS = 15
# Where none did for so long, at this one: a process changes its network while it is set up, if ever.
SETTLED_TICKS = 60
# Of each container of a pod: its path, and its processes.
Processes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(slots=True)
class PodProcess:
    """The process whose net/dev stands for a pod."""

    pid: int
    member: LiveContainer
    descriptor: int
    interfaces: list[str] = field(default_factory=list)
    plan: RowPlan | None = None
    """How its file stood; pods have the same interfaces, and share it."""


class PodNetwork:
    """The segment: rows are (pod, interface)."""

    def __init__(self, context: Context) -> None:
        self.table = TABLE
        self.faults: list[FileFault] = []
        self.cost_ns = 0
        self.dropped = 0
        self.processes: dict[str, PodProcess] = {}
        self._context = context
        self._layout: DeviceRows = interface_rows(dict(zip(WORDS, TABLE.metrics)), is_shown)
        self._parse = self._layout.parser()
        self._native: NativeGrid | None = None
        self.is_stale = False
        """Whether a process's labels may have changed since the rows were named."""
        self._names: list[tuple[str, Labels, str]] = []
        self._entities: tuple[Entity, ...] = ()
        self._values: Values = np.empty((0, len(WORDS)))

    def read(self) -> None:
        if not self._read_natively():
            self._read_plainly()

    def _read_natively(self) -> bool:
        """Whether every file stood as before, of the same processes."""
        if self._native is None:
            return False
        values, unread = self._native.read(len(self._names) * len(WORDS))
        if unread:
            return False
        self.faults = []
        self._values = values.reshape(len(self._names), len(WORDS))
        if self.is_stale:
            self._name_rows(self._list_names())
        return True

    def _read_plainly(self) -> None:
        self.faults = []
        rows: list[list[float]] = []
        for process in self.processes.values():
            process.interfaces, process.plan = [], None
            try:
                data = self._read_file(process)
                process.interfaces, values = self._parse(data)
            except (OSError, ParseError) as error:
                self.faults.append(describe_fault(f"proc/{process.pid}/net/dev", error))
                continue
            rows += values
            process.plan = plan_rows(self._layout, data, process.interfaces)
        names = self._list_names()
        limit = self._context.limit("pod")
        self.dropped = max(0, len(names) - limit)
        self._name_rows(names[:limit])
        self._values = np.array(rows[:limit], dtype=np.float64).reshape(len(self._names), len(WORDS))
        self._arrange()

    def _read_file(self, process: PodProcess) -> bytes:
        if process.descriptor >= 0:
            return os.pread(process.descriptor, 16384, 0)
        return self._context.root.read(f"proc/{process.pid}/net/dev")

    def _list_names(self) -> list[tuple[str, Labels, str]]:
        return [
            (pod, process.member.entity.labels, interface)
            for pod, process in self.processes.items()
            for interface in process.interfaces
        ]

    def _name_rows(self, names: list[tuple[str, Labels, str]]) -> None:
        if names != self._names:
            self._names = names
            self._entities = tuple(name_interface(*name) for name in names)
        self.is_stale = False

    def _arrange(self) -> None:
        """For the native reader, once all files are plain and none is left out."""
        self._native = None
        native, processes = self._context.root.native, list(self.processes.values())
        if native is None or self.dropped:
            return
        if not all(process.plan and process.descriptor >= 0 for process in processes):
            return
        shared = {plan.starts: plan for process in processes if (plan := process.plan)}
        self._native = NativeGrid(native, list(shared.values()))
        entries, cell = [], 0
        for process in processes:
            if process.plan:
                entries.append((process.descriptor, shared[process.plan.starts], cell))
                cell += len(process.interfaces) * len(WORDS)
        self._native.arrange(entries)

    def block(self, mono_ns: int) -> Block | None:
        return Block(self.table, self._entities, self._values, mono_ns)

    def add(self, pod: str, process: PodProcess) -> None:
        self.processes[pod] = process
        self._native = None

    def drop(self, pod: str) -> None:
        self._native = None
        self._context.descriptors.close(self.table.name, self.processes.pop(pod).descriptor)

    def close(self) -> None:
        for pod in list(self.processes):
            self.drop(pod)


def is_shown(interface: str) -> bool:
    """The loopback is nobody's network."""
    return interface != "lo"


def name_interface(pod: str, labels: Labels, interface: str) -> Entity:
    named = dict(labels)
    device = clean_text(interface)
    shown = (("namespace", named["namespace"]), ("pod", named["pod"]), ("interface", device))
    return Entity(
        "pod",
        (pod, device),
        (*shown, ("id", find_group(pod, named["id"]))),
        (("pod_uid", pod),),
    )


class PodSource:
    """Chooses the process that is read for each pod."""

    name = "pod"

    def __init__(self, context: Context) -> None:
        if not context.root.exists("proc/stat"):
            raise SourceAbsent("no /proc: this is not Linux")
        self._context = context
        self._segment = PodNetwork(context)
        self._host = context.root.link("proc/1/ns/net")
        self._members: tuple[LiveContainer, ...] | None = None
        self._owners: dict[int, str] = {}
        self._changed_tick = 0
        self._told: dict[str, tuple[Processes, str | None]] = {}
        """By pod: the namespace that its processes told."""

    def refresh(self, tick: Tick) -> Iterable[Event]:
        members = self._context.live_containers.members
        lost = any(fault.status == "gone" for fault in self._segment.faults)
        if members is not self._members:
            self._changed_tick = tick.number
        is_settled = tick.number - self._changed_tick >= SETTLED_TICKS
        is_look = tick.number % (SETTLED_TICKS if is_settled else LOOK_TICKS) == 0
        if members is self._members and not lost and not is_look:
            return ()
        self._members = members
        if is_look or lost:
            self._told.clear()
        self._segment.is_stale = True
        # Paths ascend, so that the innermost container of a process comes last.
        self._owners = {
            pid: member.path for member in sorted(members, key=lambda one: one.path) for pid in member.pids
        }
        pods: dict[str, list[LiveContainer]] = {}
        for member in members:
            if member.entity.scope == "container":
                pods.setdefault(member.cgroup.pod_uid or member.cgroup.container_id, []).append(member)
        self._told = {pod: self._tell(pod, containers) for pod, containers in pods.items()}
        namespaces = {pod: name for pod, (_, name) in self._told.items()}
        shared = Counter(namespaces.values())
        own = {
            pod: pods[pod]
            for pod, name in namespaces.items()
            if name and name != self._host and shared[name] == 1
        }
        for pod in [pod for pod in self._segment.processes if not self._is_still_there(pod, own)]:
            self._segment.drop(pod)
        for pod, containers in own.items():
            if pod not in self._segment.processes:
                self._find_process(pod, containers)
        chosen = self._segment.processes.items()
        self._context.live_containers.networks = {pod: (one.pid, one.member) for pod, one in chosen}
        return ()

    def _is_still_there(self, pod: str, pods: dict[str, list[LiveContainer]]) -> bool:
        process = self._segment.processes[pod]
        for member in pods.get(pod, ()):
            if process.pid in self._pids(member):
                # The labels may have changed: names arrive later than pids.
                process.member = member
                return True
        return False

    def _pids(self, member: LiveContainer) -> tuple[int, ...]:
        """Its processes, but for those of a container inside it: they have a network of their own."""
        return tuple(
            pid for pid in self._all_pids(member) if self._owners.get(pid, member.path) == member.path
        )

    def _all_pids(self, member: LiveContainer) -> tuple[int, ...]:
        if member.pids:
            return member.pids
        text = self._context.root.read_text(f"{member.folder}/cgroup.procs") or ""
        return tuple(int(pid) for pid in text.split()[:16] if pid.isdigit())

    def _tell(self, pod: str, containers: list[LiveContainer]) -> tuple[Processes, str | None]:
        """Asked of the kernel only where the pod's processes are not those of before."""
        processes = tuple((member.path, member.pids) for member in containers)
        known = self._told.get(pod)
        # Without a list of its own, a container's processes are read anew each time.
        if known and known[0] == processes and all(member.pids for member in containers):
            return known
        return processes, self._namespace(containers)

    def _namespace(self, containers: list[LiveContainer]) -> str | None:
        """The network namespace of a pod's first process that tells."""
        for member in containers:
            for pid in self._pids(member)[:4]:
                name = self._context.root.link(f"proc/{pid}/ns/net")
                if name:
                    return name
        return None

    def _find_process(self, pod: str, containers: list[LiveContainer]) -> None:
        for member in containers:
            for pid in self._pids(member)[:4]:
                try:
                    descriptor = self._context.root.open(f"proc/{pid}/net/dev")
                except OSError:
                    continue
                descriptor = self._context.descriptors.keep(self._segment.table.name, descriptor)
                self._segment.add(pod, PodProcess(pid, member, descriptor))
                return

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(self._segment, 1)]

    def dropped(self) -> dict[str, int]:
        return {"pod": self._segment.dropped}

    def close(self) -> None:
        self._segment.close()
