"""
NVIDIA GPUs, through the driver's own library.

Reads   libnvidia-ml.so.1 (NVML) by nvidia-ml-py, else nvidia-smi; /proc/PID/{stat,cgroup} of processes on a GPU
Needs   the NVIDIA driver; in a container NVIDIA_VISIBLE_DEVICES=all and the capability "utility";
        the host's pid namespace for the names of processes; nothing else, no privileges
Docs    https://docs.nvidia.com/deploy/nvml-api/

One answer, as JSON would save it:

    {"driver": "580.126.01", "gpus": [{"index": 0, "uuid": "GPU-0b1c", "name": "NVIDIA H100 80GB HBM3",
     "readings": {"up": 1, "utilization": 87, "memory_used": 45359329280, "power": 411.23}, "processes": []}]}

A GPU that was there and no longer answers stays, with gpu_up 0 and nothing
else; the others go on. A call that hangs is left to the caller's deadline.
"""

import ctypes
import importlib
from typing import Any

from nodescope.base.block import Block
from nodescope.base.clock import Clock, SystemClock
from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.log import Log
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.gpu.metrics import GpuFamily
from nodescope.collect.sources.gpu.owner import read_owner
from nodescope.collect.sources.gpu.vendor_tool import find_tool, run_tool
from nodescope.collect.sources.nvidia.nvidia_smi import ARGUMENTS, parse_nvidia_smi
from nodescope.collect.sources.nvidia.nvml import (
    DRIVER_NOT_LOADED,
    LIBRARY_NOT_FOUND,
    MISMATCH,
    UNINITIALIZED,
    Asker,
    GpuLost,
    decode,
)
from nodescope.collect.sources.nvidia.xid_events import XidWatch

log = Log("nvidia")

LIBRARY = "libnvidia-ml.so.1"
NO_LIBRARY = (
    "no libnvidia-ml.so.1: no NVIDIA driver here, or it is not mounted into this container "
    "(runtimeClassName: nvidia with NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility)"
)
NO_BINDING = "the NVIDIA driver is here but nvidia-ml-py is not: pip install nvidia-ml-py"
NOT_LOADED = "the NVIDIA kernel module is not loaded: no NVIDIA GPU, or modprobe nvidia"
MISMATCHED = (
    "driver and library are of different versions: the driver was updated under us; "
    "restart the agent (and, where that does not help, the node)"
)
NO_GPU = (
    "the NVIDIA driver answers but shows no GPU: device files are not mounted (NVIDIA_VISIBLE_DEVICES=all), "
    "or every GPU has left the bus"
)
# NVML answers in some milliseconds per GPU; a driver in trouble blocks.
CALL_SECONDS = 5.0
# nvidia-smi is a process that opens every GPU: seconds with eight of them, given up after 20.
TOOL_SECONDS = 30.0
# Facts of a GPU that is gone.
KEPT = ("index", "name", "pci_bus_id", "serial", "vbios_version")


class LibraryMissing(SourceAbsent):
    """NVML cannot be had in this process; nvidia-smi may still be there."""


class NvidiaSource(CallDefaults):
    """Asks every GPU, each on its own account."""

    name = "nvidia"
    deadline_seconds = CALL_SECONDS

    def __init__(self, context: Context, library: str = LIBRARY, clock: Clock | None = None) -> None:
        self.note = ""
        self._context = context
        self._library = library
        self._clock = clock or SystemClock()
        self._asker: Asker | None = None
        self._watch: XidWatch | None = None
        self._family = GpuFamily(self.name)
        self._known: dict[str, dict[str, Any]] = {}
        self._since_us: dict[str, int] = {}
        # Outlives NVML's restarts, so that the counters do.
        self._xids: dict[str, dict[str, tuple[int, float]]] = {}
        self._driver = ""
        self._tool = ""
        """The path of nvidia-smi, while there is no NVML."""
        self._pace(1.0)
        if context.root.is_fixture:
            if not context.root.exists(f"calls/{self.name}.json"):
                raise SourceAbsent(NO_LIBRARY)
            return
        self._start()

    def _pace(self, seconds: float) -> None:
        self.pace_seconds = self._context.settings.gpu_interval_seconds or seconds

    def _start(self) -> None:
        """NVML, or nvidia-smi where there is one and no NVML; SourceAbsent where neither is."""
        self._tool = ""
        try:
            self._load()
        except LibraryMissing:
            if self._context.settings.nvidia_smi != "never":
                self._tool = find_tool("nvidia-smi") or ""
            if not self._tool:
                raise
            self._pace(TOOL_SECONDS)
            self.deadline_seconds = TOOL_SECONDS
        else:
            self._pace(1.0)
            self.deadline_seconds = min(self.deadline_seconds, CALL_SECONDS)

    def _load(self) -> None:
        """Load and initialise; SourceAbsent where there is no driver at all."""
        try:
            ctypes.CDLL(self._library)
        except OSError:
            raise LibraryMissing(NO_LIBRARY) from None
        try:
            # Only where there is a driver: it takes 90 ms and 6 MiB.
            binding: Any = importlib.import_module("pynvml")
        except ImportError:
            raise LibraryMissing(NO_BINDING) from None
        try:
            binding.nvmlInit()
            self._driver = decode(binding.nvmlSystemGetDriverVersion())
        except binding.NVMLError as error:
            raise explain(error) from error
        self._asker = Asker(binding)
        self.note = f"driver {self._driver}"

    def read(self) -> Any:
        return self._context.root.call(self.name, self._ask_all)

    def _ask_all(self) -> dict[str, Any]:
        if self._asker is None:
            # With nvidia-smi, too: the library may have come meanwhile.
            self._start()
        asker = self._asker
        if asker is None:
            return self._ask_tool()
        asker.round_number += 1
        try:
            gpus = self._ask_gpus(asker)
        except asker.binding.NVMLError as error:
            # NVML as a whole: begin anew with the next reading.
            self._shut_down()
            raise explain(error) from error
        if not gpus:
            raise SourceFailed(NO_GPU)
        self._note(gpus)
        return {"driver": self._driver, "gpus": gpus}

    def _ask_tool(self) -> dict[str, Any]:
        """What nvidia-smi says; a GPU that it no longer lists is lost."""
        try:
            answer = parse_nvidia_smi(*run_tool([self._tool, *ARGUMENTS]))
        except ParseError as error:
            situation = SourceAbsent if "not loaded" in str(error) else SourceFailed
            raise situation(str(error)) from error
        for gpu in answer["gpus"]:
            gpu["uuid"] = gpu["uuid"] or f"pci-{gpu['pci_bus_id']}"
            gpu["readings"] = {"up": 1, **gpu["readings"]}
            self._known[gpu["uuid"]] = {key: gpu[key] for key in KEPT}
            if "processes" in gpu:
                gpu["processes"] = self._with_owners(gpu["processes"])
        self._driver = answer["driver"]
        self._add_missing(answer["gpus"])
        self._note(answer["gpus"])
        return dict(answer)

    def _ask_gpus(self, asker: Asker) -> list[dict[str, Any]]:
        count = asker.binding.nvmlDeviceGetCount()
        handles: dict[str, Any] = {}
        gpus = [self._ask_gpu(asker, index, handles) for index in range(count)]
        if self._watch is None:
            self._watch = XidWatch(asker.binding, self._clock, self._xids)
            self._watch.start(handles)
        self._add_missing(gpus)
        for uuid, kinds in self._watch.snapshot().items():
            for gpu in gpus:
                if gpu["uuid"] == uuid:
                    gpu["xids"] = {xid: list(seen) for xid, seen in kinds.items()}
                    gpu["readings"]["xids"] = sum(number for number, _ in kinds.values())
        return sorted(gpus, key=lambda gpu: (gpu["index"], gpu["uuid"]))

    def _ask_gpu(self, asker: Asker, index: int, handles: dict[str, Any]) -> dict[str, Any]:
        """Everything one GPU says; one that does not answer is up 0 and has its last known name."""
        binding = asker.binding
        uuid = ""
        try:
            handle = binding.nvmlDeviceGetHandleByIndex(index)
            uuid = decode(binding.nvmlDeviceGetUUID(handle))
            handles[uuid] = handle
            if uuid not in self._known:
                self._known[uuid] = asker.identify(uuid, handle)
            self._known[uuid]["index"] = index
            return self._describe(asker, uuid, handle)
        except GpuLost as error:
            return self._lost(index, uuid, str(error))
        except binding.NVMLError as error:
            if error.value in (UNINITIALIZED, MISMATCH):
                raise
            return self._lost(index, uuid, str(error))

    def _describe(self, asker: Asker, uuid: str, handle: Any) -> dict[str, Any]:
        readings = asker.read(uuid, handle)
        gpu: dict[str, Any] = {"uuid": uuid, **self._known[uuid], "readings": {"up": 1, **readings}}
        if readings.get("mig"):
            gpu["parts"] = asker.read_parts(uuid, handle)
        links = asker.read_links(uuid, handle)
        if links:
            gpu["nvlinks"] = {str(link): values for link, values in links.items()}
        processes, self._since_us[uuid] = asker.read_processes(uuid, handle, self._since_us.get(uuid, 0))
        if processes is not None:
            gpu["processes"] = self._with_owners(processes)
        return gpu

    def _with_owners(self, processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        limit = self._context.limit("process")
        return [
            {**process, "owner": read_owner(self._context, process["pid"])} for process in processes[:limit]
        ]

    def _lost(self, index: int, uuid: str, error: str) -> dict[str, Any]:
        if not uuid:
            uuid = next((name for name, facts in self._known.items() if facts["index"] == index), "")
        facts = self._known.get(uuid, {})
        return {"uuid": uuid, **facts, "index": index, "readings": {"up": 0}, "error": error}

    def _add_missing(self, gpus: list[dict[str, Any]]) -> None:
        """A GPU that left the driver's list altogether is lost, too."""
        seen = {gpu["uuid"] for gpu in gpus}
        for uuid, facts in self._known.items():
            if uuid not in seen:
                gpus.append(self._lost(facts["index"], uuid, "no longer listed by the driver"))

    def _note(self, gpus: list[dict[str, Any]]) -> None:
        lost = [f"GPU {gpu['index']}: {gpu['error']}" for gpu in gpus if "error" in gpu]
        how = ["by nvidia-smi: no NVML in this process"] if self._tool else []
        note = "; ".join([f"driver {self._driver}", *how, *lost])
        if note != self.note and lost:
            log.warning("gpu lost", note=note)
        self.note = note

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        return self._family.blocks(answer, mono_ns, dcgm=self._context.settings.dcgm_names)

    def _shut_down(self) -> None:
        watch, asker = self._watch, self._asker
        self._watch = self._asker = None
        # A thread that still waits in NVML must not have it taken away.
        if (watch is None or watch.stop()) and asker is not None:
            try:
                asker.forget_samples()
                asker.binding.nvmlShutdown()
            except asker.binding.NVMLError:
                pass

    def close(self) -> None:
        self._shut_down()


def explain(error: Any) -> Exception:
    """NVML's refusal as a whole: no driver is normal, a broken one is not."""
    if error.value == LIBRARY_NOT_FOUND:
        return SourceAbsent(NO_LIBRARY)
    if error.value == DRIVER_NOT_LOADED:
        return SourceAbsent(NOT_LOADED)
    if error.value == MISMATCH:
        return SourceFailed(MISMATCHED)
    return SourceFailed(f"NVML: {error}")
