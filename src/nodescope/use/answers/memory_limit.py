"""
How near a container is to an OOM kill: memory that can be reclaimed is told apart from memory that cannot.

The kernel drops page cache before it kills. A container whose cache fills its
limit is not near a kill; one whose anonymous memory, shared memory and kernel
memory fill it is. Shared memory (tmpfs) is counted with the page cache by the
kernel, and cannot be dropped.
"""

from dataclasses import dataclass

from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.quantity import render_quantity

# What is read beside memory and its limit: page cache, and the part of it that is shared memory.
FILE, SHARED = "memory_file", list_raw_names("memory.stat.shmem")
# Of its limit: worth a word, and close to the end. As the seed's agent interface has them.
NEAR_SHARE, FULL_SHARE = 0.8, 0.9


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of a container under a limit, in bytes."""

    used: float
    limit: float
    reclaimable: float | None
    """Page cache without shared memory; None where it was not measured."""

    @property
    def kept(self) -> float:
        """What cannot be reclaimed: all, where nobody knows."""
        return self.used - (self.reclaimable or 0.0)

    @property
    def used_share(self) -> float:
        return self.used / self.limit

    @property
    def kept_share(self) -> float:
        return self.kept / self.limit

    @property
    def level(self) -> str:
        """critical, warning, cache (full, but of what can be reclaimed), or empty."""
        if self.kept_share >= FULL_SHARE:
            return "critical"
        if self.kept_share >= NEAR_SHARE:
            return "warning"
        return "cache" if self.used_share >= NEAR_SHARE else ""

    def render(self) -> str:
        """As what follows a name; the same words in every answer."""
        used = f"{100 * self.used_share:.0f} % of its memory limit"
        if self.reclaimable is None:
            return f"uses {used} on average; how much of it is page cache was not measured"
        kept, limit = (render_quantity(value, "bytes") for value in (self.kept, self.limit))
        told = f"{kept} of {limit} cannot be reclaimed ({100 * self.kept_share:.0f} %)"
        if self.level == "cache":
            return f"uses {used} on average, most of it page cache that the kernel can reclaim: only {told}, which is not near an OOM kill"
        return f"uses {used} on average; {told}"


def split_memory(
    used: float, limit: float, file: float | None, shared: float | None = None
) -> MemoryUse | None:
    """None without a limit."""
    if not 0 < limit < float("inf"):
        return None
    reclaimable = None if file is None else max(0.0, min(used, file - (shared or 0.0)))
    return MemoryUse(used, limit, reclaimable)
