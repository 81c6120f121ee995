"""What a container must not reach: the newest limit of each, where the metric has one."""

from collections.abc import Mapping, Sequence

import numpy as np

from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import PERIOD, QUOTA
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.snapshots import ServedNode, View

# By the plain name of a metric, the plain name of its limit.
LIMITS = {
    "memory": "memory_limit",
    "memory_working_set": "memory_limit",
    "memory_anon": "memory_limit",
    "memory_pss": "memory_limit",
}
CPU_UNITS = {"cpu": 1.0, "cpu_user": 1.0, "cpu_system": 1.0, "cpu_millicores": 1000.0}


def read_limits(
    view: View, metric: str, span: TimeRange, ends_ms: Mapping[tuple[str, str], int | None]
) -> dict[str, float]:
    """By id, for each container (its node, its id) and the time of its last sample."""
    limits: dict[str, float] = {}
    for node in view.nodes:
        ids = [its_id for name, its_id in ends_ms if name == node.name]
        if not ids:
            continue
        known = [end for (name, _), end in ends_ms.items() if name == node.name and end is not None]
        # From a minute before the first of them ended: limits are read every tick, or every 30 s.
        looked = TimeRange(max(span.from_ms, min([*known, span.to_ms]) - 60_000), span.to_ms)
        if metric in LIMITS:
            limits.update(read_newest(view, node, LIMITS[metric], ids, looked))
        elif metric in CPU_UNITS:
            quota = read_newest(view, node, first_known(node, list_raw_names(QUOTA)), ids, looked)
            period = read_newest(view, node, first_known(node, list_raw_names(PERIOD)), ids, looked)
            factor = CPU_UNITS[metric]
            limits.update(
                {key: factor * value / period[key] for key, value in quota.items() if period.get(key)}
            )
    return {key: value for key, value in limits.items() if value > 0}


def first_known(node: ServedNode, names: Sequence[str]) -> str:
    return next((name for name in names if name in node.metrics), names[0])


def read_newest(
    view: View, node: ServedNode, metric: str, ids: Sequence[str], span: TimeRange
) -> dict[str, float]:
    try:
        answer = view.query(node, metric, ids, span, 1, "off")
    except RequestRejected:
        return {}
    found = {}
    for line in answer.lines:
        good = line.points.maximum[np.isfinite(line.points.maximum)]
        if len(good):
            found[line.subject.label("l_container_id") or ""] = float(good[-1])
    return found
