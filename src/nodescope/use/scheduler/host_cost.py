"""
What a node's last 20 s cost the pods that run on it: the shares of a unit of work that are lost.

Pressure is lost time by definition: the kernel counts how long tasks were
stalled. Of CPU pressure, what quotas of the node's own containers make is taken
out where the agent says so (cpu_contention). Cores and memory bandwidth make
others wait as they fill up. Health is the node's own combination of these.

A cause that was not measured on a node counts as the median of the nodes that
measured it: a node without PCM is neither better nor worse for it.
"""

from collections.abc import Iterable, Mapping
from statistics import median

from nodescope.fpga.node_load import NodeLoad

# Weight of each share of stalled time: memory stalls stop every task, a busy
# disk only the tasks that wait for it.
PRESSURES = {"cpu_pressure": 1.0, "mem_pressure": 2.0, "io_pressure": 0.5}
# What tells the same without what is nobody else's doing.
BETTER = {"cpu_pressure": "cpu_contention"}
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
        value = load.metrics.get(f"mean_{BETTER.get(name, name)}", load.metrics.get(f"mean_{name}"))
        if value is not None:
            share = min(1.0, max(0.0, value))
            terms[name] = weight * (derive_queue(share) if name in FILLING else share)
    if load.health is not None:
        terms["health"] = HEALTH * (10.0 - load.health) / 10.0
    return terms


def derive_typical(hosts: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    """By cause: the median over the nodes that measured it."""
    known: dict[str, list[float]] = {}
    for host in hosts:
        for name, share in host.items():
            known.setdefault(name, []).append(share)
    return {name: median(shares) for name, shares in known.items()}
