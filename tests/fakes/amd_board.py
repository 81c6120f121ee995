"""A node with four AMD GPUs of two generations, with the firmware's table of each, used by a pod and by a job of Slurm."""

import struct
from pathlib import Path

from tests.fakes.amd_tree import add_process, build_card, build_kfd, write

# Board numbers that AMD's dashboards tell generations by.
MI210, MI300X = "102-D67305-00", "102-G30211-00"
JOB_CGROUP = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0"
STAT = "{pid} (python) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 100 1 1 1"


def make_table_1_3(hbm: tuple[int, int, int, int] = (51, 52, 53, 54), energy: int = 65536) -> bytes:
    """120 bytes; what is not set is not available."""
    table = bytearray(b"\xff" * 120)
    struct.pack_into("<HBB", table, 0, 120, 1, 3)
    struct.pack_into("<HH", table, 16, 44, 11)
    struct.pack_into("<Q", table, 24, energy)
    struct.pack_into("<4H", table, 88, *hbm)
    return bytes(table)


def make_table_1_7(busy: tuple[tuple[int, ...], ...] = ((30, 50),)) -> bytes:
    """2,208 bytes, of a GPU that is split: no activity as a whole."""
    table = bytearray(b"\xff" * 2208)
    struct.pack_into("<HBB", table, 0, 2208, 1, 7)
    struct.pack_into("<Q", table, 24, 2 * 65536)
    struct.pack_into("<4Q", table, 96, 1234, 5, 6, 7)
    struct.pack_into("<2I", table, 128, 8, 9)
    for partition, units in enumerate(busy):
        struct.pack_into(f"<{len(units)}I", table, 344 + 232 * partition, *units)
    return bytes(table)


def build_board(root: Path, pod_cgroup: str) -> None:
    """Cards 0 and 1 are MI210, 2 and 3 MI300X; of each two the first is of a process in this cgroup, the second a job's."""
    errors = {"ras/umc_err_count": "ue: 1\nce: 3"}
    power = {"hwmon/hwmonN/power1_average": None, "hwmon/hwmonN/power1_input": "750000000"}
    for number in range(4):
        is_new = number >= 2
        changes: dict[str, str | None] = {"product_number": MI300X if is_new else MI210, **errors}
        if is_new:
            changes |= {**power, "gpu_busy_percent": None, "mem_busy_percent": None}
        device = build_card(root / "sys", number, changes)
        (device / "gpu_metrics").write_bytes(make_table_1_7() if is_new else make_table_1_3())
        pid = 4000 + number
        write(root / f"proc/{pid}/stat", STAT.format(pid=pid))
        write(root / f"proc/{pid}/cgroup", JOB_CGROUP if number % 2 else pod_cgroup)
    build_kfd(root / "sys", 4)
    for number in range(4):
        add_process(root / "sys", 4000 + number, number, 2**30, 4)
