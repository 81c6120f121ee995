"""Processes that do a known amount of something."""

import sys

# Spins until its own CPU clock is at a share of the time since its start: what
# other load on the machine took away is caught up with.
BURN = """
import sys, time
share = float(sys.argv[1])
began = time.monotonic()
while True:
    while time.thread_time() < share * (time.monotonic() - began):
        pass
    time.sleep(0.02)
"""
# Touches every page, says so, and keeps them.
HOLD = """
import mmap, sys, time
size = int(sys.argv[1])
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for place in range(0, size, 4096):
    held[place] = 1
print("held", flush=True)
time.sleep(600)
"""


def burner(share: float) -> list[str]:
    return [sys.executable, "-S", "-c", BURN, str(share)]


def holder(size_bytes: int) -> list[str]:
    return [sys.executable, "-S", "-c", HOLD, str(size_bytes)]
