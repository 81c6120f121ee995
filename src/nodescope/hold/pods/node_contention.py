"""The node's CPU pressure without what quotas of its containers make of it."""

import numpy as np

from nodescope.base.block import Floats
from nodescope.hold.feature import FEATURES
from nodescope.hold.pods.contention import derive_contention
from nodescope.hold.pods.grid import TableGrid
from nodescope.hold.pods.pod_window import PodLook
from nodescope.hold.pods.spread import WindowSpread, spread_columns

# Where the node's own pressure is read.
(WAITED,) = next(feature for feature in FEATURES if feature.name == "cpu_pressure").ways


def take_node_contention(look: PodLook) -> WindowSpread | None:
    """The share of time in which some task waited for a CPU that others had; None where it was not measured."""
    grid = look.take(WAITED.table)
    name = WAITED.top[0][0]
    if grid is None or len(grid.moments) < 2 or name not in grid.table.columns:
        return None
    column = grid.table.columns[name]
    elapsed = grid.elapsed_seconds()
    shares = np.minimum(grid.growth(column, grid.table.metrics[column])[:, 0] / elapsed, 1.0)
    rest = derive_contention(shares, join_throttled(look.throttled, grid))
    return spread_columns(rest[:, None], elapsed)[0]


def join_throttled(throttled: tuple[TableGrid, Floats] | None, grid: TableGrid) -> Floats:
    """By interval of the node: the share of time in which any container was held back, each by itself."""
    if throttled is None:
        return np.zeros(len(grid.moments) - 1)
    anybody = 1.0 - np.prod(1.0 - np.nan_to_num(throttled[1]), axis=1)
    held = {moment.sequence: float(share) for moment, share in zip(throttled[0].moments[1:], anybody)}
    return np.array([held.get(moment.sequence, 0.0) for moment in grid.moments[1:]])
