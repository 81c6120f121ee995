"""Builds the fake NVML and points nvidia-ml-py at it."""

import ctypes
import importlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("fake_nvml.c")


def build_library(folder: Path, *flags: str) -> Path:
    """libnvidia-ml.so.1 in a folder of its own, so that LD_LIBRARY_PATH can name it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no C compiler; install gcc")
        pytest.skip("no C compiler for the fake NVML; install gcc")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *flags]
    subprocess.run(
        [*command, "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(SOURCE)], check=True, timeout=60
    )
    return library


def point_binding_at(library: Path) -> None:
    """As if the process had just been started with this library."""
    binding: Any = importlib.import_module("pynvml")
    binding.nvmlLib = ctypes.CDLL(str(library))
    binding._nvmlGetFunctionPointer_cache.clear()


class Scenario:
    """The text file that the fake reads at every call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[str, str] = {}

    def say(self, lines: Mapping[str, object]) -> None:
        """Add or replace lines, in one step for whoever reads."""
        self.lines.update({key: str(value) for key, value in lines.items()})
        text = "".join(f"{key} = {value}\n" for key, value in self.lines.items())
        draft = self.path.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(self.path)


# The values of an H100 under load, as nvidia-smi of driver 590 showed them.
H100 = {
    "all.name": "NVIDIA H100 80GB HBM3",
    "all.serial": "1654422000000",
    "all.vbios": "96.00.A5.00.01",
    "all.memory_busy": 41,
    "all.memory.total": 85520809984,
    "all.memory.reserved": 540016640,
    "all.power_limit": 700000,
    "all.energy": 123456789012,
    "all.clock.graphics": 1980,
    "all.clock.sm": 1980,
    "all.clock.memory": 2619,
    "all.clock.video": 1545,
    "all.reasons": "0x4",
    "all.ecc.0.0": 3,
    "all.ecc.1.0": 0,
    "all.ecc.0.1": 12,
    "all.ecc.1.1": 1,
    "all.rows": "1 0 0 0",
    "all.pcie.replays": 2,
    "all.pcie.generation": 5,
    "all.pcie.width": 16,
    "all.pcie.transmit": 12345,
    "all.pcie.receive": 54321,
    "all.encoder": 0,
    "all.decoder": 7,
    "all.state": 0,
    "all.mig": 0,
    "all.field.82": 58,
    "all.field.138": 1024,
    "all.field.139": 2048,
    "all.field.230": 0,
    "all.graphics": "",
    "all.compute": "",
    "all.shares": "",
    "all.events": "yes",
}


def many_gpus(count: int) -> dict[str, object]:
    """GPUs with different loads, so that a mix-up shows."""
    lines: dict[str, object] = {"driver": "590.48.01", "count": count, **H100}
    for number in range(count):
        lines |= {
            f"gpu{number}.uuid": f"GPU-{number:08x}-1111-2222-3333-444444444444",
            f"gpu{number}.pci": f"00000000:{number + 7:02X}:00.0",
            f"gpu{number}.utilization": 10 * number + 7,
            f"gpu{number}.memory.used": (number + 1) * 5 * 2**30,
            f"gpu{number}.temperature": 40 + number,
            f"gpu{number}.power": 100_230 + 50_000 * number,
        }
    return lines
