"""
A day of the archive in minutes: what a node of 100 containers writes, and what the memory of who writes it does.

`run(scale)` replays a recording of real containers (artifacts/node.frames, or one that is made now)
through log, converter and consolidator, faster than time: scale 1.0 is 86,400 ticks (bench/writes.py). All three
work in one process for the whole day. In a pod the last two begin anew at every pass; here
whatever one of them leaves behind would add up.
"""

from bench.writes import DAY_MB, PASS_TICKS, WRITES_KIB, measure
from tests.torture.result import TortureRow, at_most

TICKS = 86_400
# Two hours, of which one is merged while the other is written.
LEAST_TICKS = 7_200
RECORDED_SECONDS = 120
KIB, MIB = 1024, 2**20
# Of what Arrow and the C library keep for later the most is not the same in any two hours.
GROWN_MIB = 24.0


def run(scale: float = 1.0) -> list[TortureRow]:
    ticks = max(LEAST_TICKS, int(TICKS * scale))
    facts = measure(ticks, RECORDED_SECONDS)
    written, kept = facts["pages"] / ticks / KIB, facts["bytes"] / ticks * TICKS / 1e6
    remark = f"{ticks / 3600:.1f} h, {facts['rows']} samples, {facts['bytes'] / facts['rows']:.3f} bytes each"
    return [
        at_most("a day kept", "memory, MiB more in the second half", grown_mib(facts["resident"]), GROWN_MIB),
        at_most("a day kept", "written, KiB a second in whole pages", written, WRITES_KIB, remark),
        at_most("a day kept", "samples of a day, MB", kept, DAY_MB, remark),
    ]


def grown_mib(resident: list[float]) -> float:
    """The most of the second half above the most of the first; the first hour fills what is kept."""
    settled = resident[3600 // PASS_TICKS // 2 :]
    half = len(settled) // 2
    return (max(settled[half:]) - max(settled[:half])) / MIB
