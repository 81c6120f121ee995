"""
The sidecar of a Parquet file: its series, metrics and clocks, without opening it.

A `.containers` file is five zstd frames one after the other, each one line of
JSON, so that `zstdcat FILE | jq` reads it all, and a checksum (check/seal.py):

    head     {"format": "nodescope-sidecar", "version": 2, "rows", "from_ms", "to_ms",
              "node", "identifier", "segments": {run: [[first, last], ...]},
              "replaces": [file names], "sizes": [bytes of each frame that follows],
              "sum": {"pieces": [[end, CRC-32], ...], "sha256"} of the Parquet file, "sealed": true}
    metrics  [{"name", "kind", "unit", "scale", "help", "plain", "scopes", ...}, ...]
    series   [{"labels": {column: value}, "details": {...}}, ...] in the order of rows
    story    {"seen": {series number: [first_ms, last_ms]} where it is not the whole file,
              "outcomes": [[time_ms, {source: [state, reason]}], ...] at changes only,
              "events": [{"kind", "at_ms", "scope", "ids", "labels", "facts"}, ...]}
    ticks    {"ticks": [[time_ms, mono_ns, run], then differences ...], "runs": [run, ...]}

Version 1 had the ticks in the story; a day's are most of a sidecar, and only
rates need them. The tick table maps every `time` of the file to the monotonic clock of its run,
so that rates on read survive a stepped wall clock. Metrics and series do not
mention time: neighbouring files have the same bytes there, and a reader
parses them once. A version above ours is refused. Sidecars that have neither
sum nor seal are older than these; they are read without being checked.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from nodescope.base.block import Integers
from nodescope.base.codec import metric_from_json
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.metric import Metric
from nodescope.keep.check.seal import seal, unseal
from nodescope.keep.check.sums import FileSum, sum_from_json, sum_to_json
from nodescope.keep.label_columns import LABELS, Subject

FORMAT = "nodescope-sidecar"
VERSION = 2
LEVEL = 3
# Metrics, series, story.
PARTS_LEAST = 3
# A day of 5,000 containers with much churn is some 10 MiB, and 40 when unpacked.
SIDECAR_BYTES = 64 * 2**20
PART_BYTES = 128 * 2**20
# JSON of ours packs by ten to twenty; clocks pack by hundreds, and are below this.
PART_FLOOR_BYTES = 4 * 2**20
PART_RATIO = 32
# A list or an object costs 64 bytes in memory; ours have at least ten bytes of text each.
BRACKET_FLOOR_BYTES = 256 * 2**10
BYTES_PER_BRACKET = 8


@dataclass(slots=True)
class Ticks:
    """The clocks of a file: one row for every distinct `time`, in order of time."""

    time_ms: Integers
    mono_ns: Integers
    run: Integers
    """Index into runs."""
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """What a reader must know of every file."""

    rows: int
    from_ms: int
    to_ms: int
    node: str
    identifier: str
    segments: Mapping[str, Sequence[Sequence[int]]]
    replaces: tuple[str, ...] = ()
    sum: FileSum | None = None
    """Of the Parquet file; None where it is older than checksums are."""


@dataclass(slots=True)
class Sidecar:
    """A whole sidecar."""

    head: Head
    metrics: tuple[Metric, ...]
    subjects: tuple[Subject, ...]
    ticks: Ticks
    scopes: Mapping[str, tuple[str, ...]]
    """By metric: what its rows are of."""
    events: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[tuple[int, dict[str, list[str]]]] = field(default_factory=list)


# -- writing ------------------------------------------------------------------


def _pack(content: object) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return zstandard.compress(text.encode("utf-8", "replace") + b"\n", LEVEL)


def _differences(values: Integers) -> list[int]:
    return [int(values[0]), *np.diff(values).tolist()] if len(values) else []


_DEFAULTS = {name: getattr(Metric("", "gauge", ""), name) for name in Metric.__dataclass_fields__}


def _metric_to_json(metric: Metric) -> dict[str, Any]:
    """What is not as it is by default; asdict would copy every field deeply."""
    found = {name: getattr(metric, name) for name in _DEFAULTS}
    return {name: value for name, value in found.items() if name == "kind" or value != _DEFAULTS[name]}


def _subject_to_json(subject: Subject) -> dict[str, Any]:
    labels = {name: value for name, value in zip(LABELS, subject.labels) if value is not None}
    return {"labels": labels, "details": subject.details}


def render_sidecar(sidecar: Sidecar) -> bytes:
    head = sidecar.head
    whole = (head.from_ms, head.to_ms)
    seen = {
        str(number): [subject.first_ms, subject.last_ms]
        for number, subject in enumerate(sidecar.subjects)
        if (subject.first_ms, subject.last_ms) != whole
    }
    ticks = sidecar.ticks
    story = {"seen": seen, "outcomes": sidecar.outcomes, "events": sidecar.events}
    clocks = {
        "ticks": [_differences(ticks.time_ms), _differences(ticks.mono_ns), _differences(ticks.run)],
        "runs": list(ticks.runs),
    }
    metrics = [
        {**_metric_to_json(metric), "scopes": list(sidecar.scopes.get(metric.name, ()))}
        for metric in sidecar.metrics
    ]
    series = [_subject_to_json(subject) for subject in sidecar.subjects]
    frames = [_pack(metrics), _pack(series), _pack(story), _pack(clocks)]
    facts = {**asdict(head), "sum": sum_to_json(head.sum), "sealed": True}
    first = {"format": FORMAT, "version": VERSION, **facts, "sizes": [len(frame) for frame in frames]}
    return seal(b"".join([_pack(first), *frames]))


# -- reading ------------------------------------------------------------------


def _unpack_head(data: bytes) -> tuple[dict[str, Any], int]:
    """The first frame, and where the second begins."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    try:
        if zstandard.frame_content_size(data) > PART_FLOOR_BYTES:
            raise ArchiveRefused("a sidecar whose head is too large")
        text = unpacker.decompress(data)
        if not unpacker.eof:
            raise ArchiveTruncated("the sidecar's head is cut short")
        head = json.loads(text)
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise ArchiveRefused("not a sidecar of ours") from error
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ArchiveRefused("not a sidecar of ours")
    if head["version"] > VERSION:
        raise ArchiveRefused(f"sidecar of version {head['version']}; this build reads up to {VERSION}")
    return head, len(data) - len(unpacker.unused_data)


def _head_from_json(content: Mapping[str, Any]) -> Head:
    fields = {name: content[name] for name in Head.__dataclass_fields__ if name != "sum"}
    replaces = tuple(content["replaces"])
    return Head(**{**fields, "replaces": replaces, "sum": sum_from_json(content.get("sum"))})


def _unpack(data: bytes) -> Any:
    try:
        text = _decompress(data)
        _check_brackets(text)
        return json.loads(text)
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise ArchiveTruncated("a part of the sidecar is cut short or damaged") from error


def _decompress(data: bytes) -> bytes:
    """Not more than a sidecar of this size can hold: what is prepared to unpack to gigabytes is refused."""
    most = min(PART_BYTES, max(PART_FLOOR_BYTES, PART_RATIO * len(data)))
    size = zstandard.frame_content_size(data)
    if size > most:
        raise ArchiveRefused(f"a part of {len(data)} bytes unpacks to {size}; accepted: up to {most}")
    # A frame that does not say its size is unpacked as far as it may go.
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=most if size < 0 else 0)


def _check_brackets(text: bytes) -> None:
    """A text of empty lists alone would be twenty times as large in memory."""
    brackets = text.count(b"[") + text.count(b"{")
    most = max(BRACKET_FLOOR_BYTES, len(text)) // BYTES_PER_BRACKET
    if brackets > most:
        raise ArchiveRefused(f"a part with {brackets} lists and objects; accepted: up to {most}")


# Enough for the sets that a day's files have; each is some KiB of text.
@lru_cache(maxsize=256)
def _metrics_from(data: bytes) -> tuple[Metric, ...]:
    return tuple(map(metric_from_json, _unpack(data)))


@lru_cache(maxsize=256)
def _scopes_from(data: bytes) -> dict[str, tuple[str, ...]]:
    return {row["name"]: tuple(row.get("scopes", ())) for row in _unpack(data)}


@lru_cache(maxsize=256)
def _series_from(data: bytes) -> tuple[tuple[tuple[str | None, ...], dict[str, str]], ...]:
    return tuple((tuple(row["labels"].get(name) for name in LABELS), row["details"]) for row in _unpack(data))


@dataclass(frozen=True, slots=True)
class SidecarStory:
    """The last part of a sidecar, parsed."""

    seen: Mapping[str, tuple[int, int]]
    """First and last sample by series number, where it is not the whole file."""
    events: list[dict[str, Any]]
    outcomes: list[tuple[int, dict[str, list[str]]]]


@dataclass
class OpenSidecar:
    """A sidecar in memory whose parts are parsed on first use, and once."""

    head: Head
    _parts: tuple[bytes, ...]

    def metrics(self) -> tuple[Metric, ...]:
        return _metrics_from(self._parts[0])

    def scopes(self) -> Mapping[str, tuple[str, ...]]:
        return _scopes_from(self._parts[0])

    def labels(self) -> tuple[tuple[tuple[str | None, ...], dict[str, str]], ...]:
        return _series_from(self._parts[1])

    @cached_property
    def story(self) -> SidecarStory:
        story = _unpack(self._parts[2])
        return SidecarStory(story["seen"], story["events"], list(map(tuple, story["outcomes"])))

    @cached_property
    def ticks(self) -> Ticks:
        # The last part in both versions.
        clocks = _unpack(self._parts[-1])
        time_ms, mono_ns, run = (np.cumsum(np.array(column, np.int64)) for column in clocks["ticks"])
        return Ticks(time_ms, mono_ns, run, tuple(clocks["runs"]))

    def whole(self) -> Sidecar:
        story = self.story
        subjects = []
        for number, (labels, details) in enumerate(self.labels()):
            first_ms, last_ms = story.seen.get(str(number), (self.head.from_ms, self.head.to_ms))
            subjects.append(Subject(labels, details, first_ms, last_ms))
        return Sidecar(
            self.head,
            self.metrics(),
            tuple(subjects),
            self.ticks,
            self.scopes(),
            story.events,
            story.outcomes,
        )


def parse_sidecar(given: bytes) -> OpenSidecar:
    """A single flipped bit is corrected; ArchiveDamaged where more than that is wrong."""
    unsealed = unseal(given)
    data = unsealed.data
    try:
        content, offset = _unpack_head(data)
        if content.get("sealed") and not unsealed.is_sealed:
            raise ArchiveTruncated("the sidecar's end is missing")
        parts = []
        for size in content["sizes"]:
            part = data[offset : offset + size]
            if len(part) < size:
                raise ArchiveTruncated("the sidecar's end is missing")
            parts.append(part)
            offset += size
        if len(parts) < PARTS_LEAST:
            raise ArchiveRefused("a sidecar with too few parts")
        return OpenSidecar(_head_from_json(content), tuple(parts))
    except (KeyError, TypeError, IndexError) as error:
        raise ArchiveRefused("a sidecar whose head lacks what version 1 has") from error


def read_sidecar(path: Path) -> OpenSidecar:
    """ArchiveRefused, with the name, when it is not one of ours or damaged."""
    try:
        return parse_sidecar(read_bounded(path, SIDECAR_BYTES))
    except ArchiveRefused as error:
        raise type(error)(f"{path.name}: {error}") from error


def read_bounded(path: Path, most: int) -> bytes:
    """A small file of ours; one that is not small is not ours."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ArchiveRefused(f"larger than {most} bytes")
    return data


# -- segments as ranges ---------------------------------------------------------


def merge_segments(many: Iterable[Mapping[str, Sequence[Sequence[int]]]]) -> dict[str, list[list[int]]]:
    """{run: [[first, last], ...]} of all, neighbours joined."""
    gathered: dict[str, list[tuple[int, int]]] = {}
    for one in many:
        for run, ranges in one.items():
            gathered.setdefault(run, []).extend((first, last) for first, last in ranges)
    merged: dict[str, list[list[int]]] = {}
    for run, ranges in sorted(gathered.items()):
        joined: list[list[int]] = []
        for first, last in sorted(ranges):
            if joined and first <= joined[-1][1] + 1:
                joined[-1][1] = max(joined[-1][1], last)
            else:
                joined.append([first, last])
        merged[run] = joined
    return merged


def has_segment(segments: Mapping[str, Sequence[Sequence[int]]], run: str, number: int) -> bool:
    return any(first <= number <= last for first, last in segments.get(run, ()))
