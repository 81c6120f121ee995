"""
One row per metric: everything else is derived from it.

The archive keeps what the kernel said, in the kernel's own unit, under
`name`. `scale` leads to the base unit in which it is published. Several
metrics may share a published name when their fixed labels differ
(`node_cpu_seconds_total` has one per mode).
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What one column means, from the kernel's file to the last sentence."""

    name: str
    """The archive's name: the kernel's words, `cgroup.v2.memory.current`."""
    kind: Kind
    help: str
    """One sentence; the unit is implied by the name."""
    published: str | None = None
    """The name on /metrics; None keeps it in ring and archive only."""
    also: tuple[str, ...] = ()
    """More published names of the same series, where two worlds fix one each."""
    unit: str = ""
    """The base unit after scaling: seconds, bytes, ratio, or empty for a count."""
    scale: float = 1.0
    """Kernel's unit times scale is the base unit."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that this column adds to the entity's, such as mode="user"."""
    plain: str | None = None
    """The name a person would say, where the column alone answers it."""
    may_dip: bool = False
    """A counter that the kernel is known to lower a little: not a reset."""
    wraps_at: float | None = None
    """The modulus of a counter that wraps."""
    untyped: bool = False
    """Published without a type, where a linter and a well-known name disagree."""
