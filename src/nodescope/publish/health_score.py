"""
node_health_score: one number from 0 (saturated) to 10 (idle and healthy).

    score = 10 * sum(weight * headroom) / sum(weight)     over the inputs that were measured

Headroom lies in 0..1 and falls when its input rises. CPU (utilisation, load
per core, pressure) weighs more than memory (availability, pressure), because
a node without CPU answers nobody while one without memory still may. An input
that is missing is left out of both sums: it counts neither as healthy nor as
ill. A GPU counts only where there is one.

forall inputs: the score is in [0, 10] and does not rise when an input worsens.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealthInputs:
    """What the score is made of; None where it was not measured."""

    cpu_utilization_ratio: float | None = None
    load_per_core: float | None = None
    cpu_pressure_percent: float | None = None
    memory_available_ratio: float | None = None
    memory_pressure_percent: float | None = None
    gpu_utilization_ratio: float | None = None


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))


def derive_health_score(inputs: HealthInputs) -> float | None:
    """The score, or None when nothing was measured."""
    # (weight, value, value that is full). The weights are a judgement, not a measurement: six tenths
    # CPU, four memory. A load of one task per core is a full machine; more cannot be fuller.
    wear = (
        (0.30, inputs.cpu_utilization_ratio, 1.0),
        (0.15, inputs.load_per_core, 1.0),
        (0.15, inputs.cpu_pressure_percent, 100.0),
        (0.15, inputs.memory_pressure_percent, 100.0),
        (0.15, inputs.gpu_utilization_ratio, 1.0),
    )
    known = [(weight, _clamp(1 - value / full)) for weight, value, full in wear if value is not None]
    if inputs.memory_available_ratio is not None:
        known.append((0.25, _clamp(inputs.memory_available_ratio)))
    if not known:
        return None
    total = sum(weight for weight, _ in known)
    return min(10.0, 10 * sum(weight * headroom for weight, headroom in known) / total)
