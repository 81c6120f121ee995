"""Lines of an archive as the series that studies take, and the memory limits of containers."""

from collections.abc import Sequence

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.read.files.catalog import SHORT_CHARACTERS, Catalog
from nodescope.read.query.engine import Engine, QueryLine
from nodescope.use.studies.series import Series

# A day at one sample a second; longer ranges are read as means of longer buckets.
POINTS = 90_000
# What a series must not reach, by the plain name that holds it.
LIMITS = {"memory": "memory_limit", "memory_working_set": "memory_limit", "memory_anon": "memory_limit"}


def read_limits(
    engine: Engine,
    catalog: Catalog,
    metric: str,
    containers: Sequence[str] | None,
    from_ms: int | None,
    to_ms: int | None,
) -> dict[str, float]:
    """The newest limit of each container; one without a limit, or not read, has none here."""
    if metric not in LIMITS:
        return {}
    try:
        answer = engine.query(catalog, LIMITS[metric], containers, from_ms, to_ms, POINTS)
    except RequestRejected:
        return {}
    limits = {}
    for line in answer.lines:
        known = line.points.maximum[np.isfinite(line.points.maximum)]
        if len(known):
            limits[name_line(line)] = float(known[-1])
    return limits


def name_line(line: QueryLine) -> str:
    """A person's name for a line: pod/container, else the shortened id, else what it is."""
    pod, container = line.subject.label("l_pod_name"), line.subject.label("l_container_name")
    device = line.subject.label("l_device") or line.subject.label("l_cpu") or line.subject.label("l_pid")
    named = "/".join(part for part in (pod, container) if part)
    short = (line.subject.label("l_container_id") or "")[:SHORT_CHARACTERS]
    return named or short or device or line.subject.label("l_node_name") or "node"


def make_series(line: QueryLine, metric: str, unit: str, limit: float | None) -> Series:
    return Series(
        line.points.time_ms / 1000.0,
        line.points.mean,
        unit=unit,
        limit=limit,
        metric=metric,
        container=name_line(line),
        node=line.subject.label("l_node_name"),
    )
