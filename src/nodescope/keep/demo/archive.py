"""The demo's files, written as a collector and a consolidator would have left them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from nodescope.base.frame import EXIT, OOM_EXIT, START
from nodescope.keep.demo.plan import Planter, plan_node
from nodescope.keep.demo.samples import DemoColumn, run_of, sample_file
from nodescope.keep.demo.story import DemoNode, DemoRequest, span_of
from nodescope.keep.disk import Disk
from nodescope.keep.file_writer import begin_head, write_file
from nodescope.keep.folder import (
    MS_PER_HOUR,
    PARQUET,
    DataFolder,
    clean_identifier,
    render_day,
    render_stamp,
)
from nodescope.keep.label_columns import Identity
from nodescope.keep.merge import join_series
from nodescope.keep.parquet import SampleRows
from nodescope.keep.rollup import renew_rollups
from nodescope.keep.session import Session, render_time, write_session
from nodescope.keep.sidecar import Sidecar

ROTATION_MS = 90_000
# The last stretch is left as a collector leaves it: small files.
FRESH_MS = 900_000

Span = tuple[int, int, str]
"""From, to, kind of file."""


def cut_files(start_ms: int, end_ms: int) -> Iterator[Span]:
    """Hours as a consolidator leaves them, the last quarter as a collector does."""
    fresh_ms = max(start_ms, end_ms - FRESH_MS)
    at_ms = start_ms
    while at_ms < fresh_ms:
        next_ms = min(fresh_ms, (at_ms // MS_PER_HOUR + 1) * MS_PER_HOUR)
        yield at_ms, next_ms, "consolidated"
        at_ms = next_ms
    while at_ms < end_ms:
        midnight_ms = (at_ms // (24 * MS_PER_HOUR) + 1) * 24 * MS_PER_HOUR
        next_ms = min(end_ms, at_ms + ROTATION_MS, midnight_ms)
        yield at_ms, next_ms, "metrics"
        at_ms = next_ms


def write_demo_file(
    disk: Disk, folder: DataFolder, request: DemoRequest, node: DemoNode, span: Span, number: int
) -> int:
    from_ms, to_ms, kind = span
    page = sample_file(request, node, from_ms, to_ms)
    partition = folder.partition(render_day(from_ms), clean_identifier(request.node))
    disk.make_folder(partition)
    ticks = page.ticks()
    first, last = int(ticks.time_ms[0]), int(ticks.time_ms[-1])
    stem = f"{kind}-{render_stamp(first)}" + (f"-{render_stamp(last)}" if kind == "consolidated" else "")
    subjects = dict(sorted(page.subjects.items()))
    head = begin_head(ticks, request.node, partition, {run_of(request): [[number, number]]})
    events, outcomes = list_events(request, node, from_ms, to_ms), [(first, {"container": ["ok", ""]})]
    sidecar = Sidecar(head, (), tuple(subjects.values()), ticks, {}, events, outcomes)
    parts = gather_columns(page.columns, {identity: place for place, identity in enumerate(subjects)})
    rows, _ = write_file(disk, partition / f"{stem}{PARQUET}", sidecar, parts)
    return rows


def gather_columns(columns: Sequence[DemoColumn], ranks: Mapping[Identity, int]) -> Iterator[SampleRows]:
    """Metric by metric, subjects in order: as the archive is sorted."""
    in_order = sorted(columns, key=lambda column: (column.metric.name, column.identity))
    for _, group in groupby(in_order, lambda column: column.metric.name):
        many = list(group)
        yield join_series(many[0].metric, many, ranks)


def list_events(request: DemoRequest, node: DemoNode, from_ms: int, to_ms: int) -> list[dict[str, Any]]:
    """Starts and ends, as the container source writes them."""
    events = []
    for life in node.lives:
        entity = life.entity()
        labels = {**dict(entity.labels), **dict(entity.details)}
        base = {"scope": "container", "ids": list(entity.ids), "labels": labels}
        if from_ms <= life.start_ms < to_ms:
            events.append({"kind": START, "at_ms": life.start_ms, "facts": {}, **base})
        if from_ms <= life.end_ms < to_ms and life.end_ms < request.end_ms:
            facts = {
                "lifetime_seconds": (life.end_ms - life.start_ms) / 1000,
                "memory_limit_bytes": life.story.limit_bytes,
                "oom_kills": float(life.ends_in_oom),
            }
            kind = OOM_EXIT if life.ends_in_oom else EXIT
            events.append({"kind": kind, "at_ms": life.end_ms, "facts": facts, **base})
    return sorted(events, key=lambda event: str(event["at_ms"]))


@dataclass(frozen=True, slots=True)
class WrittenNode:
    """What was written."""

    rows: int
    files: int
    truth: list[dict[str, Any]]
    most: dict[str, Any]
    """The container with the highest mean memory while it ran: not planted, but true."""


def write_node(
    request: DemoRequest,
    version: str,
    progress: Callable[[float], None],
    disk: Disk | None = None,
    planters: Sequence[Planter] | None = None,
    cut: Callable[[int, int], Iterator[Span]] = cut_files,
) -> WrittenNode:
    """One node's archive into its folder; progress gets the share that is done."""
    disk = disk or Disk()
    folder = DataFolder(request.data)
    disk.make_folder(folder.path)
    node = plan_node(request, planters)
    start_ms = request.start_ms
    session = Session(
        run_of(request),
        clean_identifier(request.node),
        render_time(start_ms * 1_000_000),
        request.node,
        "demo",
        1000,
        ROTATION_MS / 1000,
        version,
        {"demo": "true"},
    )
    write_session(disk, folder, session)
    rows = 0
    spans = list(cut(start_ms, request.end_ms))
    for number, span in enumerate(spans):
        rows += write_demo_file(disk, folder, request, node, span, number + 1)
        progress((span[1] - start_ms) / (request.end_ms - start_ms))
    return WrittenNode(rows, len(spans), node.truth, derive_most(node))


def add_minutes(folder: DataFolder, disk: Disk | None = None) -> int:
    """The rollups of its hours, which a consolidator writes in the same pass as the hours; how many."""
    return sum(renew_rollups(disk or Disk(), folder, partition) for partition in folder.partitions())


def derive_most(node: DemoNode) -> dict[str, Any]:
    means = {names: total / seconds for names, (total, seconds) in node.used.items()}
    names, mean = max(means.items(), key=itemgetter(1))
    return {"metric": "memory", **dict(zip(("namespace", "pod", "container"), names)), "mean": mean}


def render_truth(
    request: DemoRequest, planted: Sequence[Mapping[str, Any]], most: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    content = {
        "seed": request.seed,
        **span_of(request.start_ms, request.end_ms),
        "containers": request.containers,
        "planted": list(planted),
        "most": list(most),
    }
    return (json.dumps(content, indent=1) + "\n").encode()
