"""
The FPGA state as the Node's annotation carries it: at most 1 KiB, at any rate.

Key `fpga-scheduling.io/fpga-state`, JSON, version 2:

    {"version": 2,
     "recentUsage": 30423.3,                  ms within the window,
     "recentReconfigurationTime": 10000,      as the original plugin reads them
     "recentBitstreamIdentifiers": {"def": {}},
     "updatedAt": 1690000000.123,             seconds since 1970
     "writer": "nodescope/0.1.0",
     "state": {"window": 300,                 seconds
               "usage": [0, 999, ...],        how the sums spread over 30 parts of the
               "reconfiguration": [...],      window, oldest first, in thousandths
               "bitstreams": [[4, 10000]],    seconds since seen, mean ms to load or null;
                                              in the order of recentBitstreamIdentifiers
               "more": 0}}                    bitstreams that did not fit

The parts are shares of the sums, so that their length does not grow with the
values; a restart puts the sums back, spread as they were. Version 1, of the
original collector, has the sums and set only, and blobs of Go's own encoding
that carry every event: the blobs are passed over and the sums spread evenly.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from nodescope import __version__
from nodescope.base.errors import ParseError
from nodescope.base.fpga import Bitstream, FpgaReading
from nodescope.base.text import clean_text

KEY = "fpga-scheduling.io/fpga-state"
VERSION = 2
STATE_BYTES = 1024
PARTS = 30
SHARES = 999
# A change of this share of the larger value is worth a write.
MATERIAL_RATIO = 0.05
# Neither the original nor we ever write more than this many names.
NAMES = 4096
# An annotation of all keys together may have 256 KiB; ours of that size is not ours.
TEXT_CHARACTERS = 262144
# The intake accepts no event longer than 1e12 ms; a sum beyond this is no sum of such.
LARGEST_MS = 1e18


@dataclass(frozen=True, slots=True)
class FpgaState:
    """A state as read from an annotation, of any version."""

    version: int
    usage_ms: float
    reconfiguration_ms: float
    bitstreams: tuple[Bitstream, ...]
    updated_at_ms: int | None
    """None in version 1, which does not say."""
    window_ms: int = 300_000
    usage_parts: tuple[int, ...] = ()
    """Empty means spread evenly."""
    reconfiguration_parts: tuple[int, ...] = ()
    more: int = 0


def render_state(reading: FpgaReading) -> str:
    """
    The annotation's text.

    forall readings: len(render_state(reading).encode()) <= STATE_BYTES
    """
    shown: list[Bitstream] = []
    text = _render(reading, shown)
    for one in reading.bitstreams:
        longer = _render(reading, [*shown, one])
        # One name that is too long does not keep the shorter ones out.
        if len(longer.encode()) <= STATE_BYTES:
            shown.append(one)
            text = longer
    return text


def _render(reading: FpgaReading, shown: Sequence[Bitstream]) -> str:
    content: dict[str, Any] = {
        "version": VERSION,
        "recentUsage": shorten(reading.usage_ms),
        "recentReconfigurationTime": shorten(reading.reconfiguration_ms),
        "recentBitstreamIdentifiers": {one.name: {} for one in shown},
        "updatedAt": reading.at_ms / 1000,
        "writer": f"nodescope/{__version__}",
        "state": {
            "window": shorten(reading.window_ms / 1000),
            "usage": derive_shares(reading.usage_buckets),
            "reconfiguration": derive_shares(reading.reconfiguration_buckets),
            "bitstreams": [
                [
                    max(0, reading.at_ms - one.seen_at_ms) // 1000,
                    None if math.isnan(one.reconfiguration_ms) else shorten(one.reconfiguration_ms),
                ]
                for one in shown
            ],
            "more": len(reading.bitstreams) - len(shown) + reading.bitstreams_left,
        },
    }
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def shorten(value: float) -> float | int:
    """Six digits are more than a scheduler can use; whole numbers without a point."""
    short = float(f"{value:.6g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def derive_shares(buckets: Sequence[float]) -> list[int]:
    """Thousandths of the whole in each part, oldest first; empty when there is nothing."""
    step = len(buckets) // PARTS
    parts = [math.fsum(buckets[start : start + step]) for start in range(0, len(buckets), step)]
    total = math.fsum(parts)
    return [round(part / total * SHARES) for part in parts] if total > 0 else []


def parse_state(text: str, now_ms: int) -> FpgaState:
    """An annotation of version 1 or 2; ParseError says what is wrong with it."""
    if len(text) > TEXT_CHARACTERS:
        raise ParseError(f"fpga-state: {len(text)} characters, at most {TEXT_CHARACTERS} are read")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"fpga-state: not JSON: {str(error)[:80]}") from None
    if not isinstance(content, dict):
        raise ParseError("fpga-state: not a JSON object")
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise ParseError(f"fpga-state: version {str(version)[:20]!r}; 1 and {VERSION} are read")
    usage_ms = parse_sum(content, "recentUsage")
    reconfiguration_ms = parse_sum(content, "recentReconfigurationTime")
    names = parse_names(content.get("recentBitstreamIdentifiers"))
    if version == 1:
        # It does not say when: as if of now, which the even spread lets fade.
        seen = tuple(Bitstream(name, now_ms, math.nan) for name in names)
        return FpgaState(1, usage_ms, reconfiguration_ms, seen, None)
    return parse_version_2(content, usage_ms, reconfiguration_ms, names)


def parse_version_2(
    content: Mapping[str, Any], usage_ms: float, reconfiguration_ms: float, names: Sequence[str]
) -> FpgaState:
    updated = content.get("updatedAt")
    state = content.get("state")
    if not is_number(updated) or not 0 <= updated < 1e12:
        raise ParseError(f"fpga-state: updatedAt {str(updated)[:40]!r} is no time")
    if not isinstance(state, dict):
        raise ParseError("fpga-state: no state")
    updated_at_ms = round(updated * 1000)
    window = state.get("window")
    if not is_number(window) or not 0 < window <= 1e6:
        raise ParseError(f"fpga-state: window {str(window)[:40]!r} is no length")
    more = state.get("more")
    return FpgaState(
        VERSION,
        usage_ms,
        reconfiguration_ms,
        parse_bitstreams(names, state.get("bitstreams"), updated_at_ms),
        updated_at_ms,
        round(window * 1000),
        parse_parts(state.get("usage")),
        parse_parts(state.get("reconfiguration")),
        int(more) if is_number(more) and 0 <= more < 1e9 else 0,
    )


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST_MS < value < LARGEST_MS


def parse_sum(content: Mapping[str, Any], key: str) -> float:
    value = content.get(key, 0)
    if not is_number(value):
        raise ParseError(f"fpga-state: {key} {str(value)[:40]!r} is no sum")
    # The original subtracts what expires, and ends a hair below zero.
    return max(0.0, float(value))


def parse_names(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, dict) or len(value) > NAMES:
        raise ParseError("fpga-state: recentBitstreamIdentifiers is no set of names")
    return [clean_text(name.encode("utf-8", "replace").decode()) for name in value]


def parse_parts(value: object) -> tuple[int, ...]:
    """Shares of the parts; what is not a list of them is taken as spread evenly."""
    if not isinstance(value, list) or len(value) != PARTS:
        return ()
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one <= SHARES for one in value):
        return ()
    return tuple(value)


def parse_bitstreams(names: Sequence[str], value: object, updated_at_ms: int) -> tuple[Bitstream, ...]:
    """Names with what is said of each; without that, seen when the state was written."""
    known = value if isinstance(value, list) and len(value) == len(names) else [None] * len(names)
    found = []
    for name, one in zip(names, known):
        pair: list[Any] = one if isinstance(one, list) and len(one) == 2 else [0, None]
        age = pair[0] if is_number(pair[0]) and 0 <= pair[0] < 1e9 else 0
        mean_ms = float(pair[1]) if is_number(pair[1]) and pair[1] >= 0 else math.nan
        found.append(Bitstream(name, updated_at_ms - round(age * 1000), mean_ms))
    return tuple(found)


def derive_buckets(state: FpgaState, now_ms: int) -> list[tuple[int, float, float]]:
    """
    (at_ms, usage_ms, reconfiguration_ms) of each part, at its middle, for the tracker.

    The sums are exact: sum of the parts == recentUsage, whatever was rounded.
    """
    ends_ms = now_ms if state.updated_at_ms is None else min(state.updated_at_ms, now_ms)
    width_ms = state.window_ms / PARTS
    usage = spread(state.usage_ms, state.usage_parts)
    reconfiguration = spread(state.reconfiguration_ms, state.reconfiguration_parts)
    return [
        (round(ends_ms - (PARTS - number - 0.5) * width_ms), usage[number], reconfiguration[number])
        for number in range(PARTS)
    ]


def spread(total: float, parts: Sequence[int]) -> list[float]:
    whole = sum(parts)
    if not whole:
        return [total / PARTS] * PARTS
    return [total * part / whole for part in parts]


def is_material(before: FpgaReading | None, after: FpgaReading) -> bool:
    """Whether a scheduler would care: another set of bitstreams, or sums that moved."""
    if before is None:
        return after.heard
    if {one.name for one in before.bitstreams} != {one.name for one in after.bitstreams}:
        return True
    pairs = (
        (before.usage_ms, after.usage_ms),
        (before.reconfiguration_ms, after.reconfiguration_ms),
    )
    return any(abs(old - new) > MATERIAL_RATIO * max(old, new) for old, new in pairs)
