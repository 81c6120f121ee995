"""Writes a settled node as an agent and a consolidator leave it: Parquet with sidecars, rollups, a session."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.stories.generate.cluster import Life, digest
from tests.stories.generate.machine import StoryNode
from tests.stories.generate.metrics import Table, list_tables

from nodescope.base.block import Integers
from nodescope.base.frame import EXIT, OOM_EXIT, START
from nodescope.keep.demo.archive import ROTATION_MS, Span, cut_files
from nodescope.keep.disk import Disk
from nodescope.keep.file_writer import begin_head, write_file
from nodescope.keep.folder import (
    PARQUET,
    SIDECAR,
    DataFolder,
    clean_identifier,
    parse_file,
    render_day,
    render_stamp,
)
from nodescope.keep.label_columns import Subject, describe_entity
from nodescope.keep.parquet import SampleRows
from nodescope.keep.rollup import renew_rollups
from nodescope.keep.session import Session, render_time, write_session
from nodescope.keep.sidecar import Sidecar, Ticks

BOOTED_SECONDS = 30 * 86_400
# Real ticks are a little late; more would make the truth of a rate uncertain.
LATE_MS = 3
SOURCES = ("container", "cpu", "memory", "vmstat", "pressure", "disk", "network", "pod", "filesystem")


@dataclass(slots=True)
class Clocks:
    """Every second of the node: when it was sampled, whether it was, and by which run of the agent."""

    time_ms: Integers
    mono_ns: Integers
    run: Integers
    runs: tuple[str, ...]
    is_seen: Any

    def cut(self, from_ms: int, to_ms: int) -> Ticks:
        inside = self.is_seen & (self.time_ms >= from_ms) & (self.time_ms < to_ms)
        return Ticks(self.time_ms[inside], self.mono_ns[inside], self.run[inside], self.runs)


def build_clocks(node: StoryNode) -> Clocks:
    second = np.arange(node.seconds, dtype=np.int64)
    late = node.random.integers(0, LATE_MS, node.seconds)
    run = np.zeros(node.seconds, np.int64)
    for _, end in node.gaps:
        run[end:] += 1
    runs = tuple(digest("run", node.name, node.seed, number)[:12] for number in range(len(node.gaps) + 1))
    mono = (second + BOOTED_SECONDS) * 1_000_000_000 + late * 1_000_000
    return Clocks(node.start_ms + second * 1000 + late, mono, run, runs, node.seen())


def write_archive(folder: Path, node: StoryNode, *, is_short: bool = False) -> None:
    """
    Into a folder of its own.

    Short: without rollups, which cost as much as the samples, and with few
    fresh files, for a test that has seconds.
    """
    node.settle()
    disk = Disk()
    data = DataFolder(folder)
    disk.make_folder(folder)
    clocks = build_clocks(node)
    tables = [(describe_entity(table.entity, node.name, 0), table) for table in list_tables(node)]
    tables.sort(key=lambda row: row[0].identity)
    for run, name in enumerate(clocks.runs):
        first = int(clocks.time_ms[clocks.run == run][0])
        write_session(disk, data, session_of(node, name, first))
    spans = list(cut_files(node.start_ms, node.end_ms + node.ahead_ms))
    for number, span in enumerate(join_fresh(spans) if is_short else spans):
        write_part(disk, data, node, clocks, tables, span, number + 1)
    for partition in () if is_short else data.partitions():
        renew_rollups(disk, data, partition)
    date_files(folder, node)


def join_fresh(spans: Sequence[Span]) -> Iterator[Span]:
    """All but the newest file, merged as a consolidator does within the hour."""
    fresh = [span for span in spans if span[2] == "metrics"]
    yield from (span for span in spans if span[2] == "consolidated")
    if len(fresh) > 1:
        yield fresh[0][0], fresh[-1][0], "consolidated"
    yield from fresh[-1:]


def session_of(node: StoryNode, run: str, first_ms: int) -> Session:
    return Session(
        run,
        clean_identifier(node.name),
        render_time(first_ms * 1_000_000),
        node.name,
        "exam",
        1000,
        ROTATION_MS / 1000,
        "0",
        {},
    )


def write_part(
    disk: Disk,
    data: DataFolder,
    node: StoryNode,
    clocks: Clocks,
    tables: Sequence[tuple[Subject, Table]],
    span: Span,
    number: int,
) -> None:
    from_ms, to_ms, kind = span
    ticks = clocks.cut(from_ms, to_ms)
    if not len(ticks.time_ms):
        return
    partition = data.partition(render_day(from_ms), clean_identifier(node.name))
    disk.make_folder(partition)
    first, last = int(ticks.time_ms[0]), int(ticks.time_ms[-1])
    stem = f"{kind}-{render_stamp(first)}" + (f"-{render_stamp(last)}" if kind == "consolidated" else "")
    seconds = slice((from_ms - node.start_ms) // 1000, (to_ms - node.start_ms) // 1000)
    # One segment of the log is one file here; a run counts its own.
    segments = {clocks.runs[run]: [[number, number]] for run in sorted(set(ticks.run.tolist()))}
    head = begin_head(ticks, node.name, partition, segments)
    parts, subjects = gather(clocks, tables, seconds)
    states = {name: ["ok", ""] for name in SOURCES}
    states["kubernetes"] = ["ok", ""] if node.has_api else ["absent", "no service account in this pod"]
    events = [event for event in list_events(node, clocks) if from_ms <= event["at_ms"] < to_ms]
    sidecar = Sidecar(head, (), tuple(subjects), ticks, {}, events, [(first, states)])
    write_file(disk, partition / f"{stem}{PARQUET}", sidecar, parts)


def gather(
    clocks: Clocks, tables: Sequence[tuple[Subject, Table]], seconds: slice
) -> tuple[Iterator[SampleRows], list[Subject]]:
    """Rows metric by metric, subjects in order; the subjects that have any."""
    present: dict[tuple[str, ...], int] = {}
    subjects: list[Subject] = []
    by_metric: dict[str, list[tuple[int, Table, int, int]]] = {}
    for subject, table in tables:
        start, end = max(seconds.start, table.start), min(seconds.stop, table.end)
        if start >= end:
            continue
        if subject.identity not in present:
            present[subject.identity] = len(subjects)
            subjects.append(Subject(subject.labels, dict(subject.details)))
        for name in table.values:
            by_metric.setdefault(name, []).append((present[subject.identity], table, start, end))
    return join_rows(clocks, by_metric), subjects


def join_rows(
    clocks: Clocks, by_metric: dict[str, list[tuple[int, Table, int, int]]]
) -> Iterator[SampleRows]:
    shared: dict[tuple[int, ...], tuple[Integers, Integers]] = {}
    seen = clocks.is_seen
    for name, many in sorted(by_metric.items()):
        key = tuple(place for place, *_ in many)
        inside = [seen[start:end] for _, _, start, end in many]
        if key not in shared:
            rank = [np.full(int(there.sum()), place) for (place, *_), there in zip(many, inside)]
            times = [clocks.time_ms[start:end][there] for (_, _, start, end), there in zip(many, inside)]
            shared[key] = np.concatenate(rank).astype(np.int64), np.concatenate(times)
        values = [
            table.values[name][1][start - table.start : end - table.start][there]
            for (_, table, start, end), there in zip(many, inside)
        ]
        rank_all, time_all = shared[key]
        yield SampleRows(many[0][1].values[name][0], rank_all, time_all, np.concatenate(values))


def list_events(node: StoryNode, clocks: Clocks) -> Iterator[dict[str, Any]]:
    """As the container source notes them; at an agent's start every container is new to it."""
    for life in node.lives:
        if life.end > life.start and clocks.is_seen[life.start : life.end].any():
            yield from events_of(node, clocks, life)


def events_of(node: StoryNode, clocks: Clocks, life: Life) -> Iterator[dict[str, Any]]:
    entity = node.describe(life)
    labels = {**dict(entity.labels), **dict(entity.details)}
    base = {"scope": "container", "ids": list(entity.ids), "labels": labels}
    for run in range(len(clocks.runs)):
        there = np.flatnonzero(
            clocks.is_seen[life.start : life.end] & (clocks.run[life.start : life.end] == run)
        )
        if not len(there):
            continue
        first = life.start + int(there[0])
        yield {"kind": START, "at_ms": int(clocks.time_ms[first]), "facts": {}, **base}
    if life.end < node.seconds and clocks.is_seen[life.end - 1] and clocks.is_seen[life.end]:
        kind = OOM_EXIT if life.is_killed else EXIT
        yield {"kind": kind, "at_ms": int(clocks.time_ms[life.end]), "facts": facts_of(node, life), **base}


def facts_of(node: StoryNode, life: Life) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "cpu_seconds": float(life.used["cpu"].sum()),
        "memory_bytes": float(life.used["memory"][-1]),
        "oom_kills": float(life.is_killed),
        "memory_peak_bytes": float(life.used["memory"].max()),
        "lifetime_seconds": float(life.end - life.start),
        "started_at": node.at(life.start),
        "last_look": "last tick",
    }
    if np.isfinite(life.workload.memory_limit):
        facts["memory_limit_bytes"] = life.workload.memory_limit
    return facts


def date_files(folder: Path, node: StoryNode) -> None:
    """A file is as old as its last sample by the right clock, as it would be on a disk."""
    for path in folder.rglob(f"*{PARQUET}"):
        file = parse_file(path)
        if file is None:
            continue
        own_ms = file.to_ms if file.to_ms is not None else file.from_ms + ROTATION_MS
        at = min(own_ms, node.end_ms + node.ahead_ms) / 1000 - node.ahead_ms / 1000
        for one in (path, path.with_suffix(SIDECAR)):
            if one.exists():
                os.utime(one, (at, at))
    for path in folder.glob("session.json"):
        os.utime(path, (node.end_ms / 1000, node.end_ms / 1000))
