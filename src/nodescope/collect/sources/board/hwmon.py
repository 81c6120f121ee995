"""
Temperatures, fans, voltages, currents and power of the machine's sensors.

Reads   /sys/class/hwmon/hwmonN/{name,tempN_input,fanN_input,inN_input,currN_input,powerN_input,...}
Needs   Linux with a driver of the sensors; most virtual machines have none
Docs    https://docs.kernel.org/hwmon/sysfs-interface.html

    45000

Thousandths of degrees, volts and amperes, millionths of watts and joules. A
chip is named as node_exporter names it: by the bus and the device that it
belongs to. A sensor may need a slow bus to answer: it is asked every half
minute, on a thread of its own.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Mapping

from nodescope.base.block import Info, Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import Rows, SlowSource, list_names, to_number
from nodescope.collect.run.source import Context

FOLDER = "sys/class/hwmon"
# A chip of a large server has some 200 files.
MOST_FILES = 512
MILLI, MICRO = 1e-3, 1e-6
# Kind of sensor, its element, published name, unit, scale.
COLUMNS: tuple[tuple[str, str, str, str, float], ...] = (
    *(
        ("temp", element, f"temp_{element}_celsius".replace("_input", ""), "celsius", MILLI)
        for element in ("input", "max", "min", "crit", "crit_hyst", "max_hyst", "emergency", "lcrit")
    ),
    ("temp", "alarm", "temp_alarm", "", 1.0),
    ("temp", "crit_alarm", "temp_crit_alarm_celsius", "", MILLI),
    ("temp", "max_alarm", "temp_max_alarm_celsius", "", MILLI),
    ("temp", "fault", "temp_fault", "", 1.0),
    *(
        ("fan", element, f"fan_{element}_rpm".replace("_input", ""), "", 1.0)
        for element in ("input", "min", "max", "target")
    ),
    ("fan", "alarm", "fan_alarm", "", 1.0),
    ("fan", "fault", "fan_fault", "", 1.0),
    *(
        ("in", element, f"in_{element}_volts".replace("_input", ""), "volts", MILLI)
        for element in ("input", "min", "max", "crit", "lcrit")
    ),
    ("in", "alarm", "in_alarm", "", 1.0),
    *(
        ("curr", element, f"curr_{element}_amps".replace("_input", ""), "amperes", MILLI)
        for element in ("input", "min", "max", "crit")
    ),
    *(
        ("power", element, f"power_{element}_watt".replace("_input", ""), "", MICRO)
        for element in ("input", "average", "cap", "max", "crit")
    ),
    ("energy", "input", "energy_joule_total", "", MICRO),
    ("humidity", "input", "humidity", "", MICRO),
    ("pwm", "", "pwm", "", 1.0),
    ("pwm", "enable", "pwm_enable", "", 1.0),
)
PLACES = {(kind, element): number for number, (kind, element, *_) in enumerate(COLUMNS)}
_SENSOR = re.compile(r"(temp|fan|in|curr|power|energy|humidity|pwm)(\d+)(?:_(\w+))?")
SENSORS = Table(
    "hwmon",
    "hwmon",
    ("device",),
    tuple(
        Metric(
            f"hwmon.{kind}_{element}".rstrip("_"),
            "counter" if kind == "energy" else "gauge",
            f"{element.replace('_', ' ').capitalize() or 'Duty cycle'} of a {kind} sensor.",
            f"node_hwmon_{name}",
            unit=unit,
            scale=scale,
        )
        for kind, element, name, unit, scale in COLUMNS
    ),
    Info("node_hwmon_sensor_label", "What the maker calls a sensor; always 1.", ("label",)),
)
CHIPS = Table(
    "hwmon.chip",
    "hwmon",
    ("device",),
    (),
    Info("node_hwmon_chip_names", "The driver's name of a chip; always 1.", ("chip_name",)),
)


def clean_name(text: str) -> str:
    """As node_exporter has it: small letters, digits, underscores and colons."""
    return clean_text(re.sub(r"[^a-z0-9:_]", "_", text.lower().strip())).strip("_")


def name_chip(context: Context, folder: str) -> str:
    """The bus and the device; where there is no device, the driver's name; then the folder's."""
    here = follow(context, folder)
    device = follow(context, f"{here}/device")
    if device != f"{here}/device" or context.root.exists(device):
        kind, _, own = device.rpartition("/")
        return f"{clean_name(kind.rpartition('/')[2])}_{clean_name(own)}".strip("_")
    return clean_name(context.root.read_text(f"{folder}/name") or "") or here.rpartition("/")[2]


def follow(context: Context, path: str) -> str:
    """Where a link of /sys leads; the path itself where it is none."""
    target = context.root.link(path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path


def read(context: Context) -> list[dict[str, object]] | None:
    chips = [read_chip(context, f"{FOLDER}/{name}") for name in list_names(context, FOLDER, r"hwmon\d+")]
    tell_apart(chips)
    return chips or None


def tell_apart(chips: list[dict[str, object]]) -> None:
    """Chips of one device carry their driver's name as well; where that is the same, their number."""
    names = Counter(chip["chip"] for chip in chips)
    pairs = Counter((chip["chip"], chip["driver"]) for chip in chips)
    for chip in chips:
        own, driver = chip["chip"], clean_name(str(chip["driver"]))
        if names[own] > 1:
            is_same = not driver or pairs[own, chip["driver"]] > 1
            chip["chip"] = f"{own}_{chip['folder'] if is_same else driver}"


def read_chip(context: Context, folder: str) -> dict[str, object]:
    """Its name and the texts of its files, which older drivers keep with the device."""
    texts: dict[str, str] = {}
    for here in (folder, f"{folder}/device"):
        for name in list_names(context, here, _SENSOR.pattern)[:MOST_FILES]:
            text = context.root.read_text(f"{here}/{name}")
            if text is not None:
                texts.setdefault(name, text)
    driver = context.root.read_text(f"{folder}/name") or ""
    return {
        "chip": name_chip(context, folder),
        "driver": driver,
        "folder": folder.rpartition("/")[2],
        "files": texts,
    }


def parse(chips: list[Mapping[str, object]]) -> tuple[Rows, ...]:
    sensors: dict[Entity, list[float]] = {}
    names: dict[Entity, list[float]] = {}
    for number, found in enumerate(chips):
        chip, files = str(found["chip"]), found["files"]
        if isinstance(files, Mapping):
            sensors.update(parse_chip(chip, files))
        named = (("chip_name", clean_name(str(found["driver"]))),)
        names[Entity("device", ("hwmon", chip, str(number)), (("chip", chip),), named)] = []
    return sensors, names


def parse_chip(chip: str, files: Mapping[str, str]) -> dict[Entity, list[float]]:
    values: dict[str, list[float]] = {}
    labels: dict[str, str] = {}
    for file, text in files.items():
        match = _SENSOR.fullmatch(file)
        if match is None:
            continue
        kind, number, element = match.groups()
        if element == "label":
            labels[kind + number] = clean_text(text)
        elif (place := PLACES.get((kind, element or ""))) is not None:
            values.setdefault(kind + number, [NAN] * len(COLUMNS))[place] = to_number(text)
    return {name_sensor(chip, sensor, labels.get(sensor)): row for sensor, row in values.items()}


def name_sensor(chip: str, sensor: str, label: str | None) -> Entity:
    details = (("label", label),) if label is not None else ()
    return Entity("device", ("hwmon", chip, sensor), (("chip", chip), ("sensor", sensor)), details)


make = SlowSource(
    "hwmon",
    (SENSORS, CHIPS),
    read,
    parse,
    "no /sys/class/hwmon/hwmon*: a virtual machine, or no driver is loaded",
)
