"""
What nvidia-smi prints: XML, its long text, a table of chosen fields, its default table.

    <gpu id="00000000:07:00.0">            -q -x, the one this agent asks for
        <utilization><gpu_util>87 %</gpu_util></utilization>
    GPU 00000000:07:00.0                   -q, the same tree by indentation
        Utilization
            GPU                            : 87 %
    uuid, utilization.gpu [%]              --query-gpu=... --format=csv
    GPU-0b1c, 87 %
    | 38%   38C    P2    97W /  250W | ... no arguments: whole watts, cut names, no uuid

Names of fields changed with the drivers; each reading knows all of its own. "N/A"
in any of its spellings is no value, and so is a unit that is not known here.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.errors import ParseError

ARGUMENTS = ("-q", "-x")
Lookup = Callable[[str], str]

UNITS = {
    "": 1.0,
    "%": 1.0,
    "C": 1.0,
    "W": 1.0,
    "x": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "MHz": 1e6,
    "KB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
}
FLAGS = {"active": 1, "not active": 0, "yes": 1, "no": 0, "enabled": 1, "disabled": 0}
RECOVERIES = {"none": 0, "reset": 1, "gpu reset": 1, "reboot": 2, "node reboot": 2, "drain p2p": 3}
RECOVERIES |= {"drain and reset": 4}
# Our key, and where it stands: in XML, in the long text, in CSV; the first with a value counts.
READINGS: dict[str, tuple[str, ...]] = {
    "utilization": ("utilization/gpu_util", "utilization/gpu", "utilization.gpu"),
    "memory_busy": ("utilization/memory_util", "utilization/memory", "utilization.memory"),
    "encoder": ("utilization/encoder_util", "utilization/encoder", "utilization.encoder"),
    "decoder": ("utilization/decoder_util", "utilization/decoder", "utilization.decoder"),
    "memory_total": ("fb_memory_usage/total", "memory.total"),
    "memory_used": ("fb_memory_usage/used", "memory.used"),
    "memory_free": ("fb_memory_usage/free", "memory.free"),
    "memory_reserved": ("fb_memory_usage/reserved", "memory.reserved"),
    "temperature": ("temperature/gpu_temp", "temperature/gpu_current_temp", "temperature.gpu"),
    "temperature_memory": (
        "temperature/memory_temp",
        "temperature/memory_current_temp",
        "temperature.memory",
    ),
    "power": (
        "power_readings/power_draw",
        "gpu_power_readings/power_draw",
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/instant_power_draw",
        "gpu_power_readings/instantaneous_power_draw",
        "power.draw",
        "power.draw.average",
        "power.draw.instant",
    ),
    "power_limit": (
        "power_readings/enforced_power_limit",
        "gpu_power_readings/enforced_power_limit",
        "gpu_power_readings/current_power_limit",
        "gpu_power_readings/gpu_ceiling_power_limit/current_power_limit",
        "power_readings/power_limit",
        "enforced.power.limit",
        "power.limit",
    ),
    "clock.graphics": ("clocks/graphics_clock", "clocks/graphics", "clocks.current.graphics", "clocks.gr"),
    "clock.sm": ("clocks/sm_clock", "clocks/sm", "clocks.current.sm", "clocks.sm"),
    "clock.memory": ("clocks/mem_clock", "clocks/memory", "clocks.current.memory", "clocks.mem"),
    "clock.video": ("clocks/video_clock", "clocks/video", "clocks.current.video", "clocks.video"),
    "rows_remapped.corrected": (
        "remapped_rows/remapped_row_corr",
        "remapped_rows/correctable_error",
        "remapped_rows.correctable",
    ),
    "rows_remapped.uncorrected": (
        "remapped_rows/remapped_row_unc",
        "remapped_rows/uncorrectable_error",
        "remapped_rows.uncorrectable",
    ),
    "row_remap_pending": (
        "remapped_rows/remapped_row_pending",
        "remapped_rows/pending",
        "remapped_rows.pending",
    ),
    "row_remap_failed": (
        "remapped_rows/remapped_row_failure",
        "remapped_rows/remapping_failure_occurred",
        "remapped_rows.failure",
    ),
    "retired_pages_pending": (
        "retired_pages/pending_retirement",
        "retired_pages/pending_blacklist",
        "retired_pages/pending_page_blacklist",
        "retired_pages.pending",
    ),
    "pcie_replays": ("pci/replay_counter", "pci/replays_since_reset"),
    "pcie_generation": (
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
        "pci/gpu_link_info/pcie_generation/current",
        "pcie.link.gen.current",
        "pcie.link.gen.gpucurrent",
    ),
    "pcie_width": (
        "pci/pci_gpu_link_info/link_widths/current_link_width",
        "pci/gpu_link_info/link_width/current",
        "pcie.link.width.current",
    ),
    "pcie_transmit_rate": ("pci/tx_util", "pci/tx_throughput"),
    "pcie_receive_rate": ("pci/rx_util", "pci/rx_throughput"),
    "fan": ("fan_speed", "fan.speed"),
    "performance_state": ("performance_state", "pstate"),
    "mig": ("mig_mode/current_mig", "mig_mode/current", "mig.mode.current"),
}
# The last part of a throttle reason's name: XML, CSV and the long text.
THROTTLES = {
    "idle": ("gpu_idle", "idle"),
    "application_clocks": ("applications_clocks_setting",),
    "software_power_cap": ("sw_power_cap",),
    "hardware_slowdown": ("hw_slowdown",),
    "sync_boost": ("sync_boost",),
    "software_thermal": ("sw_thermal_slowdown",),
    "hardware_thermal": ("hw_thermal_slowdown", "hw_slowdown/hw_thermal_slowdown"),
    "power_brake": ("hw_power_brake_slowdown", "hw_slowdown/hw_power_brake_slowdown"),
    "display_clocks": ("display_clocks_setting", "display_clock_setting"),
}
for _reason, _names in THROTTLES.items():
    READINGS[f"throttled.{_reason}"] = tuple(
        place.format(name)
        for name in _names
        for place in (
            "clocks_event_reasons/clocks_event_reason_{}",
            "clocks_event_reasons/{}",
            "clocks_event_reasons.{}",
            "clocks_throttle_reasons/clocks_throttle_reason_{}",
            "clocks_throttle_reasons/{}",
            "clocks_throttle_reasons.{}",
        )
    )
# Each way to an ECC count: one field, or several that add up and must all be there.
ECC = {
    "corrected": (
        ("ecc_errors/{}/single_bit/total",),
        ("ecc.errors.corrected.{}.total",),
        ("ecc_errors/{}/sram_correctable", "ecc_errors/{}/dram_correctable"),
    ),
    "uncorrected": (
        ("ecc_errors/{}/double_bit/total",),
        ("ecc.errors.uncorrected.{}.total",),
        ("ecc_errors/{}/sram_uncorrectable", "ecc_errors/{}/dram_uncorrectable"),
        (
            "ecc_errors/{}/sram_uncorrectable_parity",
            "ecc_errors/{}/sram_uncorrectable_secded",
            "ecc_errors/{}/dram_uncorrectable",
        ),
        (
            "ecc_errors/{}/sram_uncorrectable_parity",
            "ecc_errors/{}/sram_uncorrectable_sec_ded",
            "ecc_errors/{}/dram_uncorrectable",
        ),
    ),
}
FACTS = {
    "uuid": ("uuid", "gpu_uuid"),
    "name": ("product_name", "name", "gpu_name"),
    "serial": ("serial", "serial_number"),
    "vbios_version": ("vbios_version",),
    "pci_bus_id": ("pci/pci_bus_id", "pci/bus_id", "pci.bus_id", "gpu_bus_id"),
}
# What it says instead of readings, and what that means.
REFUSALS = (
    (r"couldn't communicate with the NVIDIA driver", "the NVIDIA kernel module is not loaded"),
    (r"version mismatch", "driver and library are of different versions: restart the node or its containers"),
    (r"Failed to initialize NVML", "the driver's library could not be initialised"),
    (r"couldn't find libnvidia-ml", "libnvidia-ml.so.1 is not there"),
    (r"No devices were found", "the driver shows no GPU"),
    (
        r"GPU is lost|fallen off the bus|Unable to determine the device handle",
        "a GPU is lost, and with it all",
    ),
    (r"^ERROR: |is not a valid field", "it did not understand its arguments"),
    (r"Insufficient Permissions", "the user may not open the GPU's device files"),
    (r"^(List of|Section about) |^\s*\"\w[\w.]*\"", "a help text"),
    (r"\A\s*[a-z][\w.]*\n[a-z][\w.]*\n", "names of fields without values"),
    (
        r"^\s*# (HELP|TYPE) |^DCGM_FI_\w+(\{.*\})? \S+$",
        "metrics of an exporter, which Prometheus reads itself",
    ),
    (r"^DCGM_FI_\w+$", "a list of DCGM's fields without values"),
    (r"^# gpu\s+(pwr|pid)\b", "a monitor's rows (dmon, pmon), which lack names and limits"),
    (r"^GPU \d+: .*\(UUID: ", "a list of GPUs without readings"),
    (r"^\s*GPU0\b.*CPU Affinity|^\s*Legend:", "the topology, which has no readings"),
    (r"Link \d+:|NVLink", "the state of NVLinks, which has no readings of a GPU"),
    (r"^NVIDIA-SMI version|^\s*NVIDIA System Management Interface", "a version or a help text"),
)
LOST = re.compile(r"GPU is lost", re.IGNORECASE)


def parse_nvidia_smi(text: str, errors: str = "") -> dict[str, Any]:
    """The driver and its GPUs; ParseError with the reason where there is no reading."""
    if text.count("NVSMI LOG=") > 1 or text.count("<nvidia_smi_log") > 1:
        raise ParseError("nvidia-smi: several answers in one text, and no telling which is the newest")
    if "<nvidia_smi_log" in text:
        answer = read_tree(parse_xml(text))
    elif "NVSMI LOG=" in text:
        answer = read_tree(parse_long(text))
    elif re.search(r"^\|\s*NVIDIA-SMI\s", text, re.MULTILINE):
        answer = read_table(text)
    elif is_csv(text):
        answer = read_csv(text)
    else:
        raise ParseError(f"nvidia-smi: {name_refusal(text, errors)}")
    if not answer["gpus"]:
        raise ParseError(f"nvidia-smi: {name_refusal(text, errors, 'the answer has no GPU')}")
    return answer


def name_refusal(text: str, errors: str, otherwise: str = "") -> str:
    for part in (text, errors):
        for pattern, reason in REFUSALS:
            if re.search(pattern, part, re.MULTILINE):
                return reason
    if not text.strip():
        return f"no output; {errors.strip()[:200]}" if errors.strip() else "no output at all"
    return otherwise or f"neither XML nor a table nor CSV, but {text.strip()[:60]!r}"


# -- values --------------------------------------------------------------------


def to_number(text: str, unit: str = "") -> float | None:
    """In base units; None for every spelling of "not available"."""
    text = text.strip().removeprefix("[").removesuffix("]")
    flag = FLAGS.get(text.lower())
    if flag is not None:
        return flag
    state = re.fullmatch(r"P(\d+)", text)
    if state:
        return float(state[1])
    number = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(%|[A-Za-z/]*)", text)
    scale = UNITS.get(number[2] or unit) if number else None
    return None if number is None or scale is None else float(number[1]) * scale


def first_text(lookup: Lookup, names: tuple[str, ...]) -> str:
    texts = (lookup(name).strip() for name in names)
    return next((text for text in texts if text and not re.match(r"\[?(N/A|Not Supp|Unknown|Req)", text)), "")


def read_gpu(lookup: Lookup, number: Callable[[str], float | None], index: int) -> dict[str, Any]:
    """One GPU: facts and readings by whatever names this form of the answer has."""
    gpu: dict[str, Any] = {"index": index, **{key: first_text(lookup, FACTS[key]) for key in FACTS}}
    readings: dict[str, float] = {}
    for key, names in READINGS.items():
        value = next((found for name in names if (found := number(name)) is not None), None)
        if value is not None:
            readings[key] = value
    for prefix, counter in (("ecc", "volatile"), ("ecc_lifetime", "aggregate")):
        for error, ways in ECC.items():
            for way in ways:
                parts = [number(name.format(counter)) for name in way]
                known = [part for part in parts if part is not None]
                if len(known) == len(parts):
                    readings[f"{prefix}.{error}"] = sum(known)
                    break
    action = RECOVERIES.get(first_text(lookup, ("gpu_recovery_action",)).lower())
    if action is not None:
        readings["recovery_action"] = action
    return {**gpu, "readings": readings}


# -- trees: XML and the long text ----------------------------------------------


@dataclass(slots=True)
class SmiNode:
    """A title with a value, with titles below it, or with both."""

    key: str
    text: str = ""
    children: list["SmiNode"] = field(default_factory=list)

    def below(self, key: str) -> Iterator["SmiNode"]:
        return (child for child in self.children if child.key == key)

    def find(self, path: str) -> "SmiNode | None":
        node: SmiNode | None = self
        for key in path.split("/"):
            node = next(node.below(key), None) if node is not None else None
        return node

    def lookup(self, path: str) -> str:
        node = self.find(path)
        return node.text if node is not None else ""

    def number(self, path: str) -> float | None:
        return to_number(self.lookup(path))


def parse_xml(text: str) -> SmiNode:
    start = text.find("<?xml")
    try:
        root = ET.fromstring(text[max(start, 0) :])  # noqa: S314 - the vendor's tool; expat bounds entities
    except ET.ParseError as error:
        raise ParseError(f"nvidia-smi: the XML breaks off or is broken: {error}") from error
    return from_element(root)


def from_element(element: ET.Element) -> SmiNode:
    node = SmiNode(element.tag, (element.text or "").strip(), [from_element(child) for child in element])
    if element.get("id"):
        node.children.append(SmiNode("id", element.get("id") or ""))
    return node


def parse_long(text: str) -> SmiNode:
    """Titles by indentation; `GPU 00000000:07:00.0` becomes a node `gpu` with its place below."""
    root = SmiNode("nvidia_smi_log")
    path: list[tuple[int, SmiNode]] = [(-1, root)]
    for line in text[text.index("NVSMI LOG=") :].splitlines()[1:]:
        match = re.match(r"( *)(\S.*?)(?:\s+: ?(.*))?$", line.rstrip())
        if match is None:
            continue
        depth = len(match[1])
        while path[-1][0] >= depth:
            path.pop()
        place = re.fullmatch(r"GPU ([0-9A-Fa-f]+:[0-9A-Fa-f:.]+)", match[2]) if depth == 0 else None
        key = "gpu" if place else re.sub(r"[^a-z0-9]+", "_", match[2].lower()).strip("_")
        node = SmiNode(key, (match[3] or "").strip())
        if place:
            node.children.append(SmiNode("id", place[1]))
        path[-1][1].children.append(node)
        path.append((depth, node))
    return root


def read_tree(root: SmiNode) -> dict[str, Any]:
    gpus = []
    for index, node in enumerate(root.below("gpu")):
        gpu = read_gpu(node.lookup, node.number, index)
        gpu["pci_bus_id"] = gpu["pci_bus_id"] or node.lookup("id")
        if LOST.search(node.text + node.lookup("product_name")):
            gpu["readings"] = {"up": 0}
        else:
            gpu |= {"parts": list(read_parts(node, gpu["uuid"]))} if gpu["readings"].get("mig") else {}
            processes = read_processes(node)
            gpu |= {"processes": processes} if processes is not None else {}
        gpus.append(gpu)
    # R610 adds to the version, in brackets, that the line will go.
    driver = first_text(root.lookup, ("driver_version", "kmd_version")).split(" [")[0]
    return {"driver": driver, "gpus": gpus}


def read_parts(gpu: SmiNode, uuid: str) -> Iterator[dict[str, Any]]:
    """MIG devices; where their uuid is not told, the form that drivers before R470 had stands for it."""
    holder = gpu.find("mig_devices") or gpu
    for part in holder.below("mig_device"):
        instance, compute = part.lookup("gpu_instance_id"), part.lookup("compute_instance_id")
        readings = {}
        for memory in ("total", "used", "free"):
            for section in ("fb_memory_usage", "shared_fb_memory_usage"):
                value = part.number(f"{section}/{memory}")
                if value is not None:
                    readings[f"memory_{memory}"] = value
        count = part.number("device_attributes/shared/multiprocessor_count")
        if count is not None:
            readings["multiprocessors"] = count
        yield {
            "uuid": part.lookup("uuid") or f"MIG-{uuid}/{instance}/{compute}",
            "gpu_instance_id": instance,
            "compute_instance_id": compute,
            "readings": readings,
        }


def read_processes(gpu: SmiNode) -> list[dict[str, Any]] | None:
    """Processes by pid; None where the driver does not tell."""
    holder = gpu.find("processes")
    if holder is None or holder.text in ("N/A", "Insufficient Permissions"):
        return None
    found: dict[int, dict[str, Any]] = {}
    instance: float | None = None
    for child in holder.children:
        if child.key == "gpu_instance_id":
            instance = to_number(child.text)
        elif child.key == "process_id":
            add_process(found, child.text, child.lookup("used_gpu_memory"), instance)
        elif child.key == "process_info":
            own = child.number("gpu_instance_id")
            add_process(found, child.lookup("pid"), child.lookup("used_memory"), own)
    return [found[pid] for pid in sorted(found)]


def add_process(found: dict[int, dict[str, Any]], pid: str, memory: str, instance: float | None) -> None:
    """In several MIG instances its memory adds up; unknown stays unknown."""
    if not pid.strip().isdigit():
        return
    record = found.setdefault(int(pid), {"pid": int(pid)})
    used = to_number(memory)
    if used is not None:
        record["memory"] = record.get("memory", 0) + used
    if instance is not None:
        record["gpu_instance_id"] = int(instance)


# -- CSV -------------------------------------------------------------------------


def split_line(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(", ")]


def find_header(text: str) -> Mapping[str, str]:
    """Field names with their units, in order."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    names = {}
    for cell in split_line(first):
        match = re.fullmatch(r"([A-Za-z][\w.]*)(?: \[([^]]+)\])?,?", cell)
        if match is None:
            return {}
        names[match[1]] = match[2] or ""
    return names


def is_csv(text: str) -> bool:
    """A header with a name that is known here; a name alone on the only line is just a word."""
    known = {name for names in (*READINGS.values(), *FACTS.values()) for name in names}
    header = find_header(text)
    return not known.isdisjoint(header) and (len(header) > 1 or len(text.strip().splitlines()) > 1)


def read_csv(text: str) -> dict[str, Any]:
    """Rows of --query-gpu; rows of other queries have no readings of a GPU."""
    units = find_header(text)
    if "pid" in units or "gpu_name" in units:
        raise ParseError("nvidia-smi: a query of processes or pages, which has no readings of a GPU")
    rows = [read_row(line, units) for line in text.splitlines() if line.strip()][1:]
    gpus = [read_queried(row, units, place) for place, row in enumerate(rows)]
    driver = next((version for row in rows if (version := row.get("driver_version"))), "")
    return {"driver": driver, "gpus": gpus}


def read_row(line: str, units: Mapping[str, str]) -> dict[str, str]:
    cells = split_line(line)
    if len(cells) != len(units):
        raise ParseError(
            f"nvidia-smi: a CSV row of {len(cells)} cells under a header of {len(units)}: {line.strip()[:60]!r}"
        )
    return dict(zip(units, cells))


def read_queried(row: Mapping[str, str], units: Mapping[str, str], place: int) -> dict[str, Any]:
    def lookup(name: str) -> str:
        return row.get(name, "")

    def number(name: str) -> float | None:
        return to_number(lookup(name), units.get(name, ""))

    gpu = read_gpu(lookup, number, int(lookup("index")) if lookup("index").isdigit() else place)
    if any(LOST.search(cell) for cell in row.values()):
        gpu["readings"] = {"up": 0}
    return gpu


# -- the default table -------------------------------------------------------------

VERSION = re.compile(r"(?:Driver|KMD) Version:\s*([\d.]+)")
FIRST = re.compile(
    r"\|\s*(\d+)\s+(\S.*?)\s+(?:On|Off|WDDM|TCC|MCDM|N/A)\s*\|\s*([0-9A-Fa-f]+:\S+)\s+\S+\s*\|\s*(\S+)\s*\|"
)
SECOND = re.compile(
    r"\|\s*(\S+)\s+(\S+)\s+(P\d+|\S+)\s+(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)\s+\S.*\|"
)
PROCESS = re.compile(
    r"\|\s*(\d+)\s+(?:(\d+|N/A)\s+(?:\d+|N/A)\s+)?(\d+)\s+(?:C|G|C\+G|M\+C)\s+\S.*?\s+(\d+MiB|N/A|-)\s*\|"
)
PLACES = ("fan", "temperature", "performance_state", "power", "power_limit", "memory_used", "memory_total")


def read_table(text: str) -> dict[str, Any]:
    """Whole watts and percentages, a name cut short, the place on the bus for a uuid."""
    version = VERSION.search(text)
    gpus: list[dict[str, Any]] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        first = FIRST.fullmatch(line.strip())
        second = SECOND.fullmatch(lines[number + 1].strip()) if first and number + 1 < len(lines) else None
        if first is None or second is None:
            continue
        words = dict(zip((*PLACES, "utilization"), second.groups()))
        readings = {key: value for key, word in words.items() if (value := to_number(word)) is not None}
        # "On" and "Off" tell of ECC itself, a number of its errors.
        errors = to_number(first[4])
        if errors is not None:
            readings["ecc.uncorrected"] = errors
        third = lines[number + 2].rsplit("|", 2)[-2].strip() if number + 2 < len(lines) else ""
        if third in ("Enabled", "Disabled"):
            readings["mig"] = FLAGS[third.lower()]
        gpus.append({"index": int(first[1]), "uuid": "", "name": first[2], "pci_bus_id": first[3]})
        gpus[-1]["readings"] = readings
    add_table_processes(text, gpus)
    return {"driver": version[1] if version else "", "gpus": gpus}


def add_table_processes(text: str, gpus: list[dict[str, Any]]) -> None:
    start = text.find("| Processes:")
    if start < 0:
        return
    for gpu in gpus:
        found: dict[int, dict[str, Any]] = {}
        for index, instance, pid, memory in PROCESS.findall(text[start:]):
            if int(index) == gpu["index"]:
                add_process(found, pid, memory, to_number(instance))
        gpu["processes"] = [found[pid] for pid in sorted(found)]
