"""
Intel GPUs with the drivers xe and i915.

Reads   /sys/class/drm/cardN/device, its hwmon, gt and tile folders
Needs   Linux with xe or i915; no privileges, no device files
Docs    https://docs.kernel.org/gpu/xe/xe_gt_freq.html

    /sys/class/drm/card0/device/tile0/gt0/gtidle/idle_residency_ms      48210         xe
    /sys/class/drm/card0/device/tile0/gt0/freq0/act_freq                1950
    /sys/class/drm/card0/gt/gt0/rc6_residency_ms                        91022         i915
    /sys/class/drm/card0/device/hwmon/hwmon4/energy1_input              123456789     microjoules

These drivers have no percentage of use. The time that a tile was not asleep is the
nearest that the kernel counts: it includes work of all engines, and a little idling
before sleep. Who used it is told by the source drm.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.block import Block
from nodescope.base.errors import SourceAbsent
from nodescope.base.text import clean_text
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.gpu.metrics import GpuFamily

DRM = "sys/class/drm"
DRIVERS = frozenset({"xe", "i915"})
NO_CARD = "no Intel GPU: no card with xe or i915 in /sys/class/drm"
_CARD = re.compile(r"card([0-9]+)")
_NUMBER = re.compile(r"[0-9]{1,18}")
TILES = ("tile0", "tile1")
GTS = ("gt0", "gt1")
# (file of hwmon, our key, divided by); xe has the package at 2 and memory at 3.
SENSORS = (
    ("energy1_input", "energy", 1e6),
    ("power1_max", "power_limit", 1e6),
    ("power1_cap", "power_limit", 1e6),
    ("temp1_input", "temperature", 1e3),
    ("temp2_input", "temperature", 1e3),
    ("temp3_input", "temperature_memory", 1e3),
    ("fan1_input", "fan_rpm", 1.0),
)


@dataclass(slots=True)
class IntelSource(CallDefaults):
    """Reads every card; remembers how long each had slept."""

    name = "intel"
    pace_seconds = 1.0

    context: Context
    note: str = ""
    family: GpuFamily = field(default_factory=lambda: GpuFamily("intel"))
    _slept: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pace_seconds = self.context.settings.gpu_interval_seconds or 1.0
        if not list_cards(self.context.root):
            raise SourceAbsent(NO_CARD)

    def read(self) -> Any:
        now_ns = self.context.clock.mono_ns()
        names = list_cards(self.context.root)
        if not names:
            raise SourceAbsent(NO_CARD)
        gpus = [self._read_card(index, name, now_ns) for index, name in enumerate(names)]
        release = self.context.root.read_text("proc/sys/kernel/osrelease") or ""
        return {"driver": clean_text(release), "gpus": gpus}

    def _read_card(self, index: int, name: str, now_ns: int) -> dict[str, Any]:
        root, device = self.context.root, f"{DRM}/{name}/device"
        facts = read_uevent(root, device)
        place = clean_text(facts.get("PCI_SLOT_NAME", "").lower())
        readings = {"up": 1.0, **read_sensors(root, device), **read_gt(root, name)}
        slept_ms = readings.pop("slept_ms", None)
        if slept_ms is not None:
            readings |= self._find_use(name, now_ns, slept_ms)
        return {
            "index": index,
            "card": name,
            "uuid": f"pci-{place}" if place else name,
            "pci_bus_id": place,
            "name": clean_text(f"Intel {facts.get('PCI_ID', '')} ({facts.get('DRIVER', '')})"),
            "readings": readings,
        }

    def _find_use(self, name: str, now_ns: int, slept_ms: float) -> dict[str, float]:
        """Awake, of the time since the last reading; the first has none."""
        before = self._slept.get(name)
        self._slept[name] = (now_ns, slept_ms)
        if before is None or now_ns <= before[0] or slept_ms < before[1]:
            return {}
        asleep = (slept_ms - before[1]) * 1e6 / (now_ns - before[0])
        return {"utilization": 100 * min(1.0, max(0.0, 1 - asleep))}

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        return self.family.blocks(answer, mono_ns)


def list_cards(root: NodeRoot) -> list[str]:
    """In the order of their numbers; virtual functions and other vendors' left out."""
    try:
        names = [name for name in root.names(DRM) if _CARD.fullmatch(name)]
    except OSError:
        return []
    mine = [name for name in names if read_uevent(root, f"{DRM}/{name}/device").get("DRIVER") in DRIVERS]
    return sorted(mine, key=lambda name: int(name.removeprefix("card")))


def read_uevent(root: NodeRoot, device: str) -> dict[str, str]:
    text = root.read_text(f"{device}/uevent") or ""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def read_number(root: NodeRoot, path: str) -> float | None:
    text = root.read_text(path) or ""
    return float(text) if _NUMBER.fullmatch(text) else None


def read_sensors(root: NodeRoot, device: str) -> dict[str, float]:
    values = {}
    for folder in root.folders(f"{device}/hwmon"):
        for file, key, divisor in SENSORS:
            number = read_number(root, f"{device}/hwmon/{folder}/{file}")
            if number is not None:
                values[key] = number / divisor
    return values


def read_gt(root: NodeRoot, name: str) -> dict[str, float]:
    """Clock and sleep: the fastest of its tiles, and the mean of how long they slept."""
    clocks, slept = [], []
    for clock, sleep in list_gt(name):
        clocks.append(read_number(root, clock))
        slept.append(read_number(root, sleep))
    sizes = [read_number(root, f"{DRM}/{name}/device/{tile}/physical_vram_size_bytes") for tile in TILES]
    found = {
        "clock.graphics": max((one * 1e6 for one in clocks if one is not None), default=None),
        "slept_ms": mean([one for one in slept if one is not None]),
        "memory_total": sum(one for one in sizes if one is not None) or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def list_gt(name: str) -> Iterator[tuple[str, str]]:
    """(clock in MHz, sleep in ms) of xe's tiles, then of i915's."""
    for tile in TILES:
        for gt in GTS:
            folder = f"{DRM}/{name}/device/{tile}/{gt}"
            yield f"{folder}/freq0/act_freq", f"{folder}/gtidle/idle_residency_ms"
    for gt in GTS:
        folder = f"{DRM}/{name}/gt/{gt}"
        yield f"{folder}/rps_act_freq_mhz", f"{folder}/rc6_residency_ms"


def mean(numbers: list[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
