"""
Writes an archive of a machine with eight busy GPUs: python -m tests.fakes.gpu_archive DATA --seconds 60

A real agent with the fake NVML on the tree of a fixture node, so that nothing of
the machine it runs on is in it; for pictures of the viewer, and for tests that read
GPU series back.
"""

import argparse
import math
import shutil
import tempfile
import time
from pathlib import Path

from tests.fakes.nvml.library import Scenario, build_library, many_gpus
from tests.integration.agents import running_agent
from tests.support import copy_node

GPUS = 8
# One turn of every GPU's load; each begins a little later than its neighbour.
TURN_SECONDS = 40.0


def load_of(number: int, seconds: float) -> dict[str, object]:
    """Load, memory, heat and power that belong together."""
    share = 0.5 + 0.5 * math.sin(2 * math.pi * (seconds / TURN_SECONDS + number / GPUS))
    return {
        f"gpu{number}.utilization": round(100 * share),
        f"gpu{number}.memory.used": (8 + round(50 * share)) * 2**30,
        f"gpu{number}.temperature": 38 + round(40 * share),
        f"gpu{number}.power": 90_000 + round(560_000 * share),
    }


def write_archive(data: Path, seconds: float, interval: str = "1s", rotation_seconds: float = 10) -> None:
    """Returns when the last segment is Parquet: an agent that ends converts what it has."""
    with tempfile.TemporaryDirectory(prefix="nodescope-gpus-") as name:
        scenario = Scenario(Path(name, "gpus"))
        scenario.say(many_gpus(GPUS) | {"all.fan": 40})
        library = build_library(Path(name, "library"))
        environment = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_SCENARIO": str(scenario.path)}
        root = copy_node("cgroup2-systemd", Path(name, "root"))
        # Answers of a fixture; here the sources ask for themselves.
        shutil.rmtree(root / "calls")
        flags = ("--root", str(root), "--data", str(data), "--interval", interval, "--node", "gpu-node")
        rotation = ("--rotation-seconds", f"{rotation_seconds:g}")
        with running_agent(*flags, *rotation, environment=environment):
            begun = time.monotonic()
            while (passed := time.monotonic() - begun) < seconds:
                lines = [load_of(number, passed) for number in range(GPUS)]
                scenario.say({key: value for line in lines for key, value in line.items()})
                time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    words = parser.parse_args()
    write_archive(words.data, words.seconds)


if __name__ == "__main__":
    main()
