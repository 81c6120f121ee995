"""Faults at single file operations: the library in shim.c, built and told what to do."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
# As in shim.c.
FAULTS = {
    "record": 0,
    "SIGKILL": 1,
    "SIGKILL in a write": 2,
    "EIO": 3,
    "ENOSPC": 4,
    "EINTR": 5,
    "short": 6,
    "delay": 7,
    "bad sector": 8,
    "full disk": 9,
}


def find_missing() -> str:
    """What this machine lacks; empty where the shim can be built."""
    if not shutil.which("gcc"):
        return "gcc is not installed"
    return "" if os.uname().machine == "x86_64" and os.uname().sysname == "Linux" else "Linux on x86-64 only"


def build_shim(place: Path) -> Path:
    library = place / "shim.so"
    command = ["gcc", "-O1", "-Wall", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


class Shim:
    """In a process that was started with the library preloaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def begin(
        self, below: Path, fault: str, number: int = -1, record: int = -1, ask: int = -1, answer: int = -1
    ) -> None:
        self._library.faults_begin(
            str(below).encode(), ctypes.c_long(number), FAULTS[fault], record, ask, answer
        )

    def end(self) -> None:
        self._library.faults_end()

    def was_met(self) -> bool:
        return bool(self._library.faults_met())
