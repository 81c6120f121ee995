"""
Windows over single cores and sets of cores, asked for by number.

    core3_ipc     one core
    cores_ipc     the set: ratio of the sums, so a busy core weighs more
    Core3_IPC     one core, as the original model names its inputs
    AvgCore_IPC   the plain mean over the cores of each interval, as that model has it
"""

from collections.abc import Iterable, Sequence

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.hold.feature import CORE_FEATURES, THESIS_FEATURES, Way
from nodescope.hold.ring import Ring
from nodescope.hold.window import (
    FeatureValues,
    Look,
    NodeWindow,
    add_feature,
    add_first,
    take_intervals,
)

# Tables with one row per core.
CORE_TABLES = ("cpu.cpu", "pcm.core", "perf", "cpufreq", "cpuidle")
# More than any model takes, and an answer of some hundred kilobytes.
CORES = 1024


def list_known_cores(ring: Ring) -> list[int]:
    """Cores that any table has, by the numbers Linux gives them."""
    latest = ring.latest()
    names = {
        entity.ids[-1]
        for table in CORE_TABLES
        if table in latest
        for entity in latest[table].block.entities
        if entity.ids
    }
    return sorted(int(name) for name in names if name.isdigit())


def parse_cores(text: str, ring: Ring) -> tuple[str, ...]:
    """`3,4,5` or `0-2`; a core that this node does not have is refused by number."""
    known = list_known_cores(ring)
    wanted: list[int] = []
    for part in text[:4096].split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 16:
            raise RequestRejected(
                f"cores={text[:60]!r} is not accepted; accepted: numbers and ranges such as 3,4,5 or 0-2"
            )
        low, high = int(first), int(last) if dash else int(first)
        if high - low >= CORES or high < low:
            raise RequestRejected(
                f"cores={text[:60]!r} is not accepted: {part.strip()} is not a range of cores"
            )
        wanted += range(low, high + 1)
    unknown = [core for core in wanted if core not in known]
    if unknown:
        listed = ", ".join(map(str, known[:16])) + (", ..." if len(known) > 16 else "")
        raise RequestRejected(f"no core {unknown[0]} on this node; there are: {listed}")
    return tuple(map(str, dict.fromkeys(wanted)))


def add_core_features(
    window: NodeWindow, ring: Ring, now_mono_ns: int, cores: Sequence[str], *, thesis: bool
) -> None:
    """What is known of each core and of the set, added to the node's window."""
    after_ns = now_mono_ns - round(window.window_seconds * 1e9)
    looks = {core: Look(ring, after_ns, now_mono_ns, frozenset({core})) for core in cores}
    if thesis:
        for feature in THESIS_FEATURES:
            for core, look in looks.items():
                add_feature(window, f"Core{core}_{feature.name}", feature, look)
            add_first(window, f"AvgCore_{feature.name}", feature, lambda way: _average(way, looks.values()))
        return
    together = Look(ring, after_ns, now_mono_ns, frozenset(cores))
    for feature in CORE_FEATURES:
        for core, look in looks.items():
            add_feature(window, f"core{core}_{feature.name}", feature, look)
        add_feature(window, f"cores_{feature.name}", feature, together)


def _average(way: Way, looks: Iterable[Look]) -> FeatureValues | str:
    """Mean over the cores, interval by interval; an interval that lacks a core is left out."""
    columns = []
    for look in looks:
        found = take_intervals(way, *look.moments(way.table))
        if isinstance(found, str):
            return found
        with np.errstate(divide="ignore", invalid="ignore"):
            columns.append(np.where(found.bottoms > 0, found.tops / found.bottoms, np.nan))
    rows = np.stack(columns).mean(axis=0)
    rows = rows[~np.isnan(rows)]
    if not len(rows):
        return "was not measured on all of these cores at once"
    return FeatureValues(rows, float(rows.mean()))
