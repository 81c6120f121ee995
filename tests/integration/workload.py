"""Processes that do a known amount of something."""

import sys

# Spins for a share of every 50 ms by its own CPU clock, which other load on
# the machine cannot shorten.
BURN = """
import sys, time
share = float(sys.argv[1])
while True:
    began = time.monotonic()
    spent = time.thread_time()
    while time.thread_time() - spent < 0.05 * share:
        pass
    time.sleep(max(0.0, began + 0.05 - time.monotonic()))
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
