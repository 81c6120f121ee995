"""
What the kernel does against heat: temperatures of its zones, states of its cooling devices, throttled cores.

Reads   /sys/class/thermal/{thermal_zoneN/{type,temp},cooling_deviceN/{type,cur_state,max_state}},
        /sys/devices/system/cpu/cpuN/{thermal_throttle/{core,package}_throttle_count,topology/{core_id,physical_package_id}}
Needs   Linux with thermal drivers; most virtual machines have none
Docs    https://docs.kernel.org/driver-api/thermal/sysfs-api.html

    48000

A zone may answer "not available" while it sleeps: it is left out of that reading.
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.slow_source import Rows, SlowSource, list_names, pick_numbers, read_folder
from nodescope.collect.run.source import Context

FOLDER = "sys/class/thermal"
CORES = "sys/devices/system/cpu"
Texts = Mapping[str, Mapping[str, str]]
COOLING = Table(
    "thermal.cooling",
    "thermal",
    ("device",),
    (
        Metric("thermal.cur_state", "gauge", "How much is cooled now.", "node_cooling_device_cur_state"),
        Metric("thermal.max_state", "gauge", "The most that can be cooled.", "node_cooling_device_max_state"),
    ),
)
ZONES = Table(
    "thermal.zone",
    "thermal",
    ("device",),
    (Metric("thermal.temp", "gauge", "Temperature of a zone.", "node_thermal_zone_temp", scale=1e-3),),
)
CORE_THROTTLES = Table(
    "thermal.core",
    "thermal",
    ("device",),
    (
        Metric(
            "thermal.core_throttle_count",
            "counter",
            "Times that a core was slowed for its heat.",
            "node_cpu_core_throttles_total",
        ),
    ),
)
PACKAGE_THROTTLES = Table(
    "thermal.package",
    "thermal",
    ("device",),
    (
        Metric(
            "thermal.package_throttle_count",
            "counter",
            "Times that a package was slowed for its heat.",
            "node_cpu_package_throttles_total",
        ),
    ),
)
COUNTS = ("core_throttle_count", "package_throttle_count")
PLACE = ("core_id", "physical_package_id")


def read(context: Context) -> dict[str, Texts] | None:
    zones = list_names(context, FOLDER, r"thermal_zone\d+")
    devices = list_names(context, FOLDER, r"cooling_device\d+")
    cores = [name for name in list_names(context, CORES, r"cpu\d+") if is_throttled(context, name)]
    if not zones and not devices and not cores:
        return None
    return {
        "devices": {
            name: read_folder(context, f"{FOLDER}/{name}", ("type", "cur_state", "max_state"))
            for name in devices
        },
        "zones": {name: read_folder(context, f"{FOLDER}/{name}", ("type", "temp")) for name in zones},
        "cores": {name: read_core(context, f"{CORES}/{name}") for name in cores},
    }


def is_throttled(context: Context, core: str) -> bool:
    return context.root.exists(f"{CORES}/{core}/thermal_throttle")


def read_core(context: Context, folder: str) -> dict[str, str]:
    return {
        **read_folder(context, f"{folder}/thermal_throttle", COUNTS),
        **read_folder(context, f"{folder}/topology", PLACE),
    }


def parse(found: Mapping[str, Texts]) -> tuple[Rows, ...]:
    devices = {
        name_device(name, "name", texts): pick_numbers(texts, ("cur_state", "max_state"))
        for name, texts in found["devices"].items()
    }
    zones = {
        name_device(name.removeprefix("thermal_zone"), "zone", texts): pick_numbers(texts, ("temp",))
        for name, texts in found["zones"].items()
        if "temp" in texts
    }
    return devices, zones, *parse_cores(found["cores"])


def name_device(name: str, label: str, texts: Mapping[str, str]) -> Entity:
    own = name.removeprefix("cooling_device")
    return Entity(
        "device", ("thermal", label, own), ((label, own), ("type", clean_text(texts.get("type", ""))))
    )


def parse_cores(cores: Texts) -> tuple[Rows, Rows]:
    """Threads of one core count the same, and so do the cores of a package."""
    by_core: dict[Entity, list[float]] = {}
    by_package: dict[Entity, list[float]] = {}
    for texts in cores.values():
        core, package = (clean_text(texts.get(key, "")) for key in PLACE)
        labels = (("core", core), ("package", package))
        by_core.setdefault(Entity("device", ("core", package, core), labels), pick_numbers(texts, COUNTS[:1]))
        by_package.setdefault(
            Entity("device", ("package", package), labels[1:]), pick_numbers(texts, COUNTS[1:])
        )
    return by_core, by_package


make = SlowSource(
    "thermal",
    (COOLING, ZONES, CORE_THROTTLES, PACKAGE_THROTTLES),
    read,
    parse,
    "no /sys/class/thermal and no counters of throttled cores: a virtual machine, or no driver is loaded",
)
