"""How the sampler stands: a snapshot that /status, health and the terminal read."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.frame import Outcome
from nodescope.base.tally import Tally


@dataclass(frozen=True, slots=True)
class TableCondition:
    """One table: how often it is read, what it costs, what went wrong in it."""

    every_ticks: int
    cost_seconds: float
    slowed: bool
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """The sampler at one moment."""

    interval_seconds: float
    outcomes: Mapping[str, Outcome]
    tables: Mapping[str, TableCondition]
    load_ratio: float
    """CPU time of reading, as a share of one core."""
    tally: Tally
