"""
Energy that processors and memory used, by the processors' own counters.

Reads   /sys/class/powercap/intel-rapl:N[:M]/{name,energy_uj,max_energy_range_uj}
Needs   Intel or AMD Zen, not a virtual machine; root, for energy_uj has mode 0400
Docs    https://docs.kernel.org/power/powercap/powercap.html

    package-0
    262143328850

Microjoules that wrap at max_energy_range_uj, after a minute on a large
machine under load. The raw value is published under node_exporter's name; for
windows the growth is summed up, wraps counted in. The zones of intel-rapl-mmio
show the same energy a second time and are left out.
"""

import errno
import re
from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.counter_sum import CounterSum
from nodescope.collect.run.source import CallDefaults, Context

FOLDER = "sys/class/powercap"
ABSENT = "no /sys/class/powercap/intel-rapl*: a virtual machine, an old kernel, or the module intel_rapl_common is not loaded"
DENIED = (
    "energy_uj may be read by root only (mode 0400 since CVE-2020-8694): "
    "run as root, or as a user with CAP_DAC_READ_SEARCH in its ambient set"
)
_ZONE = re.compile(r"intel-rapl:\d+(:\d+)*")
# Names of zones that the kernel knows; each has a published name of its own.
ZONES = ("package", "core", "uncore", "dram", "psys")
TABLE = Table(
    "rapl",
    "rapl",
    ("pcm",),
    (
        *(
            Metric(
                f"rapl.{zone}.energy_uj",
                "counter",
                f"Energy of the {zone} domain; wraps.",
                f"node_rapl_{zone}_joules_total",
                unit="joules",
                scale=1e-6,
            )
            for zone in ZONES
        ),
        Metric("rapl.package.energy", "counter", "Energy of a package, wraps counted in.", unit="joules"),
        # Summed over the packages it is time itself, so that joules by it are
        # the watts of the node.
        Metric(
            "rapl.package.seconds", "counter", "A package's share of the time in which energy was counted."
        ),
    ),
)


class RaplSource(CallDefaults):
    """Reads every zone, every tick."""

    name = "rapl"

    def __init__(self, context: Context) -> None:
        self.pace_seconds = context.settings.interval_seconds
        self._root = context.root
        self._growth = CounterSum()
        self._find_zones()

    def _find_zones(self) -> None:
        root = self._root
        try:
            names = sorted(name for name in root.names(FOLDER) if _ZONE.fullmatch(name))
        except OSError:
            names = []
        if not names:
            raise SourceAbsent(ABSENT)
        counts: dict[str, int] = {}
        self._zones: dict[str, tuple[str, Entity, float | None]] = {}
        for folder in names:
            path = f"{FOLDER}/{folder}"
            zone, index = name_zone(root.read_text(f"{path}/name") or folder, counts)
            largest = root.read_text(f"{path}/max_energy_range_uj")
            wraps_at = float(largest) if largest and largest.isdigit() else None
            labels = (("index", str(index)), ("path", f"/{path}"))
            self._zones[folder] = (zone, Entity("pcm", ("rapl", folder), labels), wraps_at)
        self._entities = tuple(entity for _, entity, _ in self._zones.values())

    def read(self) -> Any:
        """{zone folder: microjoules, or None where it cannot be read}."""
        if not self._zones:
            self._find_zones()
        answers: dict[str, int | None] = {}
        faults: list[OSError] = []
        for folder in self._zones:
            try:
                answers[folder] = int(self._root.read(f"{FOLDER}/{folder}/energy_uj"))
            except OSError as error:
                answers[folder] = None
                faults.append(error)
            except ValueError:
                answers[folder] = None
        if faults and len(faults) == len(self._zones):
            raise self._explain(faults[0])
        return answers

    def _explain(self, error: OSError) -> Exception:
        if error.errno in (errno.EACCES, errno.EPERM):
            return SourceFailed(DENIED)
        if error.errno in (errno.ENODEV, errno.ENOENT):
            # The module was taken out; it may come back with other zones.
            self._zones = {}
            return SourceAbsent(ABSENT)
        return SourceFailed(f"energy_uj cannot be read: {error.strerror}")

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        values = np.full((len(self._zones), len(TABLE.metrics)), NAN)
        packages = sum(zone == "package" for zone, _, _ in self._zones.values())
        for row, (folder, (zone, _, wraps_at)) in enumerate(self._zones.items()):
            raw = answer.get(folder)
            if zone in ZONES and raw is not None:
                values[row, ZONES.index(zone)] = raw
            if zone == "package":
                joules = None if raw is None else raw / 1e6
                grown = self._growth.add(folder, joules, mono_ns / 1e9, wraps_at / 1e6 if wraps_at else None)
                if grown:
                    values[row, -2:] = grown.total, grown.seconds / packages
        return (Block(TABLE, self._entities, values, mono_ns),)


def name_zone(text: str, counts: dict[str, int]) -> tuple[str, int]:
    """`package-0` is (package, 0); a name without a number gets the next, as node_exporter has it."""
    name, dash, number = clean_text(text).rpartition("-")
    if dash and number.isdigit():
        return name, int(number)
    zone = clean_text(text)
    counts[zone] = counts.get(zone, -1) + 1
    return zone, counts[zone]
