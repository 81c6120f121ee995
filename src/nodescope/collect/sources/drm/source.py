"""
Processes on GPUs and NPUs, as amdgpu, xe, i915 and amdxdna count them, with the containers they belong to.

Reads   /proc/PID/fd (where the links point), /proc/PID/fdinfo of those that are devices of DRM; /proc/PID/{stat,cgroup}
Needs   a device with one of these drivers; root, or CAP_SYS_PTRACE, and the host's pid namespace for others' processes
Docs    https://docs.kernel.org/gpu/drm-usage-stats.html

    drm-driver:     xe
    drm-pdev:       0000:03:00.0
    drm-client-id:  7
    drm-cycles-rcs: 28257900
    drm-total-cycles-rcs: 7655183225
    drm-resident-vram0: 524288 KiB

Every process is looked through for such devices each half minute; between, only
the descriptors that were found are read. A share of time needs two readings.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.block import Block, Info, Table, make_block
from nodescope.base.entity import Entity, Labels
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.drm.fdinfo import DRIVERS, DrmClient, parse_fdinfo
from nodescope.collect.sources.gpu.owner import read_owner

FOLDERS = ("sys/class/drm", "sys/class/accel")
_NODE = re.compile(r"(?:card|renderD|accel)[0-9]+")
_DEVICE = re.compile(r"/dev/(?:dri|accel)/")
ABSENT = "no device of amdgpu, xe, i915 or amdxdna in /sys/class/drm or /sys/class/accel"
LOOK_SECONDS = 30.0
# Bounds of one look: a process may open as many files as it likes.
PROCESSES_MOST = 20_000
FILES_MOST = 4096
FOUND_MOST = 1024
OWNER = ("name", "namespace", "pod", "container", "pod_uid")
ENGINES = Table(
    "drm.engine",
    "drm",
    ("gpu",),
    (
        Metric(
            "drm.engine_busy",
            "counter",
            "Time that an engine of the device worked for a process, of drivers that count time.",
            "gpu_client_engine_seconds_total",
            unit="seconds",
            scale=1e-9,
        ),
        Metric(
            "drm.engine_utilization",
            "gauge",
            "Share of an engine's time that a process used.",
            "gpu_client_engine_utilization_percent",
            unit="percent",
        ),
    ),
)
MEMORY = Table(
    "drm.memory",
    "drm",
    ("gpu",),
    (
        Metric(
            "drm.memory",
            "gauge",
            "Memory of a process that is resident in a region of the device.",
            "gpu_client_memory_bytes",
            unit="bytes",
        ),
    ),
)
CLIENTS = Table(
    "drm",
    "drm",
    ("gpu",),
    (Metric("drm.clients", "gauge", "Times that a process has the device open.", "gpu_clients"),),
    Info("gpu_client_info", "Whose process has the device open; always 1.", OWNER),
)


@dataclass(slots=True)
class EngineReading:
    """What was counted of one engine, and when."""

    mono_ns: int
    busy: float
    passed: float
    """Nanoseconds or cycles that went by."""


@dataclass(slots=True)
class DrmSource(CallDefaults):
    """Knows which descriptors are devices, and reads those."""

    name = "drm"
    pace_seconds = 5.0
    deadline_seconds = 20.0

    context: Context
    note: str = ""
    _found: dict[int, list[str]] = field(default_factory=dict)
    _looked_mono_ns: int | None = None
    _before: dict[tuple[str, ...], EngineReading] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not has_device(self.context):
            raise SourceAbsent(ABSENT)

    def read(self) -> Any:
        now_ns = self.context.clock.mono_ns()
        if self._looked_mono_ns is None or now_ns - self._looked_mono_ns >= LOOK_SECONDS * 1e9:
            self._looked_mono_ns = now_ns
            self._look()
        clients = self._read_clients()
        before, self._before = self._before, {}
        rows = [self._describe(pid, mine, before, now_ns) for pid, mine in clients.items()]
        return {"processes": rows}

    def _look(self) -> None:
        """Which descriptors of which processes are devices."""
        context, unseen = self.context, 0
        found: dict[int, list[str]] = {}
        pids = sorted(int(name) for name in context.root.folders("proc", PROCESSES_MOST) if name.isdigit())
        for pid in pids:
            try:
                names = context.root.names(f"proc/{pid}/fd")[:FILES_MOST]
            except PermissionError:
                unseen += 1
                continue
            except OSError:
                continue
            mine = [name for name in names if is_device(context.root.link(f"proc/{pid}/fd/{name}"))]
            if mine and len(found) < FOUND_MOST:
                found[pid] = mine
        self._found = found
        self.note = f"{unseen} processes may not be looked into: CAP_SYS_PTRACE" if unseen else ""

    def _read_clients(self) -> dict[int, list[DrmClient]]:
        """Each client once, with the first process that has it open."""
        seen: set[tuple[str, str]] = set()
        clients: dict[int, list[DrmClient]] = {}
        for pid, names in self._found.items():
            for name in names:
                client = parse_fdinfo(self.context.root.read_text(f"proc/{pid}/fdinfo/{name}") or "")
                if client is not None and client.key not in seen:
                    seen.add(client.key)
                    clients.setdefault(pid, []).append(client)
        return clients

    def _describe(
        self, pid: int, clients: list[DrmClient], before: Mapping[tuple[str, ...], EngineReading], now_ns: int
    ) -> dict[str, Any]:
        owner = read_owner(self.context, pid)
        devices = {}
        for device in sorted({client.device for client in clients}):
            mine = [client for client in clients if client.device == device]
            devices[device] = {
                "driver": mine[0].driver,
                "clients": len(mine),
                "memory": add_up(client.memory for client in mine),
                "engines": self._use((str(pid), owner.get("start", ""), device), mine, before, now_ns),
            }
        return {"pid": pid, "owner": owner, "devices": devices}

    def _use(
        self,
        key: tuple[str, ...],
        clients: list[DrmClient],
        before: Mapping[tuple[str, ...], EngineReading],
        now_ns: int,
    ) -> dict[str, dict[str, float]]:
        """By engine: time that was used, and its share of what went by since the last reading."""
        used: dict[str, dict[str, float]] = {}
        capacity = {name: most for client in clients for name, most in client.capacity.items()}
        for name, busy in add_up(client.busy_ns for client in clients).items():
            whole = now_ns * max(1.0, capacity.get(name, 1.0))
            used[name] = {
                "busy": busy,
                **self._share((*key, name), EngineReading(now_ns, busy, whole), before),
            }
        for name, busy in add_up(client.cycles for client in clients).items():
            # All clients count the same cycles that went by.
            whole = max((client.cycles_all.get(name, 0.0) for client in clients), default=0.0)
            used[name] = self._share((*key, name), EngineReading(now_ns, busy, whole), before)
        return used

    def _share(
        self, key: tuple[str, ...], now: EngineReading, before: Mapping[tuple[str, ...], EngineReading]
    ) -> dict[str, float]:
        self._before[key] = now
        last = before.get(key)
        # A client that closed takes what it had counted with it.
        if last is None or now.passed <= last.passed or now.busy < last.busy:
            return {}
        return {"share": min(100.0, 100 * (now.busy - last.busy) / (now.passed - last.passed))}

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        rows = list(iterate_devices(answer))
        engines = {
            name_entity(labels, owner, "engine", engine): (use.get("busy", NAN), use.get("share", NAN))
            for labels, owner, device in rows
            for engine, use in device["engines"].items()
        }
        memory = {
            name_entity(labels, owner, "region", region): (size,)
            for labels, owner, device in rows
            for region, size in device["memory"].items()
        }
        clients = {name_entity(labels, owner): (float(device["clients"]),) for labels, owner, device in rows}
        limit = self.context.limit("gpu")
        return tuple(
            make_block(table, dict(list(found.items())[:limit]), mono_ns)
            for table, found in ((CLIENTS, clients), (ENGINES, engines), (MEMORY, memory))
        )


def has_device(context: Context) -> bool:
    for folder in FOLDERS:
        try:
            names = [name for name in context.root.names(folder) if _NODE.fullmatch(name)]
        except OSError:
            continue
        for name in names:
            uevent = context.root.read_text(f"{folder}/{name}/device/uevent") or ""
            if any(line.removeprefix("DRIVER=") in DRIVERS for line in uevent.splitlines()):
                return True
    return False


def is_device(target: str | None) -> bool:
    return target is not None and _DEVICE.match(target) is not None


def add_up(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for part in parts:
        for name, number in part.items():
            total[name] += number  # type: ignore[assignment]
    return dict(total)


def iterate_devices(
    answer: Mapping[str, Any],
) -> Iterator[tuple[Labels, Mapping[str, str], Mapping[str, Any]]]:
    for process in answer["processes"]:
        for device, facts in process["devices"].items():
            labels = (
                ("pci_bus_id", clean_text(device)),
                ("driver", clean_text(facts["driver"])),
                ("pid", str(process["pid"])),
            )
            yield labels, process["owner"], facts


def name_entity(labels: Labels, owner: Mapping[str, str], *more: str) -> Entity:
    """`more` is the name of a further label and its value."""
    words = [clean_text(word) for word in more]
    ids = (labels[0][1], "client", labels[2][1], owner.get("start", ""), *words)
    details = () if more else tuple((label, clean_text(owner.get(label, ""))) for label in OWNER)
    return Entity("gpu", ids, (*labels, (words[0], words[1])) if words else labels, details)
