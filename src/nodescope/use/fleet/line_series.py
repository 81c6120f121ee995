"""Lines of an archive as the series that studies take."""

from nodescope.read.files.catalog import SHORT_CHARACTERS
from nodescope.read.query.engine import QueryLine
from nodescope.use.studies.series import Series

# A day at one sample a second; longer ranges are read as means of longer buckets.
POINTS = 90_000


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
