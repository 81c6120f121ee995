"""
How large the machine is, under cAdvisor's names.

Reads   /proc/meminfo, /sys/devices/system/cpu/cpuN/topology/{core_id,physical_package_id}, /proc/sys/kernel/random/boot_id,
        /etc/machine-id, /sys/class/dmi/id/product_uuid, /sys/bus/nd/devices/regionN/{size,nstype}
Needs   Linux; the machine's ids need /etc of the host and root
Docs    https://docs.kernel.org/admin-guide/cputopology.html

    MemTotal:       24684096 kB
"""

from collections.abc import Mapping
from typing import Any

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import (
    Rows,
    SlowSource,
    list_names,
    read_folder,
    split_lines,
    to_number,
)
from nodescope.collect.run.source import Context

CORES = "sys/devices/system/cpu"
REGIONS = "sys/bus/nd/devices"
TOPOLOGY = ("core_id", "physical_package_id")
IDS = {
    "boot_id": "proc/sys/kernel/random/boot_id",
    "machine_id": "etc/machine-id",
    "system_uuid": "sys/class/dmi/id/product_uuid",
}
# nstype of ND_DEVICE_NAMESPACE_PMEM: memory that is addressed, not a block device.
PERSISTENT = "2"
KIB = 1024.0
COLUMNS = (
    ("cpu_cores", "", "Logical cores that are online."),
    ("cpu_physical_cores", "", "Physical cores."),
    ("cpu_sockets", "", "Sockets."),
    ("memory_bytes", "bytes", "Memory of the machine."),
    ("swap_bytes", "bytes", "Swap of the machine."),
)
TABLE = Table(
    "machine",
    "machine",
    ("device",),
    (
        *(
            Metric(f"machine.{name}", "gauge", sentence, f"machine_{name}", unit=unit)
            for name, unit, sentence in COLUMNS
        ),
        Metric(
            "machine.nvm_capacity",
            "gauge",
            "Bytes of persistent memory of the machine.",
            "machine_nvm_capacity",
            labels=(("mode", "app_direct_mode"),),
        ),
    ),
)


def read(context: Context) -> dict[str, Any] | None:
    memory = context.root.read_text("proc/meminfo")
    stat = context.root.read_text("proc/stat")
    if memory is None or stat is None:
        return None
    cores = [words[0] for words in split_lines(stat) if words[0].startswith("cpu") and words[0] != "cpu"]
    regions = list_names(context, REGIONS, r"region\d+")
    return {
        "memory": memory,
        "cores": {core: read_folder(context, f"{CORES}/{core}/topology", TOPOLOGY) for core in cores},
        "regions": [read_folder(context, f"{REGIONS}/{name}", ("size", "nstype")) for name in regions],
        "ids": {key: context.root.read_text(path) or "" for key, path in IDS.items()},
    }


def parse(found: Mapping[str, Any]) -> tuple[Rows, ...]:
    memory = {words[0].rstrip(":"): words[1] for words in split_lines(found["memory"]) if len(words) > 1}
    cores = found["cores"]
    places = {tuple(texts.get(key, "") for key in TOPOLOGY) for texts in cores.values() if texts}
    persistent = [to_number(one.get("size")) for one in found["regions"] if one.get("nstype") == PERSISTENT]
    values = [
        float(len(cores)),
        float(len(places)) if places else NAN,
        float(len({package for _, package in places})) if places else NAN,
        to_number(memory.get("MemTotal"), KIB),
        to_number(memory.get("SwapTotal"), KIB),
        sum(persistent) if persistent else NAN,
    ]
    labels = tuple((key, clean_text(text)) for key, text in found["ids"].items())
    return ({Entity("device", ("machine",), labels): values},)


make = SlowSource("machine", (TABLE,), read, parse, "no /proc/meminfo: this is not Linux", pace_seconds=300.0)
