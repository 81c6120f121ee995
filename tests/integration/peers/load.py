"""Containers with something to measure: CPU under a quota, memory, files, threads."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cgroups import Cgroups, Group

BURN = "while True: pass"
ALLOCATE = "import time; held = b'x' * (120 << 20); time.sleep(600)"
# Reading back more than the limit keeps the page cache under pressure, which
# memory.failcnt counts; fsync makes the writes reach the disk.
WRITE = """
import os, sys, time
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(24):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    with open(sys.argv[1], "rb") as file:
        while file.read(1 << 20):
            pass
    time.sleep(0.5)
"""
THREADS = """
import threading, time
for _ in range(5):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
time.sleep(600)
"""


def start_load(cgroups: Cgroups, folder: Path) -> Mapping[str, Group]:
    """What each container does, by name; they run until the cgroups go."""
    burning = cgroups.container(qos="guaranteed")
    burning.limit(memory_bytes=128 << 20, cpu_cores=0.3)
    burning.spawn([sys.executable, "-c", BURN])

    allocating = cgroups.container(driver="systemd")
    allocating.limit(memory_bytes=256 << 20)
    allocating.spawn([sys.executable, "-c", ALLOCATE])

    writing = cgroups.container()
    writing.limit(memory_bytes=24 << 20, cpu_cores=0.5)
    writing.spawn([sys.executable, "-c", WRITE, str(folder / "written")])

    threading = cgroups.container(qos="besteffort", driver="systemd")
    threading.spawn([sys.executable, "-c", THREADS])
    for _ in range(3):
        threading.spawn(["sleep", "600"])
    return {"burning": burning, "allocating": allocating, "writing": writing, "threading": threading}
