"""
What a node's last 20 s cost the pods that run on it: the shares of a unit of work that are lost.

Pressure is lost time by definition: the kernel counts how long tasks were
stalled. Cores and memory bandwidth make others wait as they fill up. Health is
the node's own combination of these.
"""

from collections.abc import Mapping

from nodescope.fpga.node_load import NodeLoad

# Weight of each share of stalled time: memory stalls stop every task, a busy
# disk only the tasks that wait for it.
PRESSURES = {"cpu_pressure": 1.0, "mem_pressure": 2.0, "io_pressure": 0.5}
# Shares that make others wait as they fill up.
FILLING = {"cpu_util": 0.25, "mem_bw_util": 0.25}
# Health 0 costs half a session.
HEALTH = 0.5
# Waiting grows without bounds at rho = 1; from here on it grows linearly.
FULL = 0.9


def derive_queue(rho: float) -> float:
    """Sessions to wait for at random arrivals; its tangent from FULL on."""
    rho = max(0.0, rho)
    if rho <= FULL:
        return rho / (1 - rho)
    return FULL / (1 - FULL) + (rho - FULL) / (1 - FULL) ** 2


def derive_host(load: NodeLoad) -> Mapping[str, float]:
    """By cause; without the causes that were not measured."""
    terms: dict[str, float] = {}
    for name, weight in {**PRESSURES, **FILLING}.items():
        value = load.metrics.get(f"mean_{name}")
        if value is not None:
            share = min(1.0, max(0.0, value))
            terms[name] = weight * (derive_queue(share) if name in FILLING else share)
    if load.health is not None:
        terms["health"] = HEALTH * (10.0 - load.health) / 10.0
    return terms
