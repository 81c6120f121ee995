"""
How well the kernel's clock is kept in step, by its own estimate.

Reads   adjtimex(2), which tells without changing anything when asked for nothing
Needs   Linux
Docs    https://man7.org/linux/man-pages/man2/adjtimex.2.html

One answer, as JSON would save it:

    {"state": 5, "offset": 0, "freq": 0, "maxerror": 16000000, "esterror": 16000000, "status": 64, "tick": 10000, ...}

Microseconds, or nanoseconds where the status says so (bit 0x2000); frequencies
in 65536ths of a part per million. State 5 is "not synchronised".
"""

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from nodescope.base.block import Table
from nodescope.base.entity import NODE
from nodescope.base.metric import Kind, Metric
from nodescope.collect.run.slow_source import Rows, SlowSource
from nodescope.collect.run.source import Context

# include/uapi/linux/timex.h
STATUS_NANO = 0x2000
NOT_SYNCHRONISED = 5
PARTS = 65536.0 * 1e6
MICRO, NANO = 1e6, 1e9


class Timex(ctypes.Structure):
    """struct timex; the padding behind it is the kernel's."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance", "seconds", "parts")),
        *((name, ctypes.c_long) for name in ("tick", "ppsfreq", "jitter")),
        ("shift", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("stabil", "jitcnt", "calcnt", "errcnt", "stbcnt")),
        ("tai", ctypes.c_int),
        ("padding", ctypes.c_int * 11),
    )


FIELDS = (
    *("offset", "freq", "maxerror", "esterror", "status", "constant", "tick", "ppsfreq", "jitter", "shift"),
    *("stabil", "jitcnt", "calcnt", "errcnt", "stbcnt", "tai"),
)
# Published name, kind, unit, sentence; in the order of `parse`.
COLUMNS: tuple[tuple[str, Kind, str, str], ...] = (
    ("sync_status", "gauge", "", "1 when the clock is synchronised."),
    ("offset_seconds", "gauge", "seconds", "Time between the clock and its reference."),
    ("frequency_adjustment_ratio", "gauge", "ratio", "How fast the clock is made to run; 1 is its own pace."),
    ("maxerror_seconds", "gauge", "seconds", "The most that the clock may be wrong."),
    ("estimated_error_seconds", "gauge", "seconds", "What the clock is probably wrong by."),
    ("status", "gauge", "", "The status bits, as a number."),
    ("loop_time_constant", "gauge", "", "Time constant of the phase-locked loop."),
    ("tick_seconds", "gauge", "seconds", "Time between two ticks of the clock."),
    ("pps_frequency_hertz", "gauge", "hertz", "Frequency of the pulse-per-second signal."),
    ("pps_jitter_seconds", "gauge", "seconds", "Jitter of the pulse-per-second signal."),
    ("pps_shift_seconds", "gauge", "seconds", "Length of its calibration, as the kernel gives it."),
    ("pps_stability_hertz", "gauge", "hertz", "Stability of the pulse-per-second signal."),
    ("pps_jitter_total", "counter", "", "Times that its jitter was too large."),
    ("pps_calibration_total", "counter", "", "Calibrations by it."),
    ("pps_error_total", "counter", "", "Calibrations that failed."),
    ("pps_stability_exceeded_total", "counter", "", "Times that its stability was too low."),
    ("tai_offset_seconds", "gauge", "seconds", "Seconds between UTC and international atomic time."),
)
TABLE = Table(
    "timex",
    "timex",
    ("node",),
    tuple(
        Metric(f"timex.{name.removesuffix('_total')}", kind, sentence, f"node_timex_{name}", unit=unit)
        for name, kind, unit, sentence in COLUMNS
    ),
)


@cache
def find_call() -> Callable[[Any], int] | None:
    try:
        found: Callable[[Any], int] = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    return found


def ask_kernel() -> dict[str, int] | None:
    """The kernel's figures; None where there is no such call, or it is not permitted."""
    asked = Timex()
    call = find_call()
    state = call(ctypes.byref(asked)) if call else -1
    return {"state": state, **{name: getattr(asked, name) for name in FIELDS}} if state >= 0 else None


def read(context: Context) -> Mapping[str, int] | None:
    try:
        answer: Mapping[str, int] | None = context.root.call("timex", ask_kernel)
    except FileNotFoundError:
        return None
    return answer


def parse(told: Mapping[str, int]) -> tuple[Rows, ...]:
    fine = NANO if told["status"] & STATUS_NANO else MICRO
    values = (
        float(told["state"] != NOT_SYNCHRONISED),
        told["offset"] / fine,
        1 + told["freq"] / PARTS,
        told["maxerror"] / MICRO,
        told["esterror"] / MICRO,
        told["status"],
        told["constant"],
        told["tick"] / MICRO,
        told["ppsfreq"] / PARTS,
        told["jitter"] / fine,
        told["shift"],
        told["stabil"] / PARTS,
        told["jitcnt"],
        told["calcnt"],
        told["errcnt"],
        told["stbcnt"],
        told["tai"],
    )
    return ({NODE: [float(value) for value in values]},)


make = SlowSource(
    "timex",
    (TABLE,),
    read,
    parse,
    "no adjtimex(2) here: not Linux, or not permitted",
    pace_seconds=10.0,
    is_prompt=True,
)
