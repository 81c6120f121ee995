"""What containers use of GPUs over a span: the sum over their processes, which the driver names."""

from collections.abc import Sequence

from nodescope.base.text import clean_name
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life
from nodescope.use.answers.levels import Levels, MetricLevel, derive_level
from nodescope.use.answers.timeseries import AnswerSeries
from nodescope.use.mcp.nodes.backend import Backend

BY_PROCESS = {"gpu": "gpu.process.utilization", "gpu_memory": "gpu.process.memory"}
"""What is compared of a container, and the metric of processes that it is the sum of."""
UNITS = {"gpu": "GPUs", "gpu_memory": "bytes"}
# Drivers count a process' time in percent of one GPU.
SCALES = {"gpu": 0.01, "gpu_memory": 1.0}


def read_gpu_levels(backend: Backend, metric: str, span: TimeRange, lives: Sequence[Life]) -> Levels:
    """Of those that had a process on a GPU; the others have no row."""
    series = backend.read_timeseries(BY_PROCESS[metric], span, None).series
    found = (
        (life, [level for one in series if is_of(one, life) and (level := derive_level(one))])
        for life in lives
    )
    rows = tuple(add_processes(life.id, levels, SCALES[metric]) for life, levels in found if levels)
    return Levels(UNITS[metric], rows)


def is_of(series: AnswerSeries, life: Life) -> bool:
    """By the names that the agent found through the process' cgroup."""
    named = (series.labels.get(key, "") for key in ("namespace", "pod_name", "container_name"))
    return bool(life.pod) and tuple(map(clean_name, named)) == (life.namespace, life.pod, life.container_name)


def add_processes(its_id: str, levels: Sequence[MetricLevel], scale: float) -> MetricLevel:
    mean, least, most = (
        scale * sum(getattr(one, name) for one in levels) for name in ("mean", "least", "most")
    )
    return MetricLevel(its_id, mean, least, most, max(one.samples for one in levels))
