"""
What one pod of a workload uses, as its node's agent has seen it: now, by the hour of the day, and of what is shared.

The 24 hours are written as 24 characters, one step for each 20 % of cores: "-" is an hour
that was never seen, "0" is up to 0.01 cores, "a" 0.06, "A" 7.7, "Z" 775 and more.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

HOURS = 24
UNSEEN = "-"
STEPS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEAST_CORES, STEP_RATIO = 0.01, 1.2027
NEVER = UNSEEN * HOURS
# The cores behind each character.
CORES = {step: LEAST_CORES * STEP_RATIO**place for place, step in enumerate(STEPS)} | {UNSEEN: None}


@dataclass(frozen=True, slots=True)
class PodUse:
    """One pod of the workload, the mean over those of its node; None is what was not measured."""

    pods: int
    """Of this workload on the node now; 0 where the last has gone."""
    cores: float
    """Over the last minutes that it ran."""
    hours: str = NEVER
    """Cores at each hour of the day (UTC), see above."""
    bandwidth: float | None = None
    """Memory bandwidth for each core in use, GB/s."""
    waits: float | None = None
    """How much of the time in which somebody on the node waits for a CPU this workload does."""
    gpu: float | None = None
    """Utilisation of the GPUs that a pod uses, 0 to 1."""


@dataclass(frozen=True, slots=True)
class NodeWorkloads:
    """The workloads of one node by their full names: namespace/name."""

    at_seconds: float
    uses: Mapping[str, PodUse] = field(default_factory=dict)


def encode_hours(cores: Iterable[float | None]) -> str:
    return "".join(UNSEEN if one is None else encode_cores(one) for one in cores)


def encode_cores(cores: float) -> str:
    if cores <= LEAST_CORES:
        return STEPS[0]
    place = round(math.log(cores / LEAST_CORES) / math.log(STEP_RATIO))
    return STEPS[min(place, len(STEPS) - 1)]


def decode_hours(text: str) -> Sequence[float | None]:
    return [CORES[step] for step in text]


def are_hours(text: object) -> bool:
    return isinstance(text, str) and len(text) == HOURS and all(step in CORES for step in text)


def find_hour(hours: str, hour: int, otherwise: float) -> float:
    """At one hour of the day; an hour that was never seen counts as `otherwise`."""
    found = CORES[hours[hour % HOURS]]
    return otherwise if found is None else found
