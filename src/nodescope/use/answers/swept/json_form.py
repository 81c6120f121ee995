"""Changes, sums of groups and heat maps as the viewer's API writes them."""

from nodescope.read.files.catalog import SHORT_CHARACTERS
from nodescope.use.answers.swept.changes import ContainerShift, ShiftList
from nodescope.use.answers.swept.groups import GroupCurves, SummedGroup
from nodescope.use.answers.swept.heat import HeatMap, HeatRow
from nodescope.use.answers.wire import Json, number, numbers

# Of a share: a pixel's colour needs no more.
SHARE_DECIMALS = 3


def render_shifts(found: ShiftList) -> Json:
    return {
        "sentence": found.sentence,
        "from": found.span.from_ms / 1000,
        "to": found.span.to_ms / 1000,
        "before_from": found.before.from_ms / 1000,
        "bucket_seconds": found.step_ms / 1000,
        "containers": found.containers,
        "pairs": found.pairs,
        "unseen": list(found.unseen),
        "changes": [render_shift(one) for one in found.rows],
    }


def render_shift(one: ContainerShift) -> Json:
    half = len(one.curve) // 2
    return {
        "container": one.id[:SHORT_CHARACTERS] if ":" not in one.id else one.id,
        "name": one.name,
        "namespace": one.namespace or None,
        "workload": one.workload,
        "node": one.node,
        "metric": one.metric,
        "unit": one.unit,
        "before": number(one.before),
        "after": number(one.after),
        "before_curve": numbers(one.curve[:half]),
        "after_curve": numbers(one.curve[half:]),
        "sentence": one.sentence,
    }


def render_groups(found: GroupCurves) -> Json:
    return {
        "metric": found.metric,
        "unit": found.unit,
        "join": found.join,
        "group": found.kind,
        "bucket_seconds": found.step_ms / 1000,
        "time": (found.time_ms / 1000).tolist(),
        "total": found.total,
        "groups": [render_group(one) for one in found.groups],
    }


def render_group(one: SummedGroup) -> Json:
    return {
        "key": one.key,
        "name": one.name,
        "node": one.node,
        "containers": one.containers,
        "mean": numbers(one.mean),
    }


def render_heat(found: HeatMap) -> Json:
    return {
        "metric": found.metric,
        "bucket_seconds": found.step_ms / 1000,
        "time": (found.time_ms / 1000).tolist(),
        "total": found.total,
        "rows": [render_row(one) for one in found.rows],
    }


def render_row(one: HeatRow) -> Json:
    return {
        "id": one.id,
        "name": one.name,
        "namespace": one.namespace or None,
        "node": one.node,
        "of": one.of,
        "whole": number(one.whole),
        "kills": one.kills,
        "share": numbers(one.share.round(SHARE_DECIMALS)),
    }
