"""
The one family of GPU series, whoever made the GPU.

A source answers with plain records (see `Answer` below); this module turns
them into blocks. Values are in base units here already, because the vendors'
own differ (milliwatts, microwatts, watts); percentages stay percentages,
as their names say. A key that is not in a record was not measured: NaN, no line.

    {"driver": "580.126.01",
     "gpus": [{"index": 0, "uuid": "GPU-0b1c...", "name": "NVIDIA H100", "readings": {"utilization": 87},
               "processes": [{"pid": 4242, "memory": 30000000000, "owner": {...}}],
               "parts": [{"uuid": "MIG-...", "readings": {...}, ...}], "xids": {"79": [1, 1700000000.0]},
               "nvlinks": {"0": {"up": 1, "transmit": 5368709120}}}]}
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nodescope.base.block import Block, Info, Table
from nodescope.base.entity import Entity, Labels
from nodescope.base.metric import Kind, Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN

Readings = Mapping[str, float]

# Of these the first that a published name has is its unit.
UNITS = ("bytes", "percent", "celsius", "watts", "joules", "hertz", "seconds")


def row(
    key: str, published: str, sentence: str, kind: Kind = "gauge", plain: str | None = None, **labels: str
) -> Metric:
    """Published names stand below without the gpu_ that all of them begin with."""
    unit = next((unit for unit in UNITS if unit in published.split("_")), "")
    fixed = tuple(labels.items())
    return Metric(f"gpu.{key}", kind, sentence, f"gpu_{published}", unit=unit, labels=fixed, plain=plain)


def throttle(reason: str) -> Metric:
    return row(
        f"throttled.{reason}", "throttled", "1 while clocks are held down for this reason.", reason=reason
    )


def clock(name: str) -> Metric:
    return row(f"clock.{name}", "clock_hertz", "Clock of a part of the GPU.", clock=name)


def ecc(error: str) -> tuple[Metric, Metric]:
    since_load = "Memory errors found by ECC, since the driver was loaded."
    ever = "Memory errors found by ECC, in the board's life."
    return (
        row(f"ecc.{error}", "ecc_errors_total", since_load, "counter", error=error),
        row(f"ecc_lifetime.{error}", "ecc_lifetime_errors_total", ever, "counter", error=error),
    )


def remapped(error: str) -> Metric:
    return row(f"rows_remapped.{error}", "remapped_rows", "Memory rows replaced by spare ones.", error=error)


def moving(direction: str) -> Metric:
    sentence = "Bytes per second over PCIe in the last 20 ms, where the GPU does not count them."
    return row(f"pcie_{direction}_rate", f"pcie_{direction}_bytes_per_second", sentence)


def moved(link: str, direction: str) -> Metric:
    name = "PCIe" if link == "pcie" else "NVLink"
    sentence = f"Bytes over {name} as the GPU counts them, since the driver was loaded."
    return row(f"{link}_{direction}", f"{link}_{direction}_bytes_total", sentence, "counter")


# In the order of NVML's bits; vendor-neutral words.
THROTTLES = (
    "idle",
    "application_clocks",
    "software_power_cap",
    "hardware_slowdown",
    "sync_boost",
    "software_thermal",
    "hardware_thermal",
    "power_brake",
    "display_clocks",
    "board_limit",
    "reliability",
)
ERRORS = ("corrected", "uncorrected")
CLOCKS = ("graphics", "sm", "memory", "video", "soc", "fabric")

METRICS: tuple[Metric, ...] = (
    row("up", "up", "1 when the GPU answers, 0 when it was there and no longer does."),
    row(
        "utilization",
        "utilization_percent",
        "Share of time in which at least one kernel ran on the GPU; not how full it was.",
    ),
    row("memory_used", "memory_used_bytes", "Memory of the GPU in use.", plain="gpu_memory"),
    row("memory_total", "memory_total_bytes", "Memory of the GPU."),
    row("memory_used_percent", "memory_used_percent", "Used share of the GPU's memory."),
    row("memory_free", "memory_free_bytes", "Memory of the GPU that can be had."),
    row("memory_reserved", "memory_reserved_bytes", "Memory that driver and firmware keep."),
    row(
        "memory_busy",
        "memory_busy_percent",
        "Share of time in which the GPU's memory was read or written; not how much is in use.",
    ),
    row("visible_used", "memory_visible_used_bytes", "GPU memory in use that the CPU can address."),
    row("visible_total", "memory_visible_total_bytes", "GPU memory that the CPU can address."),
    row("gtt_used", "memory_gtt_used_bytes", "System memory that the GPU has mapped."),
    row("gtt_total", "memory_gtt_total_bytes", "System memory that the GPU may map."),
    row("temperature", "temperature_celsius", "Temperature of the GPU: edge, else the hottest spot."),
    row("temperature_junction", "junction_temperature_celsius", "Temperature of the hottest spot."),
    row("temperature_memory", "memory_temperature_celsius", "Temperature of the GPU's memory."),
    row("power", "power_draw_watts", "Power that the board draws.", plain="gpu_power"),
    row("power_limit", "power_limit_watts", "Power that the board may draw."),
    row("energy", "energy_joules_total", "Energy used, since the driver was loaded.", "counter"),
    *map(clock, CLOCKS),
    *map(throttle, THROTTLES),
    *(metric for error in ERRORS for metric in ecc(error)),
    *map(remapped, ERRORS),
    row("row_remap_pending", "row_remap_pending", "1 when a row will be replaced at the next reset."),
    row("row_remap_failed", "row_remap_failed", "1 when a row could not be replaced: the board is worn."),
    row("retired_pages_pending", "retired_pages_pending", "1 when pages will be retired at the next reset."),
    row("recovery_action", "recovery_action", "0 none, 1 reset, 2 reboot, 3 drain, 4 drain and reset."),
    moved("pcie", "transmit"),
    moved("pcie", "receive"),
    moving("transmit"),
    moving("receive"),
    row("pcie_replays", "pcie_replays_total", "Packets that PCIe had to send again.", "counter"),
    row("pcie_generation", "pcie_link_generation", "PCIe generation of the link now."),
    row("pcie_width", "pcie_link_width", "Lanes of the PCIe link now."),
    moved("nvlink", "transmit"),
    moved("nvlink", "receive"),
    row("encoder", "encoder_utilization_percent", "Share of time the video encoder was busy."),
    row("decoder", "decoder_utilization_percent", "Share of time the video decoder was busy."),
    row("tensor_active", "tensor_utilization_percent", "Share of time in which tensor cores worked."),
    row("sm_active", "sm_utilization_percent", "Share of the multiprocessors that were busy."),
    row("sm_occupancy", "sm_occupancy_percent", "Warps that were active, of the most that could be."),
    row("dram_active", "dram_utilization_percent", "Used share of the memory's bandwidth."),
    row("graphics_active", "graphics_utilization_percent", "Share of time in which any engine worked."),
    row("fan", "fan_speed_percent", "Intended fan speed; may exceed 100."),
    row("fan_rpm", "fan_rpm", "Revolutions of the fan per minute."),
    row("performance_state", "performance_state", "P-state: 0 is the fastest, 15 the slowest."),
    row("asleep", "asleep", "1 while the GPU is suspended and is not woken for a reading."),
    row("processes", "processes", "Processes that use the GPU."),
    row("mig", "mig_enabled", "1 when the GPU is split by MIG."),
    row("xids", "xid_events_total", "Driver errors (XID) seen by this agent, of any kind.", "counter"),
)
INFO = Info(
    "gpu_info",
    "What the GPU is; always 1.",
    ("name", "pci_bus_id", "driver_version", "serial", "vbios_version", "card"),
)
PART_METRICS = tuple(
    row(f"mig.{key}", f"mig_{name}", sentence)
    for key, name, sentence in (
        ("memory_used", "memory_used_bytes", "Memory of a MIG device in use."),
        ("memory_total", "memory_total_bytes", "Memory of a MIG device."),
        ("memory_free", "memory_free_bytes", "Memory of a MIG device that can be had."),
        ("multiprocessors", "multiprocessors", "Multiprocessors of a MIG device."),
    )
)
PART_INFO = Info("gpu_mig_info", "What a MIG device is; always 1.", ("name", "parent_uuid"))
PROCESS_METRICS = (
    row("process.memory", "process_memory_bytes", "GPU memory of a process."),
    row(
        "process.utilization",
        "process_utilization_percent",
        "Share of the GPU's multiprocessors' time that a process used.",
    ),
    row("process.sdma", "process_sdma_seconds_total", "Time of a process' copies by DMA.", "counter"),
    row("process.cu_occupancy", "process_compute_units", "Compute units that a process occupies."),
)
PROCESS_KEYS = ("memory", "utilization", "sdma", "cu_occupancy")
PROCESS_INFO = Info(
    "gpu_process_info",
    "Whose process uses the GPU; always 1.",
    ("name", "namespace", "pod", "container", "pod_uid", "gpu_instance_id"),
)
XID_METRICS = (
    row("xid.count", "xid_errors_total", "Driver errors (XID) of one kind seen by this agent.", "counter"),
    row("xid.last", "xid_last_timestamp_seconds", "When such an error was last seen."),
)
LINK_ERRORS = ("replay", "recovery", "crc")
LINK_METRICS = (
    row("nvlink.up", "nvlink_up", "1 while the NVLink is active."),
    row(
        "nvlink.speed",
        "nvlink_speed_bytes_per_second",
        "Bytes per second that the NVLink can carry in one direction.",
    ),
    *(
        row(
            f"nvlink.{direction}",
            f"nvlink_link_{direction}_bytes_total",
            "Bytes over one NVLink, without the protocol's own, since the driver was loaded.",
            "counter",
        )
        for direction in ("transmit", "receive")
    ),
    *(
        row(
            f"nvlink.errors.{error}",
            "nvlink_errors_total",
            "Errors of one NVLink: packets sent again, recoveries of the link, checksums that were wrong.",
            "counter",
            error=error,
        )
        for error in LINK_ERRORS
    ),
)
# The names of NVIDIA's own exporter, in its units, for dashboards and
# autoscalers that ask for them: (name, our key, multiply, divide, help).
DCGM = (
    ("SM_CLOCK", "clock.sm", 1, 1e6, "SM clock frequency (in MHz)."),
    ("MEM_CLOCK", "clock.memory", 1, 1e6, "Memory clock frequency (in MHz)."),
    ("MEMORY_TEMP", "temperature_memory", 1, 1, "Memory temperature (in C)."),
    ("GPU_TEMP", "temperature", 1, 1, "GPU temperature (in C)."),
    ("POWER_USAGE", "power", 1, 1, "Power draw (in W)."),
    ("TOTAL_ENERGY_CONSUMPTION", "energy", 1000, 1, "Total energy consumption since boot (in mJ)."),
    ("PCIE_REPLAY_COUNTER", "pcie_replays", 1, 1, "Total number of PCIe retries."),
    ("GPU_UTIL", "utilization", 1, 1, "GPU utilization (in %)."),
    ("MEM_COPY_UTIL", "memory_busy", 1, 1, "Memory utilization (in %)."),
    ("ENC_UTIL", "encoder", 1, 1, "Encoder utilization (in %)."),
    ("DEC_UTIL", "decoder", 1, 1, "Decoder utilization (in %)."),
    ("XID_ERRORS", "xid_newest", 1, 1, "Value of the last XID error encountered."),
    ("FB_FREE", "memory_free", 1, 2**20, "Frame buffer memory free (in MiB)."),
    ("FB_USED", "memory_used", 1, 2**20, "Frame buffer memory used (in MiB)."),
    ("FB_RESERVED", "memory_reserved", 1, 2**20, "Frame buffer memory reserved (in MiB)."),
    ("CORRECTABLE_REMAPPED_ROWS", "rows_remapped.corrected", 1, 1, "Rows remapped for correctable errors."),
    (
        "UNCORRECTABLE_REMAPPED_ROWS",
        "rows_remapped.uncorrected",
        1,
        1,
        "Rows remapped for uncorrectable errors.",
    ),
    ("ROW_REMAP_FAILURE", "row_remap_failed", 1, 1, "Whether remapping of rows has failed."),
    ("PROF_GR_ENGINE_ACTIVE", "graphics_active", 1, 100, "Ratio of time any engine was active."),
    ("PROF_SM_ACTIVE", "sm_active", 1, 100, "Ratio of multiprocessors that were busy."),
    ("PROF_SM_OCCUPANCY", "sm_occupancy", 1, 100, "Ratio of warps that were active."),
    ("PROF_PIPE_TENSOR_ACTIVE", "tensor_active", 1, 100, "Ratio of cycles the tensor pipe was active."),
    ("PROF_DRAM_ACTIVE", "dram_active", 1, 100, "Ratio of cycles the memory interface was active."),
)
DCGM_METRICS = tuple(
    Metric(
        f"gpu.dcgm.{name}",
        "gauge",
        sentence,
        f"DCGM_FI_{name}" if name.startswith("PROF_") else f"DCGM_FI_DEV_{name}",
        untyped=name == "PCIE_REPLAY_COUNTER",
    )
    for name, _, _, _, sentence in DCGM
)


class GpuFamily:
    """The tables of one vendor, and which of them ever had a row."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.gpus = Table(source, source, ("gpu",), METRICS, INFO)
        self.parts = Table(f"{source}.mig", source, ("gpu",), PART_METRICS, PART_INFO)
        self.processes = Table(f"{source}.process", source, ("gpu",), PROCESS_METRICS, PROCESS_INFO)
        self.xids = Table(f"{source}.xid", source, ("gpu",), XID_METRICS)
        self.links = Table(f"{source}.nvlink", source, ("gpu",), LINK_METRICS)
        self.dcgm = Table(f"{source}.dcgm", source, ("gpu",), DCGM_METRICS)
        self._used: set[str] = set()

    def blocks(self, answer: Mapping[str, Any], mono_ns: int, *, dcgm: bool = False) -> tuple[Block, ...]:
        """Every table of an answer; a table that never had a row is left out."""
        gpus = [gpu for gpu in answer["gpus"] if isinstance(gpu, Mapping)]
        driver = clean_text(str(answer.get("driver") or ""))
        made = [
            self._block(self.gpus, [(self._gpu(gpu, driver), gpu_cells(gpu)) for gpu in gpus], mono_ns),
            self._block(self.parts, list(self._parts(gpus)), mono_ns),
            self._block(self.processes, list(self._processes(gpus)), mono_ns),
            self._block(self.xids, list(self._xids(gpus)), mono_ns),
            self._block(self.links, list(self._links(gpus)), mono_ns),
        ]
        if dcgm:
            rows = [(self._dcgm(gpu, driver), dcgm_cells(gpu)) for gpu in gpus]
            made.append(self._block(self.dcgm, rows, mono_ns))
        return tuple(block for block in made if block is not None)

    def _block(self, table: Table, rows: Sequence[tuple[Entity, Readings]], mono_ns: int) -> Block | None:
        if rows:
            self._used.add(table.name)
        elif table.name not in self._used:
            return None
        values = np.full((len(rows), len(table.metrics)), NAN)
        for number, (_, cells) in enumerate(rows):
            for name, value in cells.items():
                if name in table.columns:
                    values[number, table.columns[name]] = value
        return Block(table, tuple(entity for entity, _ in rows), values, mono_ns)

    def _labels(self, gpu: Mapping[str, Any]) -> Labels:
        index, uuid = str(gpu["index"]), clean_text(str(gpu.get("uuid") or ""))
        return (("gpu_index", index), ("uuid", uuid), ("vendor", self.source))

    def _ids(self, gpu: Mapping[str, Any]) -> tuple[str, ...]:
        """The uuid; a GPU that never gave one is known by its place."""
        return (clean_text(str(gpu.get("uuid") or f"{self.source}-{gpu['index']}")),)

    def _gpu(self, gpu: Mapping[str, Any], driver: str) -> Entity:
        words = {"driver_version": driver, **gpu}
        details = tuple((label, clean_text(str(words.get(label) or ""))) for label in INFO.labels)
        return Entity("gpu", self._ids(gpu), self._labels(gpu), details)

    def _parts(self, gpus: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Entity, Readings]]:
        for gpu in gpus:
            for part in gpu.get("parts", ()):
                labels = (
                    *self._labels({"index": gpu["index"], "uuid": part["uuid"]}),
                    ("gpu_instance_id", str(part.get("gpu_instance_id", ""))),
                    ("compute_instance_id", str(part.get("compute_instance_id", ""))),
                )
                details = (
                    ("name", clean_text(str(part.get("name") or ""))),
                    ("parent_uuid", self._ids(gpu)[0]),
                )
                entity = Entity("gpu", (*self._ids(gpu), clean_text(str(part["uuid"]))), labels, details)
                yield entity, {f"gpu.mig.{key}": value for key, value in part["readings"].items()}

    def _processes(self, gpus: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Entity, Readings]]:
        for gpu in gpus:
            for process in gpu.get("processes") or ():
                pid = str(process["pid"])
                owner = process.get("owner") or {}
                words = {"gpu_instance_id": process.get("gpu_instance_id", ""), **owner}
                details = tuple(
                    (label, clean_text(str(words.get(label, "")))) for label in PROCESS_INFO.labels
                )
                ids = (*self._ids(gpu), "process", pid, str(owner.get("start", "")))
                entity = Entity("gpu", ids, (*self._labels(gpu), ("pid", pid)), details)
                known = [key for key in PROCESS_KEYS if process.get(key) is not None]
                yield entity, {f"gpu.process.{key}": process[key] for key in known}

    def _xids(self, gpus: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Entity, Readings]]:
        for gpu in gpus:
            for xid, (count, last_seconds) in sorted(gpu.get("xids", {}).items()):
                entity = Entity("gpu", (*self._ids(gpu), "xid", xid), (*self._labels(gpu), ("xid", xid)))
                yield entity, {"gpu.xid.count": count, "gpu.xid.last": last_seconds}

    def _links(self, gpus: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Entity, Readings]]:
        for gpu in gpus:
            for place, readings in gpu.get("nvlinks", {}).items():
                labels = (*self._labels(gpu), ("link", str(place)))
                entity = Entity("gpu", (*self._ids(gpu), "nvlink", str(place)), labels)
                yield entity, {f"gpu.nvlink.{key}": value for key, value in readings.items()}

    def _dcgm(self, gpu: Mapping[str, Any], driver: str) -> Entity:
        facts = {key: clean_text(str(gpu.get(key) or "")) for key in ("uuid", "pci_bus_id", "card", "name")}
        labels = (
            ("gpu", str(gpu["index"])),
            ("UUID", facts["uuid"]),
            ("pci_bus_id", facts["pci_bus_id"]),
            ("device", f"nvidia{gpu['index']}" if self.source == "nvidia" else facts["card"]),
            ("modelName", facts["name"]),
            ("DCGM_FI_DRIVER_VERSION", driver),
        )
        return Entity("gpu", (*self._ids(gpu), "dcgm"), labels)


def gpu_cells(gpu: Mapping[str, Any]) -> Readings:
    """A GPU's columns by archive name; the used share follows from used and total."""
    readings = dict(gpu.get("readings", {}))
    used, total = readings.get("memory_used"), readings.get("memory_total")
    if used is not None and total:
        readings["memory_used_percent"] = 100 * used / total
    if gpu.get("processes") is not None:
        readings["processes"] = len(gpu["processes"])
    return {f"gpu.{key}": value for key, value in readings.items()}


def dcgm_cells(gpu: Mapping[str, Any]) -> Readings:
    """In DCGM's units; its XID is the newest kind, 0 while none was seen by who listens for them."""
    readings = dict(gpu.get("readings", {}))
    if "xids" in readings:
        seen = [(last, int(xid)) for xid, (_, last) in gpu.get("xids", {}).items()]
        readings["xid_newest"] = max(seen, default=(0.0, 0))[1]
    return {
        f"gpu.dcgm.{name}": readings[key] * times / per
        for name, key, times, per, _ in DCGM
        if key in readings
    }
