"""A synthetic amdgpu and KFD tree, complete enough for the kernel's readers and for rocm-smi."""

import argparse
from collections.abc import Mapping
from pathlib import Path

MI100 = {
    "vendor": "0x1002",
    "device": "0x738c",
    "subsystem_vendor": "0x1002",
    "subsystem_device": "0x0c34",
    "revision": "0x01",
    "class": "0x038000",
    "gpu_busy_percent": "37",
    "mem_busy_percent": "12",
    "mem_info_vram_total": "34342961152",
    "mem_info_vram_used": "6782976",
    "mem_info_vis_vram_total": "34342961152",
    "mem_info_vis_vram_used": "6782976",
    "mem_info_gtt_total": "135048462336",
    "mem_info_gtt_used": "11399168",
    "mem_info_vram_vendor": "samsung",
    "vbios_version": "113-D3430400-037",
    "pcie_replay_count": "0",
    "power_dpm_force_performance_level": "auto",
    "pp_od_clk_voltage": "",
    "current_link_speed": "16.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "16.0 GT/s PCIe",
    "max_link_width": "16",
    "numa_node": "0",
    "pp_dpm_sclk": "0: 300Mhz \n1: 731Mhz *\n2: 1502Mhz ",
    "pp_dpm_mclk": "0: 1200Mhz *",
    "pp_dpm_fclk": "0: 1402Mhz *",
    "pp_dpm_socclk": "0: 1000Mhz *",
    "pp_dpm_pcie": "0: 8.0GT/s, x16 619Mhz *",
    "power/runtime_status": "active",
    "hwmon/hwmonN/name": "amdgpu",
    "hwmon/hwmonN/temp1_input": "31000",
    "hwmon/hwmonN/temp1_label": "edge",
    "hwmon/hwmonN/temp1_crit": "100000",
    "hwmon/hwmonN/temp2_input": "34000",
    "hwmon/hwmonN/temp2_label": "junction",
    "hwmon/hwmonN/temp3_input": "30000",
    "hwmon/hwmonN/temp3_label": "mem",
    "hwmon/hwmonN/power1_average": "39000000",
    "hwmon/hwmonN/power1_cap": "290000000",
    "hwmon/hwmonN/power1_cap_max": "290000000",
    "hwmon/hwmonN/power1_cap_min": "0",
    "hwmon/hwmonN/power1_cap_default": "290000000",
    "hwmon/hwmonN/in0_input": "662",
    "hwmon/hwmonN/in0_label": "vddgfx",
    "hwmon/hwmonN/freq1_input": "731000000",
    "hwmon/hwmonN/freq1_label": "sclk",
    "hwmon/hwmonN/pwm1": "51",
    "hwmon/hwmonN/pwm1_max": "255",
    "hwmon/hwmonN/fan1_input": "1200",
}
NODE = {
    "simd_count": 480,
    "mem_banks_count": 1,
    "caches_count": 0,
    "io_links_count": 1,
    "max_waves_per_simd": 10,
    "lds_size_in_kb": 64,
    "simd_arrays_per_engine": 1,
    "cu_per_simd_array": 15,
    "simd_per_cu": 4,
    "array_count": 8,
    "gfx_target_version": 90008,
    "hive_id": 0,
    "vendor_id": 4098,
    "device_id": 29580,
}
FIRST_BUS = 10
FIRST_GPU_ID = 29022


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def device_of(sys: Path, number: int) -> Path:
    return sys / f"devices/pci0000:00/0000:00:03.1/0000:{FIRST_BUS + number:02x}:00.0"


def build_card(
    sys: Path, number: int, changes: Mapping[str, str | None] | None = None, drm: int | None = None
) -> Path:
    """One card; `changes` replace files, and None leaves one out."""
    drm = number if drm is None else drm
    place = f"0000:{FIRST_BUS + number:02x}:00.0"
    device = device_of(sys, number)
    files: dict[str, str | None] = {**MI100, "unique_id": f"79ccd55167a21{number:03x}"}
    files |= changes or {}
    for name, text in files.items():
        if text is not None:
            write(device / name.replace("hwmonN", f"hwmon{number}"), text)
    write(device / "uevent", f"DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:738C\nPCI_SLOT_NAME={place}")
    (device / "drm" / f"card{drm}").mkdir(parents=True)
    write(device / f"drm/renderD{128 + drm}/dev", f"226:{128 + drm}")
    write(device / f"drm/card{drm}/dev", f"226:{drm}")
    write(
        device / f"drm/card{drm}/uevent", f"MAJOR=226\nMINOR={drm}\nDEVNAME=dri/card{drm}\nDEVTYPE=drm_minor"
    )
    (device / f"drm/card{drm}/device").symlink_to(Path("..", "..", "..", place))
    (device / f"drm/renderD{128 + drm}/device").symlink_to(Path("..", "..", "..", place))
    (device / f"hwmon/hwmon{number}/device").symlink_to(Path("..", "..", "..", place))
    inside = device.relative_to(sys)
    (sys / "class/drm").mkdir(parents=True, exist_ok=True)
    (sys / "class/hwmon").mkdir(parents=True, exist_ok=True)
    (sys / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
    (sys / "bus/pci/drivers/amdgpu").mkdir(parents=True, exist_ok=True)
    (sys / f"class/drm/card{drm}").symlink_to(Path("../..") / inside / f"drm/card{drm}")
    (sys / f"class/drm/renderD{128 + drm}").symlink_to(Path("../..") / inside / f"drm/renderD{128 + drm}")
    (sys / f"class/hwmon/hwmon{number}").symlink_to(Path("../..") / inside / f"hwmon/hwmon{number}")
    (sys / f"bus/pci/devices/{place}").symlink_to(Path("../../..") / inside)
    (sys / f"bus/pci/drivers/amdgpu/{place}").symlink_to(Path("../../../..") / inside)
    return device


def build_kfd(sys: Path, cards: int) -> None:
    """The topology: node 0 is the CPU, the others are the cards."""
    write(sys / "module/amdgpu/initstate", "live")
    write(sys / "module/amdgpu/version", "6.8.5")
    (sys / "module/amdgpu/drivers").mkdir()
    nodes = sys / "class/kfd/kfd/topology/nodes"
    (sys / "class/kfd/kfd/proc").mkdir(parents=True)
    write(nodes / "0/gpu_id", 0)
    write(nodes / "0/name", "")
    write(nodes / "0/properties", "cpu_cores_count 32\nsimd_count 0\nlocation_id 0\ndomain 0")
    for number in range(cards):
        node = nodes / str(number + 1)
        facts = {
            **NODE,
            "location_id": (FIRST_BUS + number) << 8,
            "domain": 0,
            "drm_render_minor": 128 + number,
        }
        write(node / "gpu_id", FIRST_GPU_ID + number)
        write(node / "name", "arcturus")
        write(node / "properties", "\n".join(f"{key} {value}" for key, value in facts.items()))
        for source, target, place in ((number + 1, 0, 0), (0, number + 1, number)):
            ends = f"type 2\nnode_from {source}\nnode_to {target}\nweight 20\nmin_bandwidth 312\nmax_bandwidth 16000\nflags 13"
            write(nodes / f"{source}/io_links/{place}/properties", ends)


def add_process(sys: Path, pid: int, number: int, memory: int, cards: int = 1) -> None:
    """A process with memory and a queue on one card; KFD has files for all cards."""
    folder = sys / f"class/kfd/kfd/proc/{pid}"
    write(folder / "pasid", 32771)
    write(folder / "queues/0/gpuid", FIRST_GPU_ID + number)
    for card in range(cards):
        gpu_id = FIRST_GPU_ID + card
        is_used = card == number
        write(folder / f"vram_{gpu_id}", memory if is_used else 0)
        write(folder / f"sdma_{gpu_id}", 5_000_000 if is_used else 0)
        write(folder / f"stats_{gpu_id}/cu_occupancy", 10 if is_used else 0)


def build_tree(sys: Path, cards: int = 1) -> None:
    for number in range(cards):
        changes = {
            "gpu_busy_percent": str(37 + number),
            "mem_info_vram_used": str(6782976 * (number + 1)),
            "hwmon/hwmonN/power1_average": str(39_000_000 + 1_000_000 * number),
        }
        build_card(sys, number, changes)
    build_kfd(sys, cards)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("sys", type=Path)
    parser.add_argument("cards", type=int)
    arguments = parser.parse_args()
    build_tree(arguments.sys, arguments.cards)
    add_process(arguments.sys, 4242, 0, 2**30, arguments.cards)
