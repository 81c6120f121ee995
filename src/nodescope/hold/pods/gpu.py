"""How busy the GPUs are that a pod's processes use."""

from collections.abc import Iterator

import numpy as np

from nodescope.base.block import Floats
from nodescope.hold.feature import GPUS
from nodescope.hold.pods.grid import take_grid
from nodescope.hold.pods.identity import PodIdentity, identify
from nodescope.hold.ring import Ring

UTILIZATION = "gpu.utilization"


def take_gpu_values(ring: Ring, after_ns: int, until_ns: int) -> Iterator[tuple[PodIdentity, Floats]]:
    """Each pod with the mean utilisation of its GPUs, 0 to 1, at every moment."""
    for vendor in GPUS:
        owners = find_owners(ring, vendor)
        grid = take_grid(ring, vendor, after_ns, until_ns) if owners else None
        if grid is None or UTILIZATION not in grid.table.columns:
            continue
        values = grid.values(grid.table.columns[UTILIZATION]) * 0.01
        places = {entity.ids[0]: row for row, entity in enumerate(grid.entities)}
        for identity, gpus in owners.items():
            if rows := [places[gpu] for gpu in gpus if gpu in places]:
                yield identity, np.asarray(values[:, rows].mean(axis=1))


def find_owners(ring: Ring, vendor: str) -> dict[PodIdentity, set[str]]:
    """The GPUs that each pod's processes use now, by their ids."""
    newest = ring.latest().get(f"{vendor}.process")
    found: dict[PodIdentity, set[str]] = {}
    for entity in newest.block.entities if newest else ():
        identity = identify(entity)
        if identity is not None:
            found.setdefault(identity, set()).add(entity.ids[0])
    return found
