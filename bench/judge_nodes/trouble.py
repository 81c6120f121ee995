"""
Nodes on which one thing goes wrong at a known step, among workloads that are well.

Each trouble is a function that adds to a healthy node what goes wrong, and says what has to
be told, from when on, and until when.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.judge_nodes.healthy import make_machine, size_node
from bench.judge_nodes.machine import Gpus, Machine, Mount
from bench.judge_nodes.shapes import (
    DAY,
    GIB,
    HOUR,
    MIB,
    MINUTE,
    between,
    level_off,
    pick,
    remember,
    season,
    spread,
    teeth,
    traffic,
    uniform,
)
from bench.judge_nodes.workload import Life, Workload
from nodescope.base.block import Floats

# Before anything goes wrong; some of it is what the watcher needs to know the node.
CALM_HOURS = 3.0
NAME = "culprit"
FOREVER = 10**9


@dataclass(frozen=True, slots=True)
class Planted:
    kind: str
    who: str
    """The workload, or how the device begins."""
    begins: int
    ends: int
    """The last step at which telling it helps: the kill, the end of the load, the disk that is full."""


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    seed: int
    machine: Machine
    planted: tuple[Planted, ...]
    follows: frozenset[str] = frozenset()
    """Kinds that may as well be told of the culprit: what a leak ends in."""


Plant = Callable[[Machine, int], tuple[Planted, ...]]
"""From the node and the step at which it begins."""


# -- leaks ----------------------------------------------------------------------------


def leak(
    machine: Machine,
    begins: int,
    path: Floats,
    limit: float,
    cycles: int = 1,
    work: Workload | None = None,
) -> tuple[Planted, ...]:
    """`path` from 0 to 1 is what is lost of the room under the limit; where it is full the container is killed."""
    random = machine.random
    work = work or Workload(NAME, "orders", "Deployment", math.inf, limit, 0.2)
    low = uniform(random, 0.2, 0.5) * limit
    count = len(path)
    life: Life | None = None
    start = 0
    for cycle in range(cycles):
        calm = begins if cycle == 0 else 0
        end = start + calm + count
        wobble = 1 + 0.012 * remember(random, calm + count, 20 * MINUTE)
        rise = np.concatenate([np.zeros(calm), path])
        anon = np.minimum(low * wobble + (limit - low) * rise, limit)
        load = traffic(random, machine.at[:1].repeat(calm + count), 0.0)
        life = machine.run(work, start, end, before=life, cpu=0.15 * load, anon=anon, cache=0.1 * limit)
        life.is_killed = end < machine.steps
        start = end + 2
    machine.run(work, start, before=life, cpu=0.15, anon=low, cache=0.1 * limit)
    killed = begins + count
    return (
        Planted("memory_leak", NAME, begins, killed),
        Planted("oom_kill", NAME, killed, killed + 3 * MINUTE),
    )


def draw_limit(machine: Machine) -> float:
    return spread(machine.random, 0.3, 8) * GIB


def leak_slow(machine: Machine, begins: int) -> tuple[Planted, ...]:
    count = between(machine.random, 8 * HOUR, 11 * HOUR)
    return leak(machine, begins, np.linspace(0, 1, count), draw_limit(machine))


def leak_fast(machine: Machine, begins: int) -> tuple[Planted, ...]:
    count = between(machine.random, 18 * MINUTE, 40 * MINUTE)
    return leak(machine, begins, np.linspace(0, 1, count), draw_limit(machine))


def leak_under_collections(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """What survives the collections grows."""
    random = machine.random
    count = between(random, 2 * HOUR, 6 * HOUR)
    tooth = uniform(random, 0.15, 0.35)
    heap = teeth(random, count, spread(random, 2 * MINUTE, 15 * MINUTE), 0.2)
    path = np.linspace(0, 1 - 0.8 * tooth, count) + tooth * heap
    full = np.flatnonzero(path >= 1)
    return leak(machine, begins, path[: int(full[0]) + 1] if len(full) else path, draw_limit(machine))


def leak_with_restarts(machine: Machine, begins: int) -> tuple[Planted, ...]:
    count = between(machine.random, 70 * MINUTE, 150 * MINUTE)
    return leak(machine, begins, np.linspace(0, 1, count), draw_limit(machine), cycles=3)


def leak_in_steps(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """Something is kept at every run of a job inside."""
    random = machine.random
    count = between(random, 2 * HOUR, 5 * HOUR)
    every = between(random, 4 * MINUTE, 15 * MINUTE)
    path = np.floor(np.arange(count) / every) / max(1, count // every)
    return leak(machine, begins, np.minimum(path, 1), draw_limit(machine))


def leak_with_traffic(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """A little with every request: the day makes it fast and slow."""
    random = machine.random
    count = between(random, 4 * HOUR, 9 * HOUR)
    at = machine.at[begins : begins + count]
    requests = season(at, uniform(random, 0, 24), 0.6) * np.exp(0.3 * remember(random, count, 10 * MINUTE))
    lost = np.cumsum(np.maximum(requests, 0.05))
    return leak(machine, begins, lost / lost[-1], draw_limit(machine))


def leak_ever_faster(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """What waits makes more wait: slow first, then quick."""
    count = between(machine.random, 1.5 * HOUR, 4 * HOUR)
    share = np.linspace(0, 1, count)
    return leak(machine, begins, 0.4 * share + 0.6 * share**2, draw_limit(machine))


# -- kills ----------------------------------------------------------------------------


def kill_at_once(machine: Machine, begins: int) -> tuple[Planted, ...]:
    limit = draw_limit(machine)
    work = Workload(NAME, "search", "Deployment", math.inf, limit, 0.2)
    size = np.full(begins, 0.35 * limit) * (1 + 0.02 * remember(machine.random, begins, HOUR))
    size[-between(machine.random, 1, 3) :] = 0.9 * limit
    life = machine.run(work, 0, begins, cpu=0.3, anon=size)
    life.is_killed = True
    machine.run(work, begins + 2, before=life, cpu=0.3, anon=0.35 * limit)
    return (Planted("oom_kill", NAME, begins, begins + 3 * MINUTE),)


def kill_of_a_child(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """One worker of many is killed: the container goes on, and only a counter has moved."""
    limit = draw_limit(machine)
    work = Workload(NAME, "media", "Deployment", math.inf, limit, 0.2)
    life = machine.run(work, cpu=0.3, anon=0.5 * limit * np.ones(machine.steps))
    life.child_killed = (begins,)
    return (Planted("oom_kill", NAME, begins, begins + 3 * MINUTE),)


def kill_of_a_job(machine: Machine, begins: int) -> tuple[Planted, ...]:
    limit = 1 * GIB
    work = Workload(NAME, "batch", "Job", math.inf, limit, 0.2)
    count = between(machine.random, 2, 5 * MINUTE)
    life = machine.run(work, begins, begins + count, cpu=1.0, anon=limit * np.linspace(0.2, 1, count))
    life.is_killed = True
    return (Planted("oom_kill", NAME, begins + count, begins + count + 3 * MINUTE),)


# -- throttling -----------------------------------------------------------------------


def throttled_bursts(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """A web server that sleeps between requests: its mean is below its limit, and it has none left when they come together."""
    random = machine.random
    limit = float(pick(random, [0.3, 0.5, 1.0, 2.0]))
    count = between(random, 40 * MINUTE, 3 * HOUR)
    work = Workload(NAME, "identity", "Deployment", limit, 1 * GIB, limit / 2)
    cpu = np.full(machine.steps, 0.2 * limit)
    cpu[begins : begins + count] = limit * uniform(random, 0.62, 0.8)
    cpu *= np.exp(0.1 * remember(random, machine.steps, MINUTE))
    awake = uniform(random, 0.45, 0.7)
    for _ in range(between(random, 1, 3)):
        machine.run(work, cpu=cpu, anon=300 * MIB, bursts=uniform(random, 0.6, 1.0), awake=awake)
    return (Planted("cpu_throttling", NAME, begins, begins + count),)


def throttled_flat(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """Wants more than its limit all the time."""
    random = machine.random
    limit = spread(random, 0.1, 4)
    count = between(random, 20 * MINUTE, HOUR)
    work = Workload(NAME, "media", "StatefulSet", limit, 1 * GIB, limit / 2)
    cpu = np.full(machine.steps, 0.3 * limit)
    cpu[begins : begins + count] = limit * uniform(random, 1.05, 3)
    machine.run(work, cpu=cpu, anon=300 * MIB, bursts=0.2)
    return (Planted("cpu_throttling", NAME, begins, begins + count),)


# -- neighbours -----------------------------------------------------------------------


def add_users(machine: Machine, cpu: float, reads: float, cache: float) -> None:
    """Services that need what the neighbour takes."""
    random = machine.random
    for number in range(between(random, 4, 8)):
        work = Workload(f"service-{number}", "orders", "Deployment", math.inf, math.inf, max(0.1, cpu))
        load = traffic(random, machine.at, 0.2)
        machine.run(work, cpu=cpu * load, anon=400 * MIB, cache=cache, reads=reads * load, writes=0.3 * reads)
    # The node was bought for them, too.
    size_node(machine)


def neighbour_cpu(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """Asked for as much as the services together, and has no limit: nobody gets enough."""
    random = machine.random
    add_users(machine, 0.08 * machine.cores, 2e4, 50 * MIB)
    count = between(random, 12 * MINUTE, HOUR)
    work = Workload(NAME, "batch", "Deployment", math.inf, math.inf, 0.7 * machine.cores)
    cpu = np.full(machine.steps, 0.1)
    cpu[begins : begins + count] = uniform(random, 1.0, 2.0) * machine.cores
    machine.run(work, cpu=cpu, anon=500 * MIB)
    return (Planted("noisy_neighbour", NAME, begins, begins + count),)


def neighbour_disk(machine: Machine, begins: int) -> tuple[Planted, ...]:
    random = machine.random
    add_users(machine, 0.05, uniform(random, 1e6, 8e6), 200 * MIB)
    count = between(random, 12 * MINUTE, HOUR)
    flow = np.full(machine.steps, 1e5)
    flow[begins : begins + count] = machine.disk_bytes_per_second * uniform(random, 1.3, 3)
    work = Workload(NAME, "batch", "StatefulSet", math.inf, 4 * GIB, 0.5)
    machine.run(work, cpu=0.4, anon=500 * MIB, cache=2 * GIB, reads=0.3 * flow, writes=0.7 * flow)
    return (Planted("noisy_neighbour", NAME, begins, begins + count),)


def neighbour_memory(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """Has no limit and takes nearly all memory within minutes: the page cache of the others goes, they read again."""
    random = machine.random
    add_users(machine, 0.1, 5e5, 2 * GIB)
    count = between(random, 12 * MINUTE, 50 * MINUTE)
    held = sum(float(np.mean(one.anon)) for one in machine.lives if one.start <= begins < one.end)
    room = max(0.965 * machine.memory_bytes - held - 1.2 * GIB, 2 * GIB)
    size = np.full(machine.steps, 200 * MIB)
    size[begins : begins + count] += room * np.minimum(level_off(count, 3 * MINUTE) * 1.02, 1)
    work = Workload(NAME, "research", "Deployment", math.inf, math.inf, 0.5)
    machine.run(work, cpu=0.5, anon=size)
    return (Planted("noisy_neighbour", NAME, begins, begins + count),)


# -- crash loops ----------------------------------------------------------------------


def loop(machine: Machine, begins: int, lasts: Callable[[], int], work: Workload) -> int:
    """Ends again and again; the kubelet waits 10 s, 20 s and so on up to five minutes. Says the second end's step."""
    life = machine.run(work, 0, begins, cpu=0.05, anon=100 * MIB)
    step, pause, ends = begins, 1, [begins]
    while step < machine.steps and len(ends) < 60:
        step += min(pause, 5 * MINUTE)
        pause *= 2
        count = lasts()
        if step >= machine.steps:
            break
        life = machine.run(work, step, step + count, before=life, cpu=0.3, anon=60 * MIB)
        step += max(count, 1)
        ends.append(step)
    return ends[2]


def crash_at_once(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """A setting is wrong: it ends within seconds."""
    work = Workload(NAME, "billing", "Deployment", math.inf, 256 * MIB, 0.1)
    third = loop(machine, begins, lambda: between(machine.random, 0, 1), work)
    return (Planted("crash_loop", NAME, begins, third + 10 * MINUTE),)


def crash_after_minutes(machine: Machine, begins: int) -> tuple[Planted, ...]:
    """A probe gives up on it after minutes, every time."""
    work = Workload(NAME, "billing", "StatefulSet", math.inf, 256 * MIB, 0.1)
    third = loop(machine, begins, lambda: between(machine.random, 2 * MINUTE, 6 * MINUTE), work)
    return (Planted("crash_loop", NAME, begins, third + 10 * MINUTE),)


# -- disks and GPUs -------------------------------------------------------------------


def fill_disk(machine: Machine, begins: int, count: int, point: str) -> tuple[Planted, ...]:
    random = machine.random
    low = uniform(random, 0.35, 0.8)
    used = np.full(machine.steps, low)
    growth = np.maximum(1 + 0.5 * remember(random, count, 10 * MINUTE), 0.05)
    used[begins : begins + count] = low + (1 - low) * np.cumsum(growth) / growth.sum()
    used[begins + count :] = 1.0
    kept = [one for one in machine.mounts if one.point != point]
    machine.mounts = [*kept, Mount("/dev/nvme3n1", point, "ext4", 60 * GIB, np.minimum(used, 0.9995))]
    return (Planted("disk_full", point, begins, begins + count),)


def disk_by_a_log(machine: Machine, begins: int) -> tuple[Planted, ...]:
    return fill_disk(machine, begins, between(machine.random, 1 * HOUR, 5 * HOUR), "/var/log")


def disk_within_minutes(machine: Machine, begins: int) -> tuple[Planted, ...]:
    return fill_disk(machine, begins, between(machine.random, 8 * MINUTE, 25 * MINUTE), "/")


def disk_over_a_day(machine: Machine, begins: int) -> tuple[Planted, ...]:
    left = machine.steps - begins - HOUR
    return fill_disk(machine, begins, between(machine.random, 0.7 * left, left), "/var/lib/data")


def gpu_falls_off(machine: Machine, begins: int) -> tuple[Planted, ...]:
    names = tuple(f"GPU-{number}" for number in range(between(machine.random, 2, 8)))
    gone = str(pick(machine.random, names))
    machine.gpus = Gpus(names, {gone: begins})
    return (Planted("gpu_loss", f"nvidia {gone}", begins, begins + 5 * MINUTE),)


def gpu_driver_fails(machine: Machine, begins: int) -> tuple[Planted, ...]:
    machine.gpus = Gpus(("GPU-0", "GPU-1"), failed=[(begins, FOREVER)])
    return (Planted("gpu_loss", "nvidia", begins, begins + 5 * MINUTE),)


# By kind: the trouble, and how many hours it needs behind its beginning.
TROUBLES: dict[Plant, float] = {
    leak_slow: 11.5,
    leak_fast: 1.5,
    leak_under_collections: 6.5,
    leak_with_restarts: 9.0,
    leak_in_steps: 5.5,
    leak_with_traffic: 9.5,
    leak_ever_faster: 4.5,
    kill_at_once: 1.0,
    kill_of_a_child: 1.0,
    kill_of_a_job: 1.0,
    throttled_bursts: 3.5,
    throttled_flat: 1.5,
    neighbour_cpu: 1.5,
    neighbour_disk: 1.5,
    neighbour_memory: 1.5,
    crash_at_once: 1.5,
    crash_after_minutes: 1.5,
    disk_by_a_log: 5.5,
    disk_within_minutes: 1.0,
    disk_over_a_day: 26.0,
    gpu_falls_off: 1.0,
    gpu_driver_fails: 1.0,
}
FOLLOWS = {
    "leak": frozenset({"memory_leak", "oom_kill", "crash_loop"}),
    "kill": frozenset({"oom_kill", "crash_loop"}),
    # Who takes all memory of the node is on its way to a kill.
    "neighbour": frozenset({"memory_leak"}),
}


def make_trial(plant: Plant, seed: int, containers: int) -> Trial:
    name = plant.__name__
    hours = CALM_HOURS + TROUBLES[plant]
    machine = make_machine(seed * 100 + list(TROUBLES).index(plant), hours, containers)
    # The truth is about what the agent could see.
    machine.gaps.clear()
    begins = round(uniform(machine.random, 0.6, 1.0) * CALM_HOURS * HOUR)
    planted = plant(machine, begins)
    follows = FOLLOWS.get(name.partition("_")[0], frozenset())
    return Trial(name, seed, machine, planted, follows)


def make_healthy(seed: int, days: float, containers: int) -> Trial:
    machine = make_machine(900_000 + seed, days * DAY / HOUR, containers)
    return Trial("healthy", seed, machine, ())
