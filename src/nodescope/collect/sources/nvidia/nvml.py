"""
What NVML says about one GPU: every reading optional, in the family's units.

A driver may lack a function (older than the binding), a GPU may lack a
sensor, an instance may hide it: then there is no value, and the question is
put again only now and then. An error that means the whole GPU is gone is
raised as `GpuLost` and costs the neighbours nothing.

nvidia-ml-py is handed in as `binding`; errors are told apart by their number,
because instances of NVMLError cannot be hashed or compared safely.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nodescope.collect.sources.gpu.metrics import THROTTLES

Values = dict[str, float]

# nvmlReturn_t, from nvml.h.
SUCCESS = 0
UNINITIALIZED = 1
NOT_SUPPORTED = 3
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
# IRQ issue, lost, reset required, GPU not found: the GPU as a whole is gone.
LOST = frozenset({11, 15, 16, 28})
# No such sensor, no such function: not an error, and not worth asking each second.
UNSUPPORTED = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH})
# An unsupported reading is tried again after this many: switching MIG on or
# off changes what a GPU offers.
AGAIN_READINGS = 60

FIELD_NVLINK_TRANSMIT = 138
FIELD_NVLINK_RECEIVE = 139
ALL_LINKS = 0xFFFFFFFF
# (field, scope, our key, times); NVLink counts KiB.
FIELDS = (
    (82, 0, "temperature_memory", 1),
    (FIELD_NVLINK_TRANSMIT, ALL_LINKS, "nvlink_transmit", 1024),
    (FIELD_NVLINK_RECEIVE, ALL_LINKS, "nvlink_receive", 1024),
    (197, 0, "pcie_transmit", 1),
    (198, 0, "pcie_receive", 1),
    (230, 0, "recovery_action", 1),
)
# Of one link: (field, our key, times). Those of state, speed and errors came with
# Hopper; what an older GPU has is asked for link by link.
FIELD_LINK_COUNT = 91
LINK_FIELDS = (
    (FIELD_NVLINK_TRANSMIT, "transmit", 1024),
    (FIELD_NVLINK_RECEIVE, "receive", 1024),
    (165, "up", 1),
    (164, "speed", 1_000_000),
    (161, "errors.replay", 1),
    (162, "errors.recovery", 1),
    (163, "errors.crc", 1),
)
# nvmlNvLinkErrorCounter_t.
LINK_COUNTERS = {"errors.replay": 0, "errors.recovery": 1, "errors.crc": 2}
# nvml.h has room for 18, newer ones for 36; a driver that says more is not believed.
MAX_LINKS = 36
# nvmlValueType_t -> the member of the union that holds the value.
VALUE_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}
CLOCK_TYPES = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
ECC_ERRORS = {"corrected": 0, "uncorrected": 1}
ECC_COUNTERS = {"ecc": 0, "ecc_lifetime": 1}
# P32 is "unknown" in nvml.h.
UNKNOWN_STATE = 32


class GpuLost(Exception):
    """This GPU answers no more; the others may."""


def ask_utilization(binding: Any, handle: Any) -> Values:
    rates = binding.nvmlDeviceGetUtilizationRates(handle)
    return {"utilization": rates.gpu, "memory_busy": rates.memory}


def ask_memory(binding: Any, handle: Any) -> Values:
    """Version 2 keeps what the driver reserves apart; version 1 counts it as used since R510."""
    try:
        memory = binding.nvmlDeviceGetMemoryInfo(handle, version=binding.nvmlMemory_v2)
        values = {"memory_reserved": memory.reserved}
    except binding.NVMLError as error:
        if error.value not in UNSUPPORTED:
            raise
        memory = binding.nvmlDeviceGetMemoryInfo(handle)
        values = {}
    return values | {"memory_used": memory.used, "memory_total": memory.total, "memory_free": memory.free}


def ask_throttles(binding: Any, handle: Any) -> Values:
    """One bit per reason; the call was renamed in R535."""
    try:
        mask = binding.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except binding.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        mask = binding.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {f"throttled.{reason}": mask >> bit & 1 for bit, reason in enumerate(THROTTLES)}


def ask_rows(binding: Any, handle: Any) -> Values:
    corrected, uncorrected, pending, failed = binding.nvmlDeviceGetRemappedRows(handle)
    return {
        "rows_remapped.corrected": corrected,
        "rows_remapped.uncorrected": uncorrected,
        "row_remap_pending": pending,
        "row_remap_failed": failed,
    }


def ask_fields(binding: Any, handle: Any) -> Values:
    """Several at once, each with a return code of its own."""
    answers = binding.nvmlDeviceGetFieldValues(handle, [(number, scope) for number, scope, _, _ in FIELDS])
    values = {}
    for answer, (_, _, key, times) in zip(answers, FIELDS):
        value = take_value(answer)
        if value is not None:
            values[key] = value * times
    return values


def take_value(answer: Any) -> float | None:
    """The number of one field; None where it has none."""
    member = VALUE_MEMBERS.get(answer.valueType)
    return getattr(answer.value, member) if answer.nvmlReturn == SUCCESS and member else None


def ask_links(binding: Any, handle: Any) -> dict[int, Values]:
    """Every NVLink by its number: one call for how many, one for all that they say."""
    count = take_value(binding.nvmlDeviceGetFieldValues(handle, [(FIELD_LINK_COUNT, 0)])[0])
    places = [(link, field) for link in range(min(int(count or 0), MAX_LINKS)) for field in LINK_FIELDS]
    links: dict[int, Values] = {link: {} for link, _ in places}
    if places:
        fields = [(number, link) for link, (number, _, _) in places]
        for answer, (link, (_, key, times)) in zip(binding.nvmlDeviceGetFieldValues(handle, fields), places):
            value = take_value(answer)
            if value is not None:
                links[link][key] = value * times
    return links


def ask_state(binding: Any, handle: Any) -> Values:
    state = binding.nvmlDeviceGetPerformanceState(handle)
    return {} if state == UNKNOWN_STATE else {"performance_state": state}


Question = tuple[str, Callable[[Any, Any], Values]]


def plain(function: str, key: str, *more: int, times: int = 1, per: int = 1) -> Question:
    """A call with one number for an answer; of a list, such as [percent, sampling period], the first."""

    def ask(binding: Any, handle: Any) -> Values:
        answer = getattr(binding, function)(handle, *more)
        number = answer[0] if isinstance(answer, (list, tuple)) else answer
        return {key: number * times / per}

    return key, ask


READINGS: tuple[Question, ...] = (
    ("utilization", ask_utilization),
    ("memory", ask_memory),
    plain("nvmlDeviceGetTemperature", "temperature", 0),
    plain("nvmlDeviceGetPowerUsage", "power", per=1000),
    plain("nvmlDeviceGetEnforcedPowerLimit", "power_limit", per=1000),
    plain("nvmlDeviceGetTotalEnergyConsumption", "energy", per=1000),
    *(
        plain("nvmlDeviceGetClockInfo", f"clock.{name}", number, times=1_000_000)
        for name, number in CLOCK_TYPES.items()
    ),
    ("throttled", ask_throttles),
    *(
        plain("nvmlDeviceGetTotalEccErrors", f"{key}.{error}", ECC_ERRORS[error], counter)
        for key, counter in ECC_COUNTERS.items()
        for error in ECC_ERRORS
    ),
    ("rows", ask_rows),
    plain("nvmlDeviceGetRetiredPagesPendingStatus", "retired_pages_pending"),
    plain("nvmlDeviceGetPcieReplayCounter", "pcie_replays"),
    plain("nvmlDeviceGetCurrPcieLinkGeneration", "pcie_generation"),
    plain("nvmlDeviceGetCurrPcieLinkWidth", "pcie_width"),
    plain("nvmlDeviceGetEncoderUtilization", "encoder"),
    plain("nvmlDeviceGetDecoderUtilization", "decoder"),
    plain("nvmlDeviceGetFanSpeed", "fan"),
    ("performance_state", ask_state),
    plain("nvmlDeviceGetMigMode", "mig"),
    ("fields", ask_fields),
)
# KB/s over 20 ms, for which the call waits: asked only where bytes are not counted.
PCIE_RATES = (
    plain("nvmlDeviceGetPcieThroughput", "pcie_transmit_rate", 0, times=1000),
    plain("nvmlDeviceGetPcieThroughput", "pcie_receive_rate", 1, times=1000),
)
# nvmlGpmMetricId_t -> our key; Hopper and later, in percent.
GPM_METRICS = {
    1: "graphics_active",
    2: "sm_active",
    3: "sm_occupancy",
    5: "tensor_active",
    10: "dram_active",
}
IDENTITY = {
    "name": "nvmlDeviceGetName",
    "serial": "nvmlDeviceGetSerial",
    "vbios_version": "nvmlDeviceGetVbiosVersion",
}


@dataclass(slots=True)
class Asker:
    """Puts questions to one NVML; remembers which GPU has no answer to which."""

    binding: Any
    round_number: int = 0
    _unsupported: dict[tuple[str, str], int] = field(default_factory=dict)
    _samples: dict[str, Any] = field(default_factory=dict)
    """Of each GPU the last sample of its counters (GPM): two make a share of time."""

    def ask(self, uuid: str, key: str, question: Callable[..., Any], *subject: Any) -> Any:
        """The answer, or None where there is none; GpuLost when the whole GPU is gone."""
        known = self._unsupported.get((uuid, key))
        if known is not None and self.round_number - known < AGAIN_READINGS:
            return None
        try:
            answer = question(*subject)
        except self.binding.NVMLError as error:
            if error.value in LOST:
                raise GpuLost(str(error)) from error
            if error.value in UNSUPPORTED:
                self._unsupported[uuid, key] = self.round_number
            elif error.value in (UNINITIALIZED, MISMATCH):
                raise
            return None
        self._unsupported.pop((uuid, key), None)
        return answer

    def read(self, uuid: str, handle: Any) -> Values:
        """All readings of a GPU that it has."""
        values: Values = {}
        for key, question in READINGS:
            values |= self.ask(uuid, key, question, self.binding, handle) or {}
        if "pcie_transmit" not in values:
            for key, question in PCIE_RATES:
                values |= self.ask(uuid, key, question, self.binding, handle) or {}
        return values | (self.ask(uuid, "gpm", self._ask_counters, uuid, handle) or {})

    def _ask_counters(self, uuid: str, handle: Any) -> Values:
        """Shares of the time since the last reading; the first has none to compare with."""
        binding = self.binding
        if not binding.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
            raise binding.NVMLError(NOT_SUPPORTED)
        sample, before = binding.nvmlGpmSampleAlloc(), self._samples.pop(uuid, None)
        self._samples[uuid] = sample
        try:
            binding.nvmlGpmSampleGet(handle, sample)
            return compare_samples(binding, before, sample) if before is not None else {}
        except binding.NVMLError:
            # A sample that was not taken is nothing to compare with.
            binding.nvmlGpmSampleFree(self._samples.pop(uuid))
            raise
        finally:
            if before is not None:
                binding.nvmlGpmSampleFree(before)

    def forget_samples(self) -> None:
        """Before NVML ends: what it gave is given back."""
        while self._samples:
            self.binding.nvmlGpmSampleFree(self._samples.popitem()[1])

    def identify(self, uuid: str, handle: Any) -> dict[str, str]:
        """Name, serial, VBIOS and place on the bus: what does not change."""
        facts = {
            key: decode(self.ask(uuid, key, getattr(self.binding, function), handle) or "")
            for key, function in IDENTITY.items()
        }
        pci = self.ask(uuid, "pci", self.binding.nvmlDeviceGetPciInfo, handle)
        return facts | {"pci_bus_id": decode(pci.busId) if pci is not None else ""}

    def read_parts(self, uuid: str, handle: Any) -> list[dict[str, Any]]:
        """The MIG devices of a GPU; a place that is empty is skipped."""
        count = self.ask(uuid, "parts", self.binding.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
        parts = []
        for place in range(count):
            try:
                part = self.binding.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
                parts.append(self._read_part(part))
            except self.binding.NVMLError as error:
                if error.value in LOST:
                    raise GpuLost(str(error)) from error
        return parts

    def _read_part(self, part: Any) -> dict[str, Any]:
        binding = self.binding
        uuid = decode(binding.nvmlDeviceGetUUID(part))
        record: dict[str, Any] = {"uuid": uuid, "readings": {}}
        for key, function in (
            ("gpu_instance_id", "nvmlDeviceGetGpuInstanceId"),
            ("compute_instance_id", "nvmlDeviceGetComputeInstanceId"),
            ("name", "nvmlDeviceGetName"),
        ):
            answer = self.ask(uuid, key, getattr(binding, function), part)
            if answer is not None:
                record[key] = answer
        record["readings"] |= self.ask(uuid, "memory", ask_memory, binding, part) or {}
        attributes = self.ask(uuid, "attributes", binding.nvmlDeviceGetAttributes, part)
        if attributes is not None:
            record["readings"]["multiprocessors"] = attributes.multiprocessorCount
        return record

    def read_links(self, uuid: str, handle: Any) -> dict[int, Values]:
        """NVLinks with what each of them has; none on a GPU without."""
        links: dict[int, Values] = self.ask(uuid, "nvlinks", ask_links, self.binding, handle) or {}
        for link, values in links.items():
            if "up" not in values:
                state = self.ask(uuid, f"nvlink{link}", self.binding.nvmlDeviceGetNvLinkState, handle, link)
                if state is not None:
                    values["up"] = state
            for key, counter in LINK_COUNTERS.items():
                if key not in values and values.get("up"):
                    ask = self.binding.nvmlDeviceGetNvLinkErrorCounter
                    count = self.ask(uuid, f"nvlink{link}.{key}", ask, handle, link, counter)
                    if count is not None:
                        values[key] = count
        return {link: values for link, values in links.items() if values}

    def read_processes(
        self, uuid: str, handle: Any, since_us: int
    ) -> tuple[list[dict[str, Any]] | None, int]:
        """Processes with their memory and share of the GPU, and the newest sample's time."""
        compute = self._list(uuid, handle, "Compute")
        graphics = self._list(uuid, handle, "Graphics")
        if compute is None and graphics is None:
            return None, since_us
        found: dict[int, dict[str, Any]] = {}
        for entry in compute or ():
            add_process(found, entry)
        for entry in graphics or ():
            # A process that computes and draws is in both lists with the same memory.
            if entry.pid not in found:
                add_process(found, entry)
        shares, newest_us = self._shares(uuid, handle, since_us)
        if shares is not None:
            for pid, record in found.items():
                # The driver lists only those that used the GPU since it was last asked.
                record["utilization"] = shares.get(pid, 0)
        return [found[pid] for pid in sorted(found)], newest_us

    def _list(self, uuid: str, handle: Any, kind: str) -> list[Any] | None:
        """Version 3 came with R510, version 2 with R450; both have the same layout."""
        for version in ("v3", "v2"):
            function = getattr(self.binding, f"nvmlDeviceGet{kind}RunningProcesses_{version}")
            answer: list[Any] | None = self.ask(uuid, f"processes.{kind}.{version}", function, handle)
            if answer is not None:
                return answer
        return None

    def _shares(self, uuid: str, handle: Any, since_us: int) -> tuple[dict[int, float] | None, int]:
        def question() -> list[Any]:
            try:
                samples: list[Any] = self.binding.nvmlDeviceGetProcessUtilization(handle, since_us)
            except self.binding.NVMLError as error:
                # Nobody used it: "not found", or success with nothing, which the binding raises.
                if error.value in (NOT_FOUND, SUCCESS):
                    return []
                raise
            return samples

        samples = self.ask(uuid, "process_utilization", question)
        if samples is None:
            return None, since_us
        newest: dict[int, Any] = {}
        for sample in samples:
            if sample.pid not in newest or sample.timeStamp >= newest[sample.pid].timeStamp:
                newest[sample.pid] = sample
        times = [since_us, *(sample.timeStamp for sample in newest.values())]
        return {pid: sample.smUtil for pid, sample in newest.items()}, max(times)


def compare_samples(binding: Any, before: Any, sample: Any) -> Values:
    """Each metric has a return code of its own."""
    asked = binding.c_nvmlGpmMetricsGet_t()
    asked.version = binding.NVML_GPM_METRICS_GET_VERSION
    asked.numMetrics = len(GPM_METRICS)
    asked.sample1, asked.sample2 = before, sample
    for place, number in enumerate(GPM_METRICS):
        asked.metrics[place].metricId = number
    answer = binding.nvmlGpmMetricsGet(asked)
    return {
        key: answer.metrics[place].value
        for place, key in enumerate(GPM_METRICS.values())
        if answer.metrics[place].nvmlReturn == SUCCESS
    }


def add_process(found: dict[int, dict[str, Any]], entry: Any) -> None:
    """One process; in several MIG instances its memory adds up, unknown stays unknown."""
    record = found.setdefault(entry.pid, {"pid": entry.pid})
    if entry.usedGpuMemory is not None:
        record["memory"] = record.get("memory", 0) + entry.usedGpuMemory
    if entry.gpuInstanceId != 0xFFFFFFFF:
        record["gpu_instance_id"] = entry.gpuInstanceId


def decode(text: Any) -> str:
    """Old bindings give bytes."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
