"""
amd-smi's answers, of every generation.

    [{"gpu": 0, "usage": {"gfx_activity": {"value": 42, "unit": "%"}, "umc_activity": "N/A"},
      "power": {"socket_power": {"value": 10, "unit": "W"}}, "mem_usage": {"total_vram": {"value": 32752, "unit": "MB"}}}]

ROCm 6.0 has bare numbers, 6.1 and later a value with its unit, 7.x puts the
list under "gpu_data"; some commands print several documents. "N/A" may stand
for a value, for an item of a list, or for a whole section. Its MB are MiB.
Before the JSON may stand a line of a C++ library, a warning about groups, or
the banner of --watch.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nodescope.base.errors import ParseError
from nodescope.base.text import clean_text
from nodescope.collect.sources.amd.rocm_smi import explain, parse_number

UNITS = {
    **dict.fromkeys(("", "%", "c", "w", "j", "hz", "b", "rpm", "gt/s"), 1.0),
    **dict.fromkeys(("uw", "uj", "us"), 1e-6),
    **dict.fromkeys(("mw", "mj"), 1e-3),
    **dict.fromkeys(("kj", "khz"), 1e3),
    **dict.fromkeys(("kb", "kib"), 2.0**10),
    **dict.fromkeys(("mb", "mib"), 2.0**20),
    **dict.fromkeys(("gb", "gib"), 2.0**30),
    "ns": 1e-9,
    "mhz": 1e6,
    "ghz": 1e9,
}
# (section, names of the value through time, ours, unit of a bare number)
VALUES = (
    ("usage", ("gfx_activity", "gfx_usage", "gfx"), "utilization", "%"),
    ("usage", ("umc_activity", "mem_activity", "mem_usage", "umc"), "memory_busy", "%"),
    (
        "power",
        ("socket_power", "current_socket_power", "average_socket_power", "current_power"),
        "power",
        "w",
    ),
    ("power", ("power_limit", "power_cap", "socket_power_limit"), "power_limit", "w"),
    ("temperature", ("edge", "edge_temperature"), "temperature", "c"),
    ("temperature", ("hotspot", "junction", "hotspot_temperature"), "temperature_junction", "c"),
    ("temperature", ("mem", "vram", "memory", "mem_temperature"), "temperature_memory", "c"),
    ("mem_usage", ("total_vram", "vram_total"), "memory_total", "mb"),
    ("mem_usage", ("used_vram", "vram_used"), "memory_used", "mb"),
    ("mem_usage", ("free_vram", "vram_free"), "memory_free", "mb"),
    ("mem_usage", ("total_visible_vram",), "visible_total", "mb"),
    ("mem_usage", ("used_visible_vram",), "visible_used", "mb"),
    ("mem_usage", ("total_gtt",), "gtt_total", "mb"),
    ("mem_usage", ("used_gtt",), "gtt_used", "mb"),
    ("ecc", ("total_correctable_count", "total_correctable", "correctable_count"), "ecc.corrected", ""),
    (
        "ecc",
        ("total_uncorrectable_count", "total_uncorrectable", "uncorrectable_count"),
        "ecc.uncorrected",
        "",
    ),
    ("pcie", ("replay_count", "pcie_replay_count"), "pcie_replays", ""),
    ("pcie", ("width", "current_lanes"), "pcie_width", ""),
    ("fan", ("usage",), "fan", "%"),
    ("fan", ("rpm",), "fan_rpm", "rpm"),
    ("energy", ("total_energy_consumption",), "energy", "j"),
)
SECTIONS = {"mem_usage": ("mem_usage", "vram", "fb_memory_usage"), "ecc": ("ecc", "ecc_count")}
CLOCKS = {
    "clock.graphics": ("gfx_0", "gfx"),
    "clock.memory": ("mem_0", "mem"),
    "clock.soc": ("socclk_0", "soc_0", "socclk"),
    "clock.fabric": ("fclk_0", "fclk"),
}
# Words in the name of a violation -> our reason.
VIOLATIONS = (
    ("ppt_violation_status", "software_power_cap"),
    ("thermal_violation_status", "hardware_thermal"),
    ("prochot_violation_status", "hardware_slowdown"),
)


def parse_amd_smi(stdout: str, stderr: str = "") -> dict[str, Any]:
    """{"gpus": [...]} from metric, process, list or static; ParseError with the reason."""
    records: dict[int, dict[str, Any]] = {}
    for record in find_records(stdout):
        index = parse_number(record["gpu"])
        if index is not None and 0 <= index < 4096:
            # Several documents, or several readings of --watch: the later wins.
            records[int(index)] = {**records.get(int(index), {}), **record}
    if not records:
        raise ParseError(f"amd-smi: {explain(stdout, stderr)}")
    gpus = [{"index": index, **parse_record(record)} for index, record in sorted(records.items())]
    return {"gpus": gpus}


def find_records(text: str) -> Iterator[Mapping[str, Any]]:
    """Every object with a "gpu" in every document that is whole."""
    place = 0
    decoder = json.JSONDecoder()
    while place < len(text):
        starts = [start for start in (text.find("{", place), text.find("[", place)) if start >= 0]
        if not starts:
            return
        place = min(starts)
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            # Not JSON: go on with the next line, not inside an object that broke off.
            place = text.find("\n", place) + 1 or len(text)
            while place < len(text) and text[place] not in "{[":
                place = text.find("\n", place) + 1 or len(text)
            continue
        yield from unwrap(value)


def unwrap(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if "gpu" in value:
            yield value
        for key in ("gpu_data", "gpus"):
            yield from unwrap(value.get(key))
    elif isinstance(value, list):
        for item in value:
            yield from unwrap(item)


def parse_value(value: Any, unit: str) -> float | None:
    """A number in base units; a bare one has the unit it is known to have."""
    if isinstance(value, Mapping):
        unit = str(value.get("unit") or unit)
        value = value.get("value")
    elif isinstance(value, str) and " " in value.strip():
        value, unit = value.strip().split(" ", 1)
    if isinstance(value, (Mapping, list)) or value is None:
        return None
    number = parse_number(value)
    scale = UNITS.get(unit.strip().lower())
    return None if number is None or scale is None else number * scale


def section_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section, or nothing where "N/A" stands in its place."""
    for key in SECTIONS.get(name, (name,)):
        if isinstance(record.get(key), Mapping):
            section: Mapping[str, Any] = record[key]
            return section
    return {}


def parse_record(record: Mapping[str, Any]) -> dict[str, Any]:
    readings: dict[str, float] = {}
    for name, keys, ours, unit in VALUES:
        section = section_of(record, name)
        number = next(
            (found for key in keys if (found := parse_value(section.get(key), unit)) is not None), None
        )
        if number is not None and number >= 0:
            readings[ours] = number
    add_partitions(readings, section_of(record, "usage").get("gfx_busy_inst"))
    add_clocks(readings, section_of(record, "clock"))
    add_violations(readings, section_of(record, "throttle"))
    if "temperature_junction" in readings:
        readings.setdefault("temperature", readings["temperature_junction"])
    gpu: dict[str, Any] = {
        "pci_bus_id": fact(record.get("bdf") or section_of(record, "bus").get("bdf")).lower(),
        "uuid": fact(record.get("uuid")),
        "name": fact(section_of(record, "asic").get("market_name")),
        "readings": readings,
    }
    if isinstance(record.get("process_list"), list):
        gpu["processes"] = [*parse_processes(record["process_list"])]
    return gpu


def fact(value: Any) -> str:
    word = clean_text(str(value if value is not None else ""))
    return "" if word.lower().startswith("n/a") else word


def add_partitions(readings: dict[str, float], partitions: Any) -> None:
    """`{"xcp_0": [{"value": 30, "unit": "%"}, "N/A"], ...}`; a split GPU has no activity as a whole, but their mean."""
    if not isinstance(partitions, Mapping):
        return
    busy = {}
    for name, units in partitions.items():
        place = str(name).removeprefix("xcp_")
        for unit, value in enumerate(units if isinstance(units, list) else [units]):
            number = parse_value(value, "%")
            if place.isdigit() and number is not None and 0 <= number <= 100:
                busy[f"unit_busy.{int(place)}.{unit}"] = number
    readings |= busy
    if busy:
        readings.setdefault("utilization", sum(busy.values()) / len(busy))


def add_clocks(readings: dict[str, float], clocks: Mapping[str, Any]) -> None:
    for ours, names in CLOCKS.items():
        for name in names:
            clock = clocks.get(name)
            present = clock.get("clk", clock.get("cur_clk", clock)) if isinstance(clock, Mapping) else clock
            number = parse_value(present, "mhz")
            if number is not None:
                readings[ours] = number
                break


def add_violations(readings: dict[str, float], section: Mapping[str, Any]) -> None:
    for key, value in section.items():
        for words, reason in VIOLATIONS:
            if str(key).endswith(words) and str(value).upper() in ("ACTIVE", "NOT ACTIVE"):
                place = f"throttled.{reason}"
                readings[place] = max(readings.get(place, 0.0), float(str(value).upper() == "ACTIVE"))


def parse_processes(listed: list[Any]) -> Iterator[dict[str, Any]]:
    """An idle GPU has a sentence where the process would stand."""
    for item in listed:
        info = item.get("process_info", item) if isinstance(item, Mapping) else None
        if not isinstance(info, Mapping):
            continue
        pid = parse_number(info.get("pid"))
        if pid is None or pid <= 0:
            continue
        process: dict[str, Any] = {"pid": int(pid), "name": fact(info.get("name"))}
        memory = parse_value(section_of(info, "memory_usage").get("vram_mem"), "b")
        if memory is None:
            memory = parse_value(info.get("mem_usage"), "b")
        occupancy = parse_value(info.get("cu_occupancy"), "")
        if memory is not None:
            process["memory"] = memory
        if occupancy is not None:
            process["cu_occupancy"] = occupancy
        yield process
