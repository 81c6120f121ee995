"""The fixture node `gpus`: two GPUs of NVIDIA (one split by MIG, one lost at the second instant), one of AMD."""

import json
from dataclasses import replace

from tests.fakes.amd_tree import MI100
from tests.nodes.node import Node
from tests.nodes.plain_nodes import make_bare

GIB = 2**30
CARD = "sys/class/drm/card0/device"
KFD = "sys/class/kfd/kfd"
FIRST = "GPU-00000000-1111-2222-3333-444444444444"
SECOND = "GPU-00000001-1111-2222-3333-444444444444"
# Files that a fixture keeps of a card: those that the source reads.
KEPT = (
    "vendor",
    "gpu_busy",
    "mem_busy",
    "mem_info",
    "vbios",
    "pcie_replay",
    "current_link",
    "pp_dpm",
    "power",
    "hwmon",
)


def make_gpus() -> Node:
    """No container, but GPUs of both vendors, whole, split, lost and given away."""
    return replace(make_bare(), name="gpus", alter=lambda instant, files: files.update(gpu_files(instant)))


def gpu_files(instant: int) -> dict[str, str]:
    return {
        "calls/nvidia.json": json.dumps(nvidia_answer(instant), indent=1) + "\n",
        "calls/pod_resources.json": json.dumps(assignments(), indent=1) + "\n",
        **card_files(instant),
        **intel_files(instant),
        **client_files(instant),
    }


def nvidia_answer(instant: int) -> dict[str, object]:
    """As NvidiaSource.read saves it."""
    second = board(SECOND, 1, "00000000:08:00.0")
    if instant:
        second |= {"readings": {"up": 0}, "error": "GPU is lost", "xids": {"79": [1, 1700000001.25]}}
    else:
        second |= {"readings": {**readings(instant), "utilization": 93, "xids": 0}, "processes": [process()]}
    first = board(FIRST, 0, "00000000:07:00.0")
    first |= {
        "readings": {**readings(instant), "mig": 1, "xids": 0},
        "parts": [part(0), part(1)],
        "processes": [process()],
    }
    return {"driver": "590.48.01", "gpus": [first, second]}


def board(uuid: str, index: int, place: str) -> dict[str, object]:
    return {
        "uuid": uuid,
        "name": "NVIDIA H100 80GB HBM3",
        "serial": "1654422000000",
        "vbios_version": "96.00.A5.00.01",
        "pci_bus_id": place,
        "index": index,
    }


def readings(instant: int) -> dict[str, float]:
    return {
        "up": 1,
        "memory_used": 12 * GIB + instant * GIB,
        "memory_total": 85520809984,
        "memory_free": 85520809984 - 13 * GIB - instant * GIB,
        "memory_reserved": GIB,
        "memory_busy": 41,
        "temperature": 61 + instant,
        "temperature_memory": 58,
        "power": 411.23,
        "power_limit": 700,
        "energy": 123456789.012 + 411.23 * instant,
        "clock.graphics": 1980e6,
        "clock.memory": 2619e6,
        "throttled.hardware_thermal": instant,
        "throttled.software_power_cap": 1,
        "ecc.corrected": 3 + instant,
        "ecc.uncorrected": 0,
        "rows_remapped.corrected": 1,
        "ecc_lifetime.corrected": 12 + instant,
        "ecc_lifetime.uncorrected": 1,
        "row_remap_pending": 0,
        "row_remap_failed": 0,
        "retired_pages_pending": 0,
        "recovery_action": 0,
        "performance_state": 0,
        "nvlink_transmit": 10**9 + instant * 5 * 10**7,
        "nvlink_receive": 2 * 10**9 + instant * 6 * 10**7,
        "pcie_transmit": 10**9 + instant * 12 * 10**6,
        "pcie_receive": 10**9 + instant * 54 * 10**6,
        "pcie_transmit_rate": 12 * 10**6,
        "pcie_receive_rate": 54 * 10**6,
        "pcie_replays": 2,
        "encoder": 0,
        "decoder": 7,
        "tensor_active": 42.5,
        "sm_active": 88.5,
        "sm_occupancy": 61.0,
        "dram_active": 55.0,
        "graphics_active": 96.0,
    }


def part(number: int) -> dict[str, object]:
    return {
        "uuid": f"MIG-{number}",
        "readings": {
            "memory_used": (number + 1) * GIB,
            "memory_total": 10 * GIB,
            "memory_free": (9 - number) * GIB,
            "multiprocessors": 16,
        },
        "gpu_instance_id": number + 3,
        "compute_instance_id": 0,
        "name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    }


def process() -> dict[str, object]:
    owner = {"name": "python", "namespace": "ml", "pod": "trainer-0", "container": "main"}
    return {"pid": 4242, "memory": 9 * GIB, "utilization": 88, "owner": owner}


def assignments() -> list[dict[str, str]]:
    given = {"namespace": "ml", "pod": "trainer-0", "container": "main", "resource": "nvidia.com/gpu"}
    return [
        {**given, "device": SECOND},
        {**given, "pod": "radeon-0", "resource": "amd.com/gpu", "device": "0000:0a:00.0"},
    ]


def card_files(instant: int) -> dict[str, str]:
    """An MI100 with one process on it, as amdgpu and KFD show it."""
    kept = {name: text for name, text in MI100.items() if name.startswith(KEPT)}
    files = {f"{CARD}/{name.replace('hwmonN', 'hwmon0')}": f"{text}\n" for name, text in kept.items()}
    files[f"{CARD}/gpu_busy_percent"] = f"{37 + instant}\n"
    files[f"{CARD}/unique_id"] = "79ccd55167a21000\n"
    files[f"{CARD}/uevent"] = "DRIVER=amdgpu\nPCI_ID=1002:738C\nPCI_SLOT_NAME=0000:0a:00.0\n"
    files[f"{KFD}/topology/nodes/1/gpu_id"] = "29022\n"
    files[f"{KFD}/topology/nodes/1/properties"] = f"location_id {0x0A << 8}\ndomain 0\n"
    files[f"{KFD}/proc/4343/vram_29022"] = f"{2 * GIB}\n"
    files[f"{KFD}/proc/4343/sdma_29022"] = f"{250_000 + instant * 1000}\n"
    files[f"{KFD}/proc/4343/stats_29022/cu_occupancy"] = "48\n"
    return files


def intel_files(instant: int) -> dict[str, str]:
    """A card of xe that is awake for a quarter of the second between the instants."""
    card = "sys/class/drm/card1"
    gt = f"{card}/device/tile0/gt0"
    return {
        f"{card}/device/uevent": "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n",
        f"{card}/device/vendor": "0x8086\n",
        f"{card}/device/tile0/physical_vram_size_bytes": f"{12 * GIB}\n",
        f"{gt}/gtidle/idle_residency_ms": f"{48_210 + instant * 750}\n",
        f"{gt}/freq0/act_freq": "1950\n",
        f"{card}/device/hwmon/hwmon4/energy1_input": f"{123_456_789 + instant * 40_000_000}\n",
        f"{card}/device/hwmon/hwmon4/temp2_input": "52000\n",
    }


def client_files(instant: int) -> dict[str, str]:
    """A process that has both cards open, the Intel one by two descriptors of one client."""
    xe = (
        "pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n"
        f"drm-resident-vram0:\t{524_288} KiB\ndrm-cycles-rcs:\t{1000 + instant * 300}\n"
        f"drm-total-cycles-rcs:\t{10_000 + instant * 1000}\n"
    )
    amd = (
        "drm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:0a:00.0\ndrm-memory-vram:\t1024 KiB\n"
        f"drm-engine-gfx:\t{5_000_000_000 + instant * 250_053_360} ns\n"
    )
    return {
        "proc/4545/fd/3": "-> /dev/null",
        "proc/4545/fd/5": "-> /dev/dri/renderD129",
        "proc/4545/fd/6": "-> /dev/dri/renderD129",
        "proc/4545/fd/7": "-> /dev/dri/renderD128",
        "proc/4545/fdinfo/5": xe,
        "proc/4545/fdinfo/6": xe,
        "proc/4545/fdinfo/7": amd,
    }
