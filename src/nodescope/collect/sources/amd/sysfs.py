"""
AMD GPUs from the kernel's own files: the card's folder, its hwmon, and KFD.

    /sys/class/drm/card0/device/gpu_busy_percent            37
    /sys/class/drm/card0/device/mem_info_vram_used          6782976
    /sys/class/drm/card0/device/hwmon/hwmon3/power1_average 39000000        microwatts
    /sys/class/drm/card0/device/pp_dpm_sclk                 1: 731Mhz *     the star marks the level in force
    /sys/class/kfd/kfd/proc/4242/vram_29022                 1073741824      bytes; 29022 is KFD's own gpu_id

A file that a card does not have, or cannot fill (EINVAL, ENODATA, EOPNOTSUPP),
is a reading it does not have. EPERM is a card that sleeps or is in reset. A
sleeping card is left asleep: kernels before 6.15 would wake it for a reading.
pcie_bw is never read: it takes a second to count.
"""

import errno
import re
from collections.abc import Iterator
from typing import Any

from nodescope.base.text import clean_text
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.amd.gpu_metrics import read_gpu_metrics

Values = dict[str, float]

DRM = "sys/class/drm"
KFD = "sys/class/kfd/kfd"
AMD_VENDOR = "0x1002"
_CARD = re.compile(r"card([0-9]+)")
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_LEVEL = re.compile(r"^\s*\w+:\s*([0-9]+)\s*mhz\s*\*", re.IGNORECASE | re.MULTILINE)
_COUNT = re.compile(r"^\s*(ue|ce)\s*:\s*([0-9]+)", re.MULTILINE)
_SPEED = re.compile(r"([0-9.]+?)(?:\.0)?\s*GT/s")

# (file, our key, divided by)
FILES = (
    ("gpu_busy_percent", "utilization", 1),
    ("mem_busy_percent", "memory_busy", 1),
    ("mem_info_vram_used", "memory_used", 1),
    ("mem_info_vram_total", "memory_total", 1),
    ("mem_info_vis_vram_used", "visible_used", 1),
    ("mem_info_vis_vram_total", "visible_total", 1),
    ("mem_info_gtt_used", "gtt_used", 1),
    ("mem_info_gtt_total", "gtt_total", 1),
    ("pcie_replay_count", "pcie_replays", 1),
)
PERCENTS = frozenset({"utilization", "memory_busy"})
LEVELS = {
    "pp_dpm_sclk": "clock.graphics",
    "pp_dpm_mclk": "clock.memory",
    "pp_dpm_socclk": "clock.soc",
    "pp_dpm_fclk": "clock.fabric",
}
FREQUENCIES = {"sclk": "clock.graphics", "mclk": "clock.memory"}
TEMPERATURES = {"edge": "temperature", "junction": "temperature_junction", "mem": "temperature_memory"}
GENERATIONS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}


class Asleep(Exception):
    """The card is suspended or in reset: it has no readings, and that is no fault."""


def read_number(root: NodeRoot, path: str) -> float | None:
    """A whole number; None where the card has none. Asleep when the kernel says EPERM."""
    try:
        text = root.read(path).strip().decode("ascii", "replace")
    except OSError as error:
        if error.errno == errno.EPERM:
            raise Asleep(path) from error
        return None
    return float(text) if _NUMBER.fullmatch(text) else None


def read_cards(root: NodeRoot) -> list[dict[str, Any]]:
    """Every AMD card by its place on the bus; those without amdgpu are left out."""
    cards = [read_card(root, name) for name in list_cards(root)]
    cards.sort(key=lambda card: (card["pci_bus_id"] or "~", card["number"]))
    seen: dict[str, int] = {}
    for card in cards:
        seen[card["uuid"]] = seen.get(card["uuid"], 0) + 1
    for index, card in enumerate(cards):
        card["index"] = index
        # The two dies of one MI250 share their unique id.
        if seen[card["uuid"]] > 1:
            card["uuid"] = f"{card['uuid']}@{card['pci_bus_id'] or card['card']}"
    add_processes(root, cards)
    return cards


def list_cards(root: NodeRoot) -> list[str]:
    try:
        names = root.names(DRM)
    except OSError:
        return []
    return sorted((name for name in names if _CARD.fullmatch(name) and is_amd(root, name)), key=number_of)


def number_of(name: str) -> int:
    match = _CARD.fullmatch(name)
    return int(match[1]) if match else 0


def is_amd(root: NodeRoot, name: str) -> bool:
    device = f"{DRM}/{name}/device"
    vendor = root.read_text(f"{device}/vendor")
    if vendor is not None and vendor.lower() != AMD_VENDOR:
        return False
    driver = parse_uevent(root.read_text(f"{device}/uevent") or "").get("DRIVER", "amdgpu")
    # Only amdgpu writes these; a card given to a virtual machine has none.
    return driver == "amdgpu" and (vendor is not None or root.exists(f"{device}/mem_info_vram_total"))


def parse_uevent(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def read_card(root: NodeRoot, name: str) -> dict[str, Any]:
    device = f"{DRM}/{name}/device"
    uevent = parse_uevent(root.read_text(f"{device}/uevent") or "")
    pci = uevent.get("PCI_SLOT_NAME", "").lower()
    unique = root.read_text(f"{device}/unique_id") or ""
    # Consumer cards have no unique id, or zero.
    uuid = unique if unique.strip("0") else (f"pci-{pci}" if pci else name)
    return {
        "card": name,
        "number": number_of(name),
        "uuid": clean_text(uuid),
        "pci_bus_id": clean_text(pci),
        "name": clean_text(root.read_text(f"{device}/product_name") or uevent.get("PCI_ID", "")),
        "serial": clean_text(root.read_text(f"{device}/serial_number") or ""),
        "vbios_version": clean_text(root.read_text(f"{device}/vbios_version") or ""),
        "model": clean_text(root.read_text(f"{device}/product_number") or ""),
        "readings": read_readings(root, device),
    }


def read_readings(root: NodeRoot, device: str) -> Values:
    if root.read_text(f"{device}/power/runtime_status") == "suspended":
        return {"up": 1, "asleep": 1}
    try:
        values = {"up": 1.0, "asleep": 0.0} | read_files(root, device) | read_levels(root, device)
        values |= read_hwmon(root, device) | read_link(root, device) | read_errors(root, device)
        # The firmware's table has what no file of its own has.
        return read_gpu_metrics(root, device) | values
    except Asleep:
        return {"up": 1, "asleep": 1}


def read_files(root: NodeRoot, device: str) -> Values:
    values = {}
    for file, key, divisor in FILES:
        number = read_number(root, f"{device}/{file}")
        # Firmware that has no answer gives 65535; a percentage is at most 100.
        if number is not None and number >= 0 and not (key in PERCENTS and number > 100):
            values[key] = number / divisor
    if "memory_total" in values and "memory_used" in values:
        values["memory_free"] = max(0.0, values["memory_total"] - values["memory_used"])
    return values


def read_levels(root: NodeRoot, device: str) -> Values:
    values = {}
    for file, key in LEVELS.items():
        level = _LEVEL.search(root.read_text(f"{device}/{file}") or "")
        if level:
            values[key] = float(level[1]) * 1e6
    return values


def read_hwmon(root: NodeRoot, device: str) -> Values:
    """Temperatures by their labels, power, fan, and clocks that are finer than the levels."""
    values: Values = {}
    for folder, files in list_hwmon(root, device):
        for place in range(1, 10):
            label = root.read_text(f"{folder}/temp{place}_label") or ("edge" if place == 1 else "")
            add(values, TEMPERATURES.get(label), read_listed(root, folder, files, f"temp{place}_input"), 1000)
            label = root.read_text(f"{folder}/freq{place}_label") or ""
            add(values, FREQUENCIES.get(label), read_listed(root, folder, files, f"freq{place}_input"), 1)
        # Newer parts give the present power only, older ones only its mean.
        for file, key in (("power1_input", "power_now"), ("power1_average", "power_mean")):
            for name in ("power", key):
                add(values, name, read_listed(root, folder, files, file), 1_000_000)
        add(values, "power_limit", read_listed(root, folder, files, "power1_cap"), 1_000_000)
        add(values, "energy", read_listed(root, folder, files, "energy1_input"), 1_000_000)
        add(values, "fan_rpm", read_listed(root, folder, files, "fan1_input"), 1)
        full = read_listed(root, folder, files, "pwm1_max") or 255.0
        duty = read_listed(root, folder, files, "pwm1")
        add(values, "fan", None if duty is None else 100 * duty, full)
    if "temperature" in values:
        values["temperature_edge"] = values["temperature"]
    elif "temperature_junction" in values:
        # MI300 has no edge sensor.
        values["temperature"] = values["temperature_junction"]
    return values


def list_hwmon(root: NodeRoot, device: str) -> Iterator[tuple[str, set[str]]]:
    try:
        names = sorted(root.names(f"{device}/hwmon"))
    except OSError:
        return
    for name in names:
        folder = f"{device}/hwmon/{name}"
        try:
            yield folder, set(root.names(folder))
        except OSError:
            continue


def read_listed(root: NodeRoot, folder: str, files: set[str], file: str) -> float | None:
    return read_number(root, f"{folder}/{file}") if file in files else None


def add(values: Values, key: str | None, number: float | None, divisor: float) -> None:
    if key is not None and number is not None:
        values[key] = number / divisor


def read_link(root: NodeRoot, device: str) -> Values:
    values = {}
    speed = _SPEED.search(root.read_text(f"{device}/current_link_speed") or "")
    if speed and speed[1] in GENERATIONS:
        values["pcie_generation"] = float(GENERATIONS[speed[1]])
        values["pcie_speed"] = float(speed[1])
    most = _SPEED.search(root.read_text(f"{device}/max_link_speed") or "")
    if most and most[1] in GENERATIONS:
        values["pcie_max_speed"] = float(most[1])
    width = read_number(root, f"{device}/current_link_width")
    # 0 and 255 are the kernel's "unknown".
    if width and width < 255:
        values["pcie_width"] = width
    return values


def read_errors(root: NodeRoot, device: str) -> Values:
    """Sums over the blocks that count errors: `ue: 0` and `ce: 3`."""
    try:
        names = root.names(f"{device}/ras")
    except OSError:
        return {}
    words = {"ue": "ecc.uncorrected", "ce": "ecc.corrected"}
    values: Values = {}
    for name in names:
        if name.endswith("_err_count"):
            for kind, count in _COUNT.findall(root.read_text(f"{device}/ras/{name}") or ""):
                values[words[kind]] = values.get(words[kind], 0.0) + float(count)
    return values


# -- processes, from KFD ------------------------------------------------------


def add_processes(root: NodeRoot, cards: list[dict[str, Any]]) -> None:
    """Who computes on which card; no list at all where KFD is not there."""
    try:
        pids = sorted((name for name in root.names(f"{KFD}/proc") if name.isdigit()), key=int)
    except OSError:
        return
    gpu_ids = read_gpu_ids(root)
    for card in cards:
        gpu_id = gpu_ids.get(card["pci_bus_id"])
        if gpu_id is not None:
            found = [read_process(root, pid, gpu_id) for pid in pids]
            card["processes"] = [process for process in found if process]


def read_gpu_ids(root: NodeRoot) -> dict[str, str]:
    """PCI address -> KFD's gpu_id; location_id is bus << 8 | device << 3 | function."""
    found = {}
    for node in root.folders(f"{KFD}/topology/nodes"):
        folder = f"{KFD}/topology/nodes/{node}"
        gpu_id = root.read_text(f"{folder}/gpu_id") or "0"
        lines = (line.split() for line in (root.read_text(f"{folder}/properties") or "").splitlines())
        facts = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
        if gpu_id != "0" and "location_id" in facts:
            place = facts["location_id"]
            address = (
                f"{facts.get('domain', 0):04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
            )
            found[address] = gpu_id
    return found


def read_process(root: NodeRoot, pid: str, gpu_id: str) -> dict[str, Any] | None:
    """A process that holds memory or a queue on the card; KFD lists it for all cards."""
    folder = f"{KFD}/proc/{pid}"
    memory = read_number(root, f"{folder}/vram_{gpu_id}")
    if not memory and not has_queue(root, folder, gpu_id):
        return None
    process: dict[str, Any] = {"pid": int(pid)}
    sdma_us = read_number(root, f"{folder}/sdma_{gpu_id}")
    occupancy = read_number(root, f"{folder}/stats_{gpu_id}/cu_occupancy")
    if memory is not None:
        process["memory"] = memory
    if sdma_us is not None:
        process["sdma"] = sdma_us / 1e6
    if occupancy is not None:
        process["cu_occupancy"] = occupancy
    return process


def has_queue(root: NodeRoot, folder: str, gpu_id: str) -> bool:
    queues = root.folders(f"{folder}/queues")
    return any(root.read_text(f"{folder}/queues/{queue}/gpuid") == gpu_id for queue in queues)
