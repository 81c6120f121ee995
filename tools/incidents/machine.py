"""
A node that never was: what its containers want, and what they get where it is too little for all.

CPU, disk, network and the GPU are shared in proportion to what is wanted; who gets
less than it wants waits, and its pressure says so. Memory that is not free is
taken from the page cache of everybody, who then read again from the disk. A
quota holds its own container back, and nobody else. All numbers are means of
one step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MIB = 2.0**20
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Machine:
    """What a node has."""

    cores: float
    memory_bytes: float
    disk_bytes: float
    """Per second, as are the two below."""
    network_bytes: float
    bandwidth_bytes: float
    """Between the caches and the memory."""


@dataclass(slots=True)
class Wish:
    """One container (or all short jobs of one workload together): what it wants in each step it is there."""

    workload: str
    kind: str
    """service, cron, job, loop."""
    first: int
    """Its first step."""
    cpu: Floats
    anon: Floats
    file: Floats
    disk: Floats
    network: Floats
    intensity: float = 1e9
    """Bytes moved from and to memory in a second on one core."""
    quota: float = np.inf
    limit_bytes: float = np.inf
    image: str = "1.0.0"
    pod: str = ""
    restarts: int = 0
    ends_in_oom: bool = False
    ends: bool = False
    gpu: Floats | None = None
    """GPU time it wants, of GPUs; None: it has no process there. All are on one GPU."""
    got: dict[str, Floats] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """Behind its last step."""
        return self.first + len(self.cpu)


def add_up(wishes: list[Wish], name: str, steps: int) -> Floats:
    total = np.zeros(steps)
    for one in wishes:
        total[one.first : one.last] += getattr(one, name)
    return total


def share_out(total: Floats, capacity: float) -> Floats:
    """Of what is wanted, the share that everybody gets."""
    return np.minimum(1.0, capacity / np.maximum(total, 1e-9))


def queue_up(total: Floats, capacity: float) -> Floats:
    """Share of time that somebody waits: little on an idle resource, all that is lacking on a full one."""
    load = total / capacity
    return np.clip(
        0.002 + 0.06 * np.clip((load - 0.75) / 0.25, 0, 1) ** 2 + np.maximum(0.0, 1 - 1 / load), 0, 0.98
    )


def run_machine(
    machine: Machine, wishes: list[Wish], steps: int, random: np.random.Generator
) -> Mapping[str, Floats]:
    """Fills `got` of every wish; the node's own curves."""
    for one in wishes:
        one.got["wanted"] = one.cpu
        one.cpu = np.minimum(one.cpu, one.quota)
    slow = slow_down(machine, wishes, steps)
    anon, file = add_up(wishes, "anon", steps), add_up(wishes, "file", steps)
    free = machine.memory_bytes * 0.96 - anon
    kept = np.clip(free / np.maximum(file, 1.0), 0.02, 1.0)
    # What the page cache lost is read again and again.
    squeezed = np.clip(1 - kept, 0, 1)
    for one in wishes:
        lost = squeezed[one.first : one.last]
        one.disk = one.disk + 40 * MIB * lost * np.minimum(1.0, one.file / (200 * MIB))
        # Work that waits for memory takes longer on the core, too.
        one.cpu = np.minimum(one.cpu * slow[one.first : one.last], one.quota)
    cpu, disk, network = (add_up(wishes, name, steps) for name in ("cpu", "disk", "network"))
    shares = (
        share_out(cpu, machine.cores),
        share_out(disk, machine.disk_bytes),
        share_out(network, machine.network_bytes),
    )
    waits = queue_up(cpu, machine.cores), queue_up(disk, machine.disk_bytes)
    for one in wishes:
        fill(one, shares, waits, kept, squeezed, slow, random)
    share_gpu(wishes, steps)
    moved = np.zeros(steps)
    for one in wishes:
        moved[one.first : one.last] += one.got["cpu"] * one.intensity
    return {
        "available": np.clip(1 - (anon + 0.3 * file * kept) / machine.memory_bytes, 0, 1),
        "memory_bandwidth": moved * noise(random, steps, 0.02),
        "ipc": 1.4 / slow * noise(random, steps, 0.02),
        # A core is said to wait for a disk only while it has nothing else to do.
        "io_wait": waits[1] * np.clip(1 - cpu / machine.cores, 0, 1),
        # Tasks that wait for each core; on a core with one task nobody does.
        "run_queue": waits[0] * np.maximum(1.0, cpu / machine.cores),
    }


def share_gpu(wishes: list[Wish], steps: int) -> None:
    """By turns: nobody waits visibly, everybody computes less."""
    users = [(one, one.gpu) for one in wishes if one.gpu is not None]
    total = np.zeros(steps)
    for one, wanted in users:
        total[one.first : one.last] += wanted
    left = share_out(total, 1.0)
    for one, wanted in users:
        one.got["gpu"] = wanted * left[one.first : one.last]


def slow_down(machine: Machine, wishes: list[Wish], steps: int) -> Floats:
    """How much longer everything takes where the memory's bandwidth is used up."""
    moved = np.zeros(steps)
    for one in wishes:
        moved[one.first : one.last] += one.cpu * one.intensity
    load = moved / machine.bandwidth_bytes
    return 1 + 0.9 * np.clip(load - 0.7, 0, 1.0)


def noise(random: np.random.Generator, size: int, spread: float) -> Floats:
    return np.exp(spread * random.standard_normal(size))


def fill(
    one: Wish,
    shares: tuple[Floats, Floats, Floats],
    waits: tuple[Floats, Floats],
    kept: Floats,
    squeezed: Floats,
    slow: Floats,
    random: np.random.Generator,
) -> None:
    here = slice(one.first, one.last)
    size = len(one.cpu)
    over = np.maximum(0.0, one.got["wanted"] - one.quota) / np.maximum(one.got["wanted"], 1e-9)
    used = one.cpu * shares[0][here]
    disk = one.disk * shares[1][here]
    busy = np.minimum(1.0, one.cpu / 0.05)
    doing_io = np.minimum(1.0, one.disk / (0.3 * MIB))
    near = (
        np.clip((one.anon / one.limit_bytes - 0.92) * 12, 0, 1)
        if np.isfinite(one.limit_bytes)
        else np.zeros(size)
    )
    lost = squeezed[here]
    one.got.update(
        {
            "cpu": used,
            "pressure_cpu": np.clip((waits[0][here] * busy + over) * noise(random, size, 0.4), 0, 0.99),
            "memory_anon": one.anon,
            "memory_file": one.file * kept[here],
            "disk": disk,
            "ios": disk / 32768 * noise(random, size, 0.1),
            "pressure_io": np.clip(waits[1][here] * doing_io * noise(random, size, 0.4), 0, 0.99),
            "pressure_memory": np.clip(
                (
                    0.6 * np.clip(lost - 0.15, 0, 1) * np.minimum(1.0, one.file / (100 * MIB))
                    + 0.3 * near
                    + 0.0005
                )
                * noise(random, size, 0.5),
                0,
                0.99,
            ),
            "major_faults": np.maximum(
                0.0, (0.2 + 400 * lost * np.minimum(1.0, one.file / (200 * MIB))) * noise(random, size, 0.5)
            ),
            "network": one.network * shares[2][here],
            "cycles": used * 3e9,
            "instructions": used * 3e9 * 1.4 / slow[here] * noise(random, size, 0.03),
            "cache_misses": used * one.intensity / 64 * noise(random, size, 0.05),
        }
    )
    # One that runs on a single core stands still whenever it waits.
    alone = 1 / (1 + 4 * float(np.mean(one.cpu)))
    for what in ("cpu", "memory", "io"):
        one.got[f"pressure_{what}_full"] = one.got[f"pressure_{what}"] * alone
    if np.isfinite(one.quota):
        one.got["cpu_throttled"] = np.clip(over * 1.5 * noise(random, size, 0.2), 0, 1)
