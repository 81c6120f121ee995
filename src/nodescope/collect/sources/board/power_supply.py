"""
Power supplies and batteries, where the kernel knows them.

Reads   /sys/class/power_supply/*/{online,present,capacity,energy_now,power_now,voltage_now,...}
Needs   Linux; servers mostly keep this in their BMC
Docs    https://docs.kernel.org/power/power_supply_class.html

    1
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.slow_source import Rows, SlowSource, list_names, pick_numbers, read_folder
from nodescope.collect.run.source import Context

FOLDER = "sys/class/power_supply"
# File, published name, scale: millionths of volts, amperes, watts and watt-hours.
COLUMNS = (
    ("online", "online", 1.0),
    ("present", "present", 1.0),
    ("capacity", "capacity", 1.0),
    ("current_now", "current_ampere", 1e-6),
    ("voltage_now", "voltage_volt", 1e-6),
    ("power_now", "power_watt", 1e-6),
    ("energy_now", "energy_watthour", 1e-6),
    ("energy_full", "energy_full", 1e-6),
    ("charge_now", "charge_ampere", 1e-6),
    ("temp", "temp_celsius", 0.1),
)
FILES = tuple(file for file, _, _ in COLUMNS)
TABLE = Table(
    "power_supply",
    "power_supply",
    ("device",),
    tuple(
        Metric(
            f"power_supply.{file}",
            "gauge",
            f"{file} of a power supply.",
            f"node_power_supply_{name}",
            scale=scale,
        )
        for file, name, scale in COLUMNS
    ),
)


def read(context: Context) -> dict[str, dict[str, str]] | None:
    names = list_names(context, FOLDER)
    return {name: read_folder(context, f"{FOLDER}/{name}", FILES) for name in names} or None


def parse(found: Mapping[str, Mapping[str, str]]) -> tuple[Rows, ...]:
    return ({name_supply(name): pick_numbers(texts, FILES) for name, texts in found.items()},)


def name_supply(name: str) -> Entity:
    own = clean_text(name)
    return Entity("device", ("power_supply", own), (("power_supply", own),))


make = SlowSource("power_supply", (TABLE,), read, parse, "nothing in /sys/class/power_supply")
