"""
The firmware's own table of an AMD GPU: /sys/class/drm/cardN/device/gpu_metrics.

A binary structure whose first four bytes are its size (16 bit), its format and its
content revision. Revisions are not made by appending: offsets are those of one
revision each, and a table is read only when its size is that revision's, too.
drivers/gpu/drm/amd/include/kgd_pp_interface.h; all bits set mean "not available".

    1.3  MI100, MI200, Radeon        1.4, 1.6 to 1.8  MI300 and later, with partitions (XCP) from 1.6
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from nodescope.collect.files.roots import NodeRoot

# Of a table, and of the largest that is known: 1.8 has 3,360 bytes.
HEAD = struct.Struct("<HBB")
# The energy counter counts 2^-16 J.
ENERGY_JOULES = 2.0**-16
PARTITIONS, UNITS_MOST = 8, 8


@dataclass(frozen=True, slots=True)
class Revision:
    """Where one revision has what we read: (our key, format, offset, times)."""

    size: int
    fields: tuple[tuple[str, str, int, float], ...]
    partitions_at: int = 0
    """Where partitions begin, each with eight numbers of its compute units first; 0: it has none."""
    partition_size: int = 0


def count_rows(begin: int, nacks: int = 0) -> tuple[tuple[str, str, int, float], ...]:
    """PCIe: five numbers of 64 bit in a row, and two of 32 behind them where there are any."""
    rows: list[tuple[str, str, int, float]] = [
        ("pcie_bandwidth", "Q", begin, 1),
        ("pcie_recoveries", "Q", begin + 8, 1),
        ("pcie_replays", "Q", begin + 16, 1),
        ("pcie_replay_rollovers", "Q", begin + 24, 1),
    ]
    if nacks:
        rows += [("pcie_nacks_sent", "I", nacks, 1), ("pcie_nacks_received", "I", nacks + 4, 1)]
    return tuple(rows)


ACTIVITY = (("utilization", "H", 12, 1.0), ("memory_busy", "H", 14, 1.0))
REVISIONS = {
    (1, 3): Revision(
        120,
        (
            ("utilization", "H", 16, 1),
            ("memory_busy", "H", 18, 1),
            ("energy", "Q", 24, ENERGY_JOULES),
            *((f"temperature_hbm.{place}", "H", 88 + 2 * place, 1) for place in range(4)),
        ),
    ),
    (1, 4): Revision(288, (*ACTIVITY, ("energy", "Q", 24, ENERGY_JOULES), *count_rows(72))),
    (1, 6): Revision(1664, (*ACTIVITY, ("energy", "Q", 16, ENERGY_JOULES), *count_rows(88, 120)), 312, 168),
    (1, 7): Revision(2208, (*ACTIVITY, ("energy", "Q", 24, ENERGY_JOULES), *count_rows(96, 128)), 344, 232),
    (1, 8): Revision(3360, (*ACTIVITY, ("energy", "Q", 24, ENERGY_JOULES), *count_rows(96, 128)), 344, 376),
}
MISSING = {"H": 0xFFFF, "I": 0xFFFF_FFFF, "Q": 0xFFFF_FFFF_FFFF_FFFF}


def read_gpu_metrics(root: NodeRoot, device: str) -> dict[str, float]:
    """What the table has; nothing where there is none, or of a revision that is not known."""
    try:
        data = root.read(f"{device}/gpu_metrics")
    except OSError:
        return {}
    return parse_gpu_metrics(data)


def parse_gpu_metrics(data: bytes) -> dict[str, float]:
    if len(data) < HEAD.size:
        return {}
    size, *version = HEAD.unpack_from(data)
    revision = REVISIONS.get((version[0], version[1]))
    if revision is None or size != revision.size or len(data) < size:
        return {}
    values = {}
    for key, form, offset, times in revision.fields:
        (number,) = struct.unpack_from(f"<{form}", data, offset)
        if number != MISSING[form]:
            values[key] = number * times
    values.update(list_units(data, revision))
    busy = [value for key, value in values.items() if key.startswith("unit_busy.")]
    if busy:
        # A split GPU has no activity as a whole.
        values.setdefault("utilization", sum(busy) / len(busy))
    return values


def list_units(data: bytes, revision: Revision) -> Iterator[tuple[str, float]]:
    """`unit_busy.0.3`: of partition 0 the compute unit 3, in percent."""
    for partition in range(PARTITIONS if revision.partitions_at else 0):
        begin = revision.partitions_at + partition * revision.partition_size
        for unit, busy in enumerate(struct.unpack_from(f"<{UNITS_MOST}I", data, begin)):
            if busy <= 100:
                yield f"unit_busy.{partition}.{unit}", float(busy)
