"""The fixture node `hardware`: hardware counters of two cores and one package, and PCM's first rows."""

import json
from dataclasses import replace

from tests.fakes.fake_pcm import make_up_lines
from tests.nodes.node import FILESYSTEMS, Node
from tests.nodes.plain_nodes import make_bare
from tests.nodes.proc_text import Machine

CPU = "sys/devices/system/cpu"
POWERCAP = "sys/class/powercap"
RESCTRL = "sys/fs/resctrl"


def make_hardware() -> Node:
    """No container, but every hardware counter there is: PCM, perf, RAPL, resctrl, cpufreq, cpuidle."""
    return replace(
        make_bare(),
        name="hardware",
        machine=Machine(cores=2),
        filesystems=[*FILESYSTEMS],
        alter=lambda instant, files: files.update(hardware_files(instant)),
    )


def hardware_files(instant: int) -> dict[str, str]:
    return {
        "calls/pcm.json": json.dumps(pcm_answer(instant), indent=1) + "\n",
        "calls/perf.json": json.dumps(perf_answer(instant), indent=1) + "\n",
        **zone_files("intel-rapl:0", "package-0", 262_100_000_000 + instant * 42_000_000),
        **zone_files("intel-rapl:0:0", "core", 5_000_000 + instant * 21_000_000),
        **zone_files("intel-rapl:0:1", "uncore", 1_000_000 + instant * 2_000_000),
        **zone_files("intel-rapl:0:2", "dram", 7_000_000 + instant * 4_000_000),
        **zone_files("intel-rapl:1", "psys", 9_000_000 + instant * 70_000_000),
        f"{RESCTRL}/info/L3_MON/num_rmids": "144\n",
        f"{RESCTRL}/mon_data/mon_L3_00/llc_occupancy": "7340032\n",
        f"{RESCTRL}/mon_data/mon_L3_00/mbm_total_bytes": f"{10**12 + instant * 2 * 10**9}\n",
        f"{RESCTRL}/mon_data/mon_L3_00/mbm_local_bytes": f"{10**11 + instant * 10**9}\n",
        f"{CPU}/online": "0-1\n",
        **{path: text for core in (0, 1) for path, text in core_files(core, instant).items()},
    }


def zone_files(zone: str, name: str, energy_uj: int) -> dict[str, str]:
    """The package wraps between the instants: its counter starts over at max_energy_range_uj."""
    largest = 262_143_328_850
    return {
        f"{POWERCAP}/{zone}/name": f"{name}\n",
        f"{POWERCAP}/{zone}/energy_uj": f"{energy_uj % largest}\n",
        f"{POWERCAP}/{zone}/max_energy_range_uj": f"{largest}\n",
    }


def core_files(core: int, instant: int) -> dict[str, str]:
    return {
        f"{CPU}/cpu{core}/cpufreq/scaling_cur_freq": f"{2_400_000 + core * 400_000}\n",
        f"{CPU}/cpu{core}/cpufreq/cpuinfo_min_freq": "400000\n",
        f"{CPU}/cpu{core}/cpufreq/cpuinfo_max_freq": "4200000\n",
        f"{CPU}/cpu{core}/cpuidle/state0/name": "POLL\n",
        f"{CPU}/cpu{core}/cpuidle/state0/time": f"{120 + instant}\n",
        f"{CPU}/cpu{core}/cpuidle/state1/name": "C1\n",
        f"{CPU}/cpu{core}/cpuidle/state1/time": f"{9_000_000 + instant * 250_000}\n",
        f"{CPU}/cpu{core}/cpuidle/state2/name": "C6\n",
        f"{CPU}/cpu{core}/cpuidle/state2/time": f"{90_000_000 + instant * 500_000}\n",
    }


def pcm_answer(instant: int) -> dict[str, object]:
    header, rows = make_up_lines()
    fields = rows[0].decode().split(",")[:-1]
    stamped = [["2026-01-01", f"00:00:0{instant}.000", *fields[2:]]]
    return {"tables": [{"header": [line.decode() for line in header], "rows": stamped}]}


def perf_answer(instant: int) -> dict[str, object]:
    """Core 1 takes turns: its cache pair ran half of the time."""
    second = 1_000_000_000
    work = [
        second * (1 + instant),
        second * (1 + instant),
        2 * 10**9 * (1 + instant),
        3 * 10**9 * (1 + instant),
    ]
    return {
        "0": {
            "work": work,
            "cache": [
                second * (1 + instant),
                second * (1 + instant),
                10**6 * (1 + instant),
                10**5 * (1 + instant),
            ],
        },
        "1": {
            "work": work,
            "cache": [
                second * (1 + instant),
                second // 2 * (1 + instant),
                10**6 * (1 + instant),
                10**5 * (1 + instant),
            ],
        },
    }
