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
               "sessions": 3,                 how many made up recentUsage
               "bitstreams": [[4, 10000]],    seconds since seen, mean ms to load or null;
                                              in the order of recentBitstreamIdentifiers
               "more": 0}}                    bitstreams that did not fit

The parts are shares of the sums, so that their length does not grow with the
values; a restart puts the sums back, spread as they were.

Version 1, of the original collector, has the sums and the set, and three blobs
in Go's own encoding (base64 of gob) with every event of the window:

    UsageState            [{Usage: ms, Timestamp}, ...]
    ReconfigurationState  [{ReconfigurationTime: ms, Timestamp}, ...]
    BitstreamState        [{BitstreamIdentifier, Timestamp}, ...]

They are read; where one cannot be, its sum is spread evenly over the window.
"""

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from nodescope import __version__
from nodescope.base.errors import ParseError
from nodescope.base.text import clean_text
from nodescope.fpga.annotation_json import is_number, parse_object, parse_seconds
from nodescope.fpga.gob import parse_gob, parse_time_ms
from nodescope.fpga.tracker import Bitstream, Bucket, FpgaReading

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
# The window's own bounds are 10 s and a day; what is far outside was not written by an agent.
WINDOW_BOUNDS_SECONDS = (1.0, 1e5)
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
    sessions: float = 0.0
    events: tuple[Bucket, ...] | None = None
    """Every event, of a version 1 whose blobs could be read."""

    @property
    def newest_event_ms(self) -> int | None:
        return max((event[0] for event in self.events or ()), default=None)


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
            "sessions": shorten(reading.sessions),
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
    content = parse_object("fpga-state", text, TEXT_CHARACTERS)
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise ParseError(f"fpga-state: version {str(version)[:20]!r}; 1 and {VERSION} are read")
    sums = parse_sum(content, "recentUsage"), parse_sum(content, "recentReconfigurationTime")
    names = parse_names(content.get("recentBitstreamIdentifiers"))
    if version == 1:
        return parse_version_1(content, sums, names, now_ms)
    return parse_version_2(content, sums, names)


def parse_version_1(
    content: Mapping[str, Any], sums: tuple[float, float], names: Sequence[str], now_ms: int
) -> FpgaState:
    """It does not say when: what its blobs do not date is as if of now, and fades."""
    usage = parse_blob(content.get("UsageState"), "Usage")
    loads = parse_blob(content.get("ReconfigurationState"), "ReconfigurationTime")
    seen = parse_blob(content.get("BitstreamState"), "BitstreamIdentifier")
    events = None
    if usage is not None and loads is not None:
        events = (
            *((at_ms, float(value), 0.0, 1.0) for at_ms, value in usage if is_length(value)),
            *((at_ms, 0.0, float(value), 0.0) for at_ms, value in loads if is_length(value)),
        )
    bitstreams = date_bitstreams(names, seen or [], loads or [], now_ms)
    return FpgaState(1, *sums, bitstreams, None, events=events)


def parse_blob(text: object, field: str) -> list[tuple[int, Any]] | None:
    """(at_ms, value) of every event; None when the blob is not understood."""
    if not isinstance(text, str):
        return None
    try:
        rows = parse_gob(base64.b64decode(text, validate=True))
        return [(parse_time_ms(row["Timestamp"]), row[field]) for row in rows]
    except (ParseError, binascii.Error, ValueError, KeyError, TypeError):
        return None


def is_length(value: object) -> TypeGuard[float]:
    return is_number(value, 0, LARGEST_MS)


def date_bitstreams(
    names: Sequence[str],
    seen: Sequence[tuple[int, object]],
    loads: Sequence[tuple[int, object]],
    now_ms: int,
) -> tuple[Bitstream, ...]:
    """
    The names of the set with when each was last reported.

    One request of the original's carries bitstream and reconfiguration, and
    both get its timestamp: the same instant means this bitstream took so long.
    """
    took_ms = {at_ms: float(value) for at_ms, value in loads if is_length(value)}
    last: dict[str, int] = {}
    times: dict[str, list[float]] = {}
    for at_ms, name in seen:
        if isinstance(name, str):
            last[name] = max(at_ms, last.get(name, at_ms))
            if at_ms in took_ms:
                times.setdefault(name, []).append(took_ms[at_ms])
    return tuple(
        Bitstream(name, last.get(name, now_ms), math.fsum(known) / len(known) if known else math.nan)
        for name in names
        # The original's sender may leave the name empty, and its set then has that.
        if name
        for known in [times.get(name, [])]
    )


def parse_version_2(content: Mapping[str, Any], sums: tuple[float, float], names: Sequence[str]) -> FpgaState:
    updated_at_ms = round(parse_seconds("fpga-state", content) * 1000)
    state = content.get("state")
    if not isinstance(state, dict):
        raise ParseError("fpga-state: no state")
    window, more, sessions = state.get("window"), state.get("more"), state.get("sessions")
    if not is_number(window, *WINDOW_BOUNDS_SECONDS):
        raise ParseError(f"fpga-state: window {str(window)[:40]!r} is no length")
    return FpgaState(
        VERSION,
        *sums,
        parse_bitstreams(names, state.get("bitstreams"), updated_at_ms),
        updated_at_ms,
        round(window * 1000),
        parse_parts(state.get("usage")),
        parse_parts(state.get("reconfiguration")),
        int(more) if is_number(more, 0, 1e9) else 0,
        float(sessions) if is_length(sessions) else 0.0,
    )


def parse_sum(content: Mapping[str, Any], key: str) -> float:
    value = content.get(key, 0)
    if not is_number(value, -LARGEST_MS, LARGEST_MS):
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
    are_shares = all(isinstance(one, int) and is_number(one, 0, SHARES + 1) for one in value)
    return tuple(value) if are_shares else ()


def parse_bitstreams(names: Sequence[str], value: object, updated_at_ms: int) -> tuple[Bitstream, ...]:
    """Names with what is said of each; without that, seen when the state was written."""
    known = value if isinstance(value, list) and len(value) == len(names) else [None] * len(names)
    found = []
    for name, one in zip(names, known):
        pair: list[Any] = one if isinstance(one, list) and len(one) == 2 else [0, None]
        age = pair[0] if is_number(pair[0], 0, 1e9) else 0
        mean_ms = float(pair[1]) if is_length(pair[1]) else math.nan
        found.append(Bitstream(name, updated_at_ms - round(age * 1000), mean_ms))
    return tuple(found)


def derive_buckets(state: FpgaState, now_ms: int) -> list[Bucket]:
    """
    The events of a version 1, or each part of the sums at its middle, for the tracker.

    The sums are exact: sum of the parts == recentUsage, whatever was rounded.
    """
    if state.events is not None:
        return list(state.events)
    ends_ms = now_ms if state.updated_at_ms is None else min(state.updated_at_ms, now_ms)
    width_ms = state.window_ms / PARTS
    middles_ms = [round(ends_ms - (PARTS - number - 0.5) * width_ms) for number in range(PARTS)]
    usage = spread(state.usage_ms, state.usage_parts)
    reconfiguration = spread(state.reconfiguration_ms, state.reconfiguration_parts)
    sessions = spread(state.sessions, state.usage_parts)
    return list(zip(middles_ms, usage, reconfiguration, sessions))


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
    usage = before.usage_ms, after.usage_ms
    pairs = usage, (before.reconfiguration_ms, after.reconfiguration_ms)
    return any(abs(old - new) > MATERIAL_RATIO * max(old, new) for old, new in pairs)
