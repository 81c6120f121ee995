"""
One cell of PCM's CSV: a number, or the reason why it is missing.

What PCM writes when it could not measure, and what we make of it:

    (nothing)            empty           a memory channel that has no DIMM
    N/A                  not_available   TEMP, L3OCC
    nan -nan inf         not_a_number    misses per instruction of an idle core
    -1.00                sentinel        PCM's "not measurable"; PhysIPC% is then -20 or -25
    18446744073.71       wrapped         a 64-bit counter that was lowered under PCM's feet
    -281738.12           out_of_range    counters disturbed, normally by a second PCM
    4.4x                 unparsable      torn or foreign text

A missing cell is NaN, never 0.
"""

import math
import re
from dataclasses import dataclass

NAN = math.nan
REASONS = (
    "empty",
    "not_available",
    "not_a_number",
    "sentinel",
    "wrapped",
    "out_of_range",
    "unparsable",
)
# Underflow of a 64-bit counter lands just below 2^64; no honest count of one
# interval comes near half of it.
WRAPPED = 2.0**63
_NOT_A_NUMBER = re.compile(r"[+-]?(nan(\(.*\))?|inf(inity)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Range:
    """What one kind of column may hold, in PCM's own unit."""

    most: float
    unit: float = 1.0
    """PCM's unit times this is the base unit."""


# Bounds are far beyond today's hardware and far below what a disturbed
# counter shows: 20 TB/s, 10,000 cores, 16 instructions per cycle.
MILLIONS = Range(1e11, 1e6)
GIGABYTES = Range(1.2e6, 1e9)
MEGABYTES = Range(1.2e9, 1e6)
KILOBYTES = Range(1e8, 1024.0)
JOULES = Range(1e6)
RATIO = Range(16.0)
# Rounding may lift a full share a little above it.
SHARE = Range(1.01)
PERCENT = Range(101.0, 0.01)
GIGAHERTZ = Range(20.0, 1e9)
MEGABYTES_PER_SECOND = Range(2e7, 1e6)
ANYTHING = Range(WRAPPED)

RANGES: dict[str, Range] = {
    **dict.fromkeys(("L3MISS", "L2MISS", "INST", "ACYC", "TIME(ticks)"), MILLIONS),
    **dict.fromkeys(("TotalUPIin", "TotalUPIout"), MILLIONS),
    **dict.fromkeys(("READ", "WRITE", "PMM_RD", "PMM_WR", "HBM_READ", "HBM_WRITE"), GIGABYTES),
    **dict.fromkeys(("IO", "IA", "GT"), GIGABYTES),
    **dict.fromkeys(("LMB", "RMB"), MEGABYTES),
    **dict.fromkeys(("EXEC", "IPC", "FREQ", "AFREQ", "INSTnom"), RATIO),
    **dict.fromkeys(("L3HIT", "L2HIT"), SHARE),
    "PhysIPC": Range(64.0),
    "PhysIPC%": Range(2000.0, 0.01),
    "INSTnom%": Range(2000.0, 0.01),
    "UPItoMC": Range(1000.0),
    "L3MPI": Range(10.0),
    "L2MPI": Range(10.0),
    "L3OCC": KILOBYTES,
    "LOCAL": PERCENT,
    "TEMP": Range(150.0),
    "CFREQ": GIGAHERTZ,
    # A read of memory takes 100 ns, over CXL some hundred more.
    "LLCRDMISSLAT (ns)": Range(1e4, 1e-9),
    # pcm-memory writes rates, not counts. A billion partial writes a second
    # would be 64 GB/s of the slowest kind of write.
    "P. Write (T/s)": Range(1e9),
    **dict.fromkeys(("Read", "Write", "Memory"), MEGABYTES_PER_SECOND),
}


def choose_range(group: str, metric: str) -> Range:
    """By name; groups that are turned on their side (`Proc Energy`, SKT0) by the group's."""
    known = RANGES.get(metric) or RANGES.get(group)
    if known:
        return known
    if group.endswith("(percent)") or metric.endswith(("res%", "(%)")):
        return PERCENT
    for name in (metric, group):
        if name.endswith("(Joules)"):
            return JOULES
        if name.endswith("(Ghz)"):
            return GIGAHERTZ
        if name.endswith("(MB/s)") or re.fullmatch(r"Ch\d+(Read|Write)", name):
            return MEGABYTES_PER_SECOND
    if re.fullmatch(r"UPI\d+", metric):
        return MILLIONS
    return ANYTHING


def parse_cell(text: str, metric: str, bounds: Range) -> tuple[float, str]:
    """The number in PCM's unit and "", or NaN and the reason."""
    bare = text.strip().removesuffix("%").rstrip()
    if not bare:
        return NAN, "empty"
    if bare.upper() in ("N/A", "NA"):
        return NAN, "not_available"
    if _NOT_A_NUMBER.fullmatch(bare):
        return NAN, "not_a_number"
    try:
        value = float(bare)
    except ValueError:
        return NAN, "unparsable"
    # Python reads 1_000 and digits of other scripts; PCM writes neither.
    if "_" in bare or not bare.isascii():
        return NAN, "unparsable"
    return judge_number(value, metric, bounds)


def judge_number(value: float, metric: str, bounds: Range) -> tuple[float, str]:
    """A number that stands in the cell may still not be a measurement."""
    if value == -1.0 or (value < 0 and metric in ("PhysIPC%", "INSTnom%")):
        return NAN, "sentinel"
    if not math.isfinite(value):
        return NAN, "not_a_number"
    if value * max(bounds.unit, 1.0) >= WRAPPED:
        return NAN, "wrapped"
    if not 0 <= value <= bounds.most:
        return NAN, "out_of_range"
    return value, ""
