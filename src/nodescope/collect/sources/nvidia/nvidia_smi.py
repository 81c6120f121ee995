"""
What `nvidia-smi -q -x` prints: XML, which every driver of the last ten years offers.

    <gpu id="00000000:07:00.0">
        <utilization><gpu_util>87 %</gpu_util></utilization>

Names of fields changed with the drivers; each reading knows all of its own. "N/A"
in any of its spellings is no value, and so is a unit that is not known here.
Other forms (the long text of -q, CSV, the default table) are never asked for
and are refused by name.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

from nodescope.base.errors import ParseError

ARGUMENTS = ("-q", "-x")

UNITS = {
    **dict.fromkeys(("", "%", "C", "W", "x"), 1.0),
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "KB/s": 1e3,
    "MHz": 1e6,
    "MB/s": 1e6,
    "GB/s": 1e9,
}
FLAGS = {"active": 1, "not active": 0, "yes": 1, "no": 0, "enabled": 1, "disabled": 0}
RECOVERIES = {"none": 0, "reset": 1, "gpu reset": 1, "reboot": 2, "node reboot": 2, "drain p2p": 3}
RECOVERIES |= {"drain and reset": 4}
# Our key, and where it stands through the drivers; the first with a value counts.
READINGS: dict[str, tuple[str, ...]] = {
    "utilization": ("utilization/gpu_util",),
    "memory_busy": ("utilization/memory_util",),
    "encoder": ("utilization/encoder_util",),
    "decoder": ("utilization/decoder_util",),
    "memory_total": ("fb_memory_usage/total",),
    "memory_used": ("fb_memory_usage/used",),
    "memory_free": ("fb_memory_usage/free",),
    "memory_reserved": ("fb_memory_usage/reserved",),
    "temperature": ("temperature/gpu_temp",),
    "temperature_memory": ("temperature/memory_temp",),
    "power": (
        "power_readings/power_draw",
        "gpu_power_readings/power_draw",
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/instant_power_draw",
    ),
    "power_limit": (
        "power_readings/enforced_power_limit",
        "gpu_power_readings/enforced_power_limit",
        "gpu_power_readings/current_power_limit",
        "gpu_power_readings/gpu_ceiling_power_limit/current_power_limit",
        "power_readings/power_limit",
    ),
    "clock.graphics": ("clocks/graphics_clock",),
    "clock.sm": ("clocks/sm_clock",),
    "clock.memory": ("clocks/mem_clock",),
    "clock.video": ("clocks/video_clock",),
    "rows_remapped.corrected": ("remapped_rows/remapped_row_corr",),
    "rows_remapped.uncorrected": ("remapped_rows/remapped_row_unc",),
    "row_remap_pending": ("remapped_rows/remapped_row_pending",),
    "row_remap_failed": ("remapped_rows/remapped_row_failure",),
    "retired_pages_pending": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
    "pcie_replays": ("pci/replay_counter",),
    "pcie_generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie_width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie_transmit_rate": ("pci/tx_util",),
    "pcie_receive_rate": ("pci/rx_util",),
    "fan": ("fan_speed",),
    "performance_state": ("performance_state",),
    "mig": ("mig_mode/current_mig",),
}
# The last part of a throttle reason's name.
THROTTLES = {
    "idle": "gpu_idle",
    "application_clocks": "applications_clocks_setting",
    "software_power_cap": "sw_power_cap",
    "hardware_slowdown": "hw_slowdown",
    "sync_boost": "sync_boost",
    "software_thermal": "sw_thermal_slowdown",
    "hardware_thermal": "hw_thermal_slowdown",
    "power_brake": "hw_power_brake_slowdown",
    "display_clocks": "display_clocks_setting",
}
for _reason, _name in THROTTLES.items():
    READINGS[f"throttled.{_reason}"] = (
        f"clocks_event_reasons/clocks_event_reason_{_name}",
        f"clocks_throttle_reasons/clocks_throttle_reason_{_name}",
    )
# Each way to an ECC count: one field, or several that add up and must all be there.
ECC = {
    "corrected": (
        ("ecc_errors/{}/single_bit/total",),
        ("ecc_errors/{}/sram_correctable", "ecc_errors/{}/dram_correctable"),
    ),
    "uncorrected": (
        ("ecc_errors/{}/double_bit/total",),
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
    "uuid": "uuid",
    "name": "product_name",
    "serial": "serial",
    "vbios_version": "vbios_version",
    "pci_bus_id": "pci/pci_bus_id",
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
    (r"NVSMI LOG=", "the long text of -q; ask with -q -x"),
    (r"^\|\s*NVIDIA-SMI\s", "its table for people; ask with -q -x"),
    (
        r"\A\s*\w+(\.\w+)*( \[[^]]+\])?, (\w+(\.\w+)*( \[[^]]+\])?(, |$))+",
        "CSV, whose fields are the asker's choice; ask with -q -x",
    ),
    (r"^NVIDIA-SMI version|^\s*NVIDIA System Management Interface", "a version or a help text"),
)
LOST = re.compile(r"GPU is lost", re.IGNORECASE)


def parse_nvidia_smi(text: str, errors: str = "") -> dict[str, Any]:
    """The driver and its GPUs; ParseError with the reason where there is no reading."""
    if text.count("NVSMI LOG=") > 1 or text.count("<nvidia_smi_log") > 1:
        raise ParseError("nvidia-smi: several answers in one text, and no telling which is the newest")
    if "<nvidia_smi_log" not in text:
        raise ParseError(f"nvidia-smi: {name_refusal(text, errors)}")
    answer = read_tree(parse_xml(text))
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
    return otherwise or f"neither XML nor a refusal that is known here, but {text.strip()[:60]!r}"


# -- values --------------------------------------------------------------------


def to_number(text: str) -> float | None:
    """In base units; None for every spelling of "not available"."""
    text = text.strip().removeprefix("[").removesuffix("]")
    flag = FLAGS.get(text.lower())
    if flag is not None:
        return flag
    state = re.fullmatch(r"P(\d+)", text)
    if state:
        return float(state[1])
    number = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(%|[A-Za-z/]*)", text)
    scale = UNITS.get(number[2]) if number else None
    return None if number is None or scale is None else float(number[1]) * scale


# -- the tree ------------------------------------------------------------------


def lookup(node: ET.Element, path: str) -> str:
    return node.findtext(path, "").strip()


def read_number(node: ET.Element, path: str) -> float | None:
    return to_number(lookup(node, path))


def read_fact(node: ET.Element, path: str) -> str:
    """A name or a number; empty where the driver has none."""
    text = lookup(node, path)
    return "" if re.match(r"\[?(N/A|Not Supp|Unknown|Req)", text) else text


def parse_xml(text: str) -> ET.Element:
    start = text.find("<?xml")
    try:
        return ET.fromstring(text[max(start, 0) :])  # noqa: S314 - the vendor's tool; expat bounds entities
    except ET.ParseError as error:
        raise ParseError(f"nvidia-smi: the XML breaks off or is broken: {error}") from error


def read_gpu(node: ET.Element, index: int) -> dict[str, Any]:
    """One GPU: facts and readings by whatever names its driver has for them."""
    gpu: dict[str, Any] = {"index": index, **{key: read_fact(node, path) for key, path in FACTS.items()}}
    readings: dict[str, float] = {}
    for key, paths in READINGS.items():
        value = next((found for path in paths if (found := read_number(node, path)) is not None), None)
        if value is not None:
            readings[key] = value
    readings |= read_ecc(node)
    action = RECOVERIES.get(read_fact(node, "gpu_recovery_action").lower())
    if action is not None:
        readings["recovery_action"] = action
    return {**gpu, "readings": readings}


def read_ecc(node: ET.Element) -> dict[str, float]:
    readings = {}
    for prefix, counter in (("ecc", "volatile"), ("ecc_lifetime", "aggregate")):
        for error, ways in ECC.items():
            for way in ways:
                parts = [read_number(node, path.format(counter)) for path in way]
                known = [part for part in parts if part is not None]
                if len(known) == len(parts):
                    readings[f"{prefix}.{error}"] = sum(known)
                    break
    return readings


def read_tree(root: ET.Element) -> dict[str, Any]:
    gpus = []
    for index, node in enumerate(root.iterfind("gpu")):
        gpu = read_gpu(node, index)
        gpu["pci_bus_id"] = gpu["pci_bus_id"] or node.get("id", "")
        if LOST.search((node.text or "") + lookup(node, "product_name")):
            gpu["readings"] = {"up": 0}
        else:
            gpu |= {"parts": list(read_parts(node, gpu["uuid"]))} if gpu["readings"].get("mig") else {}
            processes = read_processes(node)
            gpu |= {"processes": processes} if processes is not None else {}
        gpus.append(gpu)
    # R610 adds to the version, in brackets, that the line will go.
    driver = (read_fact(root, "driver_version") or read_fact(root, "kmd_version")).split(" [")[0]
    return {"driver": driver, "gpus": gpus}


def read_parts(gpu: ET.Element, uuid: str) -> Iterator[dict[str, Any]]:
    """MIG devices; where their uuid is not told, the form that drivers before R470 had stands for it."""
    for part in (*gpu.iterfind("mig_devices/mig_device"), *gpu.iterfind("mig_device")):
        instance, compute = lookup(part, "gpu_instance_id"), lookup(part, "compute_instance_id")
        readings = {}
        for memory in ("total", "used", "free"):
            for section in ("fb_memory_usage", "shared_fb_memory_usage"):
                value = read_number(part, f"{section}/{memory}")
                if value is not None:
                    readings[f"memory_{memory}"] = value
        count = read_number(part, "device_attributes/shared/multiprocessor_count")
        if count is not None:
            readings["multiprocessors"] = count
        yield {
            "uuid": lookup(part, "uuid") or f"MIG-{uuid}/{instance}/{compute}",
            "gpu_instance_id": instance,
            "compute_instance_id": compute,
            "readings": readings,
        }


def read_processes(gpu: ET.Element) -> list[dict[str, Any]] | None:
    """Processes by pid; None where the driver does not tell."""
    holder = gpu.find("processes")
    if holder is None or (holder.text or "").strip() in ("N/A", "Insufficient Permissions"):
        return None
    found: dict[int, dict[str, Any]] = {}
    for process in holder.iterfind("process_info"):
        instance = read_number(process, "gpu_instance_id")
        add_process(found, lookup(process, "pid"), lookup(process, "used_memory"), instance)
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
