"""The demo's files, written as a collector and a consolidator would have left them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nodescope.base.frame import EXIT, OOM_EXIT, START
from nodescope.keep.convert import SeriesSpans, publish
from nodescope.keep.demo.plan import Planter, plan_node
from nodescope.keep.demo.samples import DemoColumn, run_of, sample_file
from nodescope.keep.demo.story import DemoNode, DemoRequest
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import (
    MS_PER_DAY,
    MS_PER_HOUR,
    PARQUET,
    DataFolder,
    clean_identifier,
    render_day,
    render_stamp,
)
from nodescope.keep.label_columns import Identity, Subject
from nodescope.keep.parquet import ArchiveWriter, SampleRows
from nodescope.keep.session import Session, render_time, write_session
from nodescope.keep.sidecar import Head, Sidecar, render_sidecar

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


def cut_days(start_ms: int, end_ms: int) -> Iterator[Span]:
    """The same when all of it is over and merged: one file a day."""
    at_ms = start_ms
    while at_ms < end_ms:
        next_ms = min(end_ms, (at_ms // MS_PER_DAY + 1) * MS_PER_DAY)
        yield at_ms, next_ms, "consolidated"
        at_ms = next_ms


def write_file(
    disk: Disk, folder: DataFolder, wish: DemoRequest, node: DemoNode, span: Span, number: int
) -> int:
    from_ms, to_ms, kind = span
    page = sample_file(wish, node, from_ms, to_ms)
    identifier = clean_identifier(wish.node)
    partition = folder.partition(render_day(from_ms), identifier)
    disk.make_folder(partition)
    ticks = page.ticks()
    first, last = int(ticks.time_ms[0]), int(ticks.time_ms[-1])
    stem = f"{kind}-{render_stamp(first)}" + (f"-{render_stamp(last)}" if kind == "consolidated" else "")
    path = partition / f"{stem}{PARQUET}"
    temporary = path.with_name(path.name + TEMPORARY)
    subjects = dict(sorted(page.subjects.items()))
    by_metric: dict[str, list[DemoColumn]] = {}
    for column in sorted(page.columns, key=lambda column: (column.metric.name, column.identity)):
        by_metric.setdefault(column.metric.name, []).append(column)
    segments = {run_of(wish): [[number, number]]}
    rows = write_rows(disk, temporary, subjects, by_metric, segments)
    sidecar = Sidecar(
        Head(rows, first, last, wish.node, identifier, segments),
        tuple(group[0].metric for group in by_metric.values()),
        tuple(subjects.values()),
        ticks,
        {
            name: tuple(sorted({subjects[column.identity].label("l_scope") or "" for column in group}))
            for name, group in by_metric.items()
        },
        tell_events(wish, node, from_ms, to_ms),
        [(first, {"container": ["ok", ""]})],
    )
    publish(disk, temporary, path, render_sidecar(sidecar))
    return rows


def write_rows(
    disk: Disk,
    path: Path,
    subjects: dict[Identity, Subject],
    by_metric: dict[str, list[DemoColumn]],
    segments: dict[str, list[list[int]]],
) -> int:
    """Metric by metric, subjects in order: as the archive is sorted. Each subject learns when it was seen."""
    listed = list(subjects.values())
    ranks = {identity: place for place, identity in enumerate(subjects)}
    seen = SeriesSpans(len(listed))
    with disk.create(path) as output:
        with ArchiveWriter(output, listed, {"segments": segments, "replaces": []}) as writer:
            for name, group in by_metric.items():
                rank = np.repeat(
                    [ranks[column.identity] for column in group], [len(column.time_ms) for column in group]
                )
                time_ms = np.concatenate([column.time_ms for column in group])
                seen.note(rank, time_ms)
                value = np.concatenate([column.value for column in group])
                writer.add(SampleRows(name, group[0].metric.kind, rank, time_ms, value))
        output.sync()
    seen.mark(listed)
    return writer.rows


def tell_events(wish: DemoRequest, node: DemoNode, from_ms: int, to_ms: int) -> list[dict[str, Any]]:
    """Births and obituaries, as the container source tells them."""
    events = []
    for life in node.lives:
        entity = life.entity()
        labels = {**dict(entity.labels), **dict(entity.details)}
        base = {"scope": "container", "ids": list(entity.ids), "labels": labels}
        if from_ms <= life.start_ms < to_ms:
            events.append({"kind": START, "at_ms": life.start_ms, "facts": {}, **base})
        if from_ms <= life.end_ms < to_ms and life.end_ms < wish.end_ms:
            facts = {
                "lifetime_seconds": (life.end_ms - life.start_ms) / 1000,
                "memory_limit_bytes": life.story.limit_bytes,
                "oom_kills": float(life.ends_in_oom),
            }
            kind = OOM_EXIT if life.ends_in_oom else EXIT
            events.append({"kind": kind, "at_ms": life.end_ms, "facts": facts, **base})
    return sorted(events, key=lambda event: str(event["at_ms"]))


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    rows: int
    files: int
    truth: list[dict[str, Any]]
    most: dict[str, Any]
    """Who used the most memory on average while it was there: not planted, but true."""


def write_node(
    wish: DemoRequest,
    version: str,
    progress: Callable[[float], None],
    disk: Disk | None = None,
    planters: Sequence[Planter] | None = None,
    cut: Callable[[int, int], Iterator[Span]] = cut_files,
) -> Made:
    """One node's archive into its folder; progress is told as a share of the whole."""
    disk = disk or Disk()
    folder = DataFolder(wish.data)
    disk.make_folder(folder.path)
    node = plan_node(wish, planters)
    start_ms = wish.start_ms
    session = Session(
        run_of(wish),
        clean_identifier(wish.node),
        render_time(start_ms * 1_000_000),
        wish.node,
        "demo",
        1000,
        ROTATION_MS / 1000,
        version,
        {"demo": "true"},
    )
    write_session(disk, folder, session)
    rows = 0
    spans = list(cut(start_ms, wish.end_ms))
    for number, span in enumerate(spans):
        rows += write_file(disk, folder, wish, node, span, number + 1)
        progress((span[1] - start_ms) / (wish.end_ms - start_ms))
    return Made(rows, len(spans), node.truth, tell_most(node))


def tell_most(node: DemoNode) -> dict[str, Any]:
    means = {names: total / seconds for names, (total, seconds) in node.used.items()}
    namespace, pod, container = max(means, key=lambda names: means[names])
    return {
        "metric": "memory",
        "namespace": namespace,
        "pod": pod,
        "container": container,
        "mean": means[namespace, pod, container],
    }


def render_truth(
    wish: DemoRequest, planted: Sequence[Mapping[str, Any]], most: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    start_ms = wish.start_ms
    content = {
        "seed": wish.seed,
        "from": start_ms / 1000,
        "to": wish.end_ms / 1000,
        "containers": wish.containers,
        "planted": list(planted),
        "most": list(most),
    }
    return (json.dumps(content, indent=1) + "\n").encode()
