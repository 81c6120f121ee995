"""The cluster's answers as JSON; the shapes are in viewer/many/cluster_shapes.py."""

import numpy as np

from nodescope.use.answers.axis import Floats
from nodescope.use.answers.wire import Json, number, seconds
from nodescope.use.cluster.comparison import ComparedSide, LevelDifference, SideComparison
from nodescope.use.cluster.measure import MEASURES, Measure
from nodescope.use.cluster.spread import NODES_SHOWN, WorkloadSpread
from nodescope.use.cluster.wall import Wall, WallRow


def render_cells(values: Floats) -> list[float | None]:
    """Three decimals: a thousandth of a share is no shade."""
    finite = np.isfinite(values)
    rounded = np.round(np.where(finite, values, 0.0), 3)
    return [value if good else None for value, good in zip(rounded.tolist(), finite.tolist())]


def render_level(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def render_measure(one: Measure) -> Json:
    return {
        "id": one.id,
        "title": one.title,
        "unit": one.unit,
        "full": one.full,
        "harm": one.harm,
        "help": one.help,
    }


def render_wall(wall: Wall) -> Json:
    return {
        "sentence": wall.sentence,
        "measure": wall.measure.id,
        "measures": [render_measure(one) for one in MEASURES.values()],
        "from": seconds(wall.span.from_ms),
        "to": seconds(wall.span.to_ms),
        "start": seconds(wall.rows[0].drawn.cells.from_ms if wall.rows else wall.span.from_ms),
        "step": wall.step_ms / 1000,
        "columns": wall.columns,
        "live": wall.is_live,
        "newest": seconds(wall.newest_ms or None),
        "first": seconds(wall.first_ms or None),
        "asking": wall.asking,
        "trouble": wall.trouble,
        "nodes": [render_row(row) for row in wall.rows],
    }


def render_row(row: WallRow) -> Json:
    cells = row.drawn.node
    return {
        "node": row.node,
        "state": row.state,
        "reason": row.reason,
        "hurt": row.harm.is_hurt,
        "why": row.harm.sentence,
        "container": row.harm.container,
        "newest": seconds(cells.newest_ms or None),
        "answered": row.answered_ns / 1e9 if row.answered_ns else None,
        "containers": cells.containers if row.answered_ns else None,
        "cores": cells.cores,
        "memory_bytes": cells.memory_bytes,
        "mean": {key: render_level(value) for key, value in row.means.items()},
        "most": {key: render_level(value) for key, value in row.mosts.items()},
        # Of a node that has never answered nobody knows whether something was killed there.
        "restarts": row.restarts if row.answered_ns else None,
        "kills": row.kills if row.answered_ns else None,
        "findings": row.findings if row.answered_ns else None,
        "cells": render_cells(row.cells),
    }


def render_spread(one: WorkloadSpread) -> Json:
    return {
        "name": one.name,
        "namespace": one.namespace,
        "kind": one.kind,
        "pods": one.pods,
        "restarts": one.restarts,
        "nodes": len(one.on_nodes),
        "least": number(one.least),
        "median": number(one.middle),
        "most": number(one.most),
        "total": number(one.total),
        "sentence": one.sentence,
        "on": [{"node": node, "used": number(used)} for node, used in one.on_nodes[:NODES_SHOWN]],
    }


def render_comparison(found: SideComparison) -> Json:
    return {
        "sentence": found.sentence,
        "left": render_side(found.left),
        "right": render_side(found.right),
        "measures": [render_difference(row) for row in found.measures],
        "kind": found.kind,
        "rows": [render_difference(row) for row in found.rows],
        "asking": found.asking,
    }


def render_side(side: ComparedSide) -> Json:
    return {"node": side.node, "from": seconds(side.span.from_ms), "to": seconds(side.span.to_ms)}


def render_difference(row: LevelDifference) -> Json:
    return {"what": row.what, "unit": row.unit, "left": number(row.left), "right": number(row.right)}
