"""
Workloads of healthy nodes: nothing here is worth a page, much of it looks so to a threshold.

Every function adds one workload, over the whole span, with releases, restarts and days of
its own.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from bench.judge_nodes.machine import Gpus, Machine, Mount
from bench.judge_nodes.shapes import (
    DAY,
    GIB,
    HOUR,
    MIB,
    MINUTE,
    Random,
    between,
    collected,
    fill,
    level_off,
    pick,
    remember,
    season,
    spread,
    teeth,
    traffic,
    uniform,
)
from bench.judge_nodes.workload import Workload, suffix
from nodescope.base.block import Floats

MONDAY = 1_767_571_200.0
NAMESPACES = ("orders", "search", "identity", "media", "billing", "platform")

Wishes = Mapping[str, Any]
Shape = Callable[[int, Floats], Wishes]
"""From the length of a life and its times: what it wants, as `Machine.run` takes it."""
Add = Callable[[Machine, str], None]


def place(random: Random) -> str:
    return str(pick(random, NAMESPACES))


def list_releases(machine: Machine, most_a_week: float) -> list[int]:
    """The steps at which a version begins; the first is the node's first."""
    many = machine.random.poisson(uniform(machine.random, 0, most_a_week) * machine.steps / (7 * DAY))
    later = machine.random.integers(HOUR, max(HOUR + 1, machine.steps - HOUR), many)
    return [0, *sorted(int(step) for step in later)]


def release(
    machine: Machine, work: Workload, replicas: int, shape: Shape, releases: list[int], **fixed: Any
) -> None:
    """Version after version, pod after pod, each new one before an old one goes."""
    ends = [*releases[1:], None]
    for start, end in zip(releases, ends):
        template = suffix(machine.random, 9)
        for ordinal in range(replicas):
            late = between(machine.random, 2, 2 * MINUTE) * (ordinal + 1)
            first = start + late if start else 0
            last = None if end is None else end + late + between(machine.random, 1, 4)
            if first >= machine.steps:
                continue
            stop = machine.steps if last is None else min(last, machine.steps)
            wishes = shape(stop - first, machine.at[first:stop])
            machine.run(work, first, last, ordinal=ordinal, template=template, **fixed, **wishes)


def add_web(machine: Machine, name: str) -> None:
    """Follows the day; memory follows it a little. Replicas, now and then released."""
    random = machine.random
    peak = spread(random, 0.05, 0.6)
    limit = float(pick(random, [math.inf, 2.5 * peak, 4 * peak]))
    size = spread(random, 150 * MIB, 900 * MIB)
    work = Workload(name, place(random), "Deployment", limit, size * uniform(random, 1.8, 3), max(0.1, peak))
    depth = uniform(random, 0.2, 0.7)

    def shape(count: int, at: Floats) -> Wishes:
        load = traffic(random, at, depth)
        warm = 0.8 + 0.2 * level_off(count, spread(random, 2 * MINUTE, 40 * MINUTE))
        return {
            "cpu": 0.5 * peak * load,
            "anon": size
            * warm
            * (0.85 + 0.15 * load / (1 + load))
            * (1 + 0.01 * remember(random, count, HOUR)),
            "reads": 2e4 * load,
            "writes": 5e4 * load,
        }

    release(
        machine,
        work,
        between(random, 1, 3),
        shape,
        list_releases(machine, 3),
        bursts=uniform(random, 0.2, 0.5),
    )


def add_java(machine: Machine, name: str) -> None:
    """A heap that is collected every half minute and in whole every few hours; it grows to its largest size and stays."""
    random = machine.random
    limit = float(pick(random, [1, 2, 4, 8])) * GIB
    young, old = uniform(random, 0.05, 0.15) * limit, uniform(random, 0.1, 0.3) * limit
    base = uniform(random, 0.25, 0.4) * limit
    every, old_every = spread(random, 2, 5 * MINUTE), spread(random, HOUR, 20 * HOUR)
    # The runtime gives nothing back to the kernel: only new peaks show.
    gives_back = random.random() < 0.5
    work = Workload(name, place(random), "Deployment", math.inf, limit, uniform(random, 0.2, 1))

    def shape(count: int, at: Floats) -> Wishes:
        heap = collected(random, count, young, old, every, old_every)
        heap = heap if gives_back else np.maximum.accumulate(heap)
        warm = level_off(count, spread(random, 3 * MINUTE, 90 * MINUTE))
        load = traffic(random, at, 0.4)
        return {"cpu": 0.25 * load, "anon": base * (0.6 + 0.4 * warm) + heap, "writes": 3e4 * load}

    release(machine, work, between(random, 1, 2), shape, list_releases(machine, 2), bursts=0.5)


def add_cache(machine: Machine, name: str) -> None:
    """Keeps what it is asked for until its own bound, below its limit, and stays there."""
    random = machine.random
    limit = spread(random, 0.5, 6) * GIB
    bound = limit * uniform(random, 0.5, 0.85)
    steps = spread(random, 20 * MINUTE, 12 * HOUR)
    is_straight = random.random() < 0.4
    work = Workload(name, place(random), "StatefulSet", math.inf, limit, 0.2)

    def shape(count: int, at: Floats) -> Wishes:
        path = fill(count, steps) if is_straight else level_off(count, steps / 2)
        return {"cpu": 0.1 * traffic(random, at, 0.5), "anon": 20 * MIB + bound * path}

    release(machine, work, 1, shape, list_releases(machine, 0.7))


def add_files(machine: Machine, name: str) -> None:
    """Page cache fills the limit to the brim."""
    random = machine.random
    limit = spread(random, 0.25, 3) * GIB
    work = Workload(name, place(random), "Deployment", math.inf, limit, 0.1)

    def shape(count: int, at: Floats) -> Wishes:
        load = traffic(random, at, 0.5)
        cache = 3 * limit * fill(count, spread(random, 10 * MINUTE, DAY))
        return {"cpu": 0.05 * load, "anon": limit * 0.15, "cache": cache, "reads": 2e6 * load}

    release(machine, work, 1, shape, list_releases(machine, 1))


def add_database(machine: Machine, name: str) -> None:
    """Shared buffers early, then page cache; checkpoints write in bursts; vacuum at night."""
    random = machine.random
    limit = spread(random, 2, 12) * GIB
    work = Workload(name, place(random), "StatefulSet", math.inf, limit, 1.0)
    every = between(random, 5 * MINUTE, 15 * MINUTE)

    def shape(count: int, at: Floats) -> Wishes:
        load = traffic(random, at, 0.5)
        flush = (np.arange(count) % every) < MINUTE
        night = (at / 3600 % 24 >= 3) & (at / 3600 % 24 < 3.4)
        return {
            "cpu": 0.4 * load + 0.4 * night,
            "anon": limit * (0.25 + 0.05 * level_off(count, 2 * HOUR)) + 30 * MIB * load,
            "cache": 2 * limit * level_off(count, spread(random, HOUR, DAY)),
            "reads": 2e6 * load + 2e7 * night,
            "writes": 1e6 * load + 4e7 * flush,
        }

    release(machine, work, 1, shape, [0])


def add_recycled(machine: Machine, name: str) -> None:
    """Python workers that grow and are replaced after so many requests, before anything is short."""
    random = machine.random
    limit = spread(random, 0.4, 2) * GIB
    base, tooth = uniform(random, 0.25, 0.4) * limit, uniform(random, 0.15, 0.35) * limit
    every = spread(random, 40 * MINUTE, 8 * HOUR)
    work = Workload(name, place(random), "Deployment", math.inf, limit, 0.3)

    def shape(count: int, at: Floats) -> Wishes:
        heap = base + tooth * teeth(random, count, every, 0.2)
        return {"cpu": 0.2 * traffic(random, at, 0.5), "anon": heap}

    release(machine, work, between(random, 1, 2), shape, list_releases(machine, 1))


def add_agent(machine: Machine, name: str) -> None:
    """A DaemonSet with a quota of 100m: it sleeps, wakes for a scrape, is throttled for a moment, harms nobody."""
    random = machine.random
    work = Workload(name, "kube-system", "DaemonSet", 0.1, spread(random, 64, 256) * MIB, 0.05)
    awake = uniform(random, 0.02, 0.12)
    mean = 0.1 * awake * uniform(random, 0.3, 0.8)

    def shape(count: int, at: Floats) -> Wishes:
        del at
        size = work.memory_limit * (0.4 + 0.05 * remember(random, count, HOUR))
        return {"cpu": mean * np.exp(0.2 * random.normal(size=count)), "anon": size}

    release(machine, work, 1, shape, list_releases(machine, 1), bursts=uniform(random, 0.5, 1.0), awake=awake)


def add_logger(machine: Machine, name: str) -> None:
    """Ships logs: quiet, and for minutes everything at once, in memory as well."""
    random = machine.random
    limit = spread(random, 128, 512) * MIB
    work = Workload(name, "kube-system", "DaemonSet", float(pick(random, [math.inf, 0.5])), limit, 0.1)

    def shape(count: int, at: Floats) -> Wishes:
        del at
        bursts = np.zeros(count)
        for _ in range(random.poisson(count / (6 * HOUR))):
            start, length = between(random, 0, count - 1), between(random, MINUTE, 12 * MINUTE)
            bursts[start : start + length] = np.maximum(
                bursts[start : start + length], uniform(random, 0.3, 1)
            )
        return {
            "cpu": 0.02 + 0.25 * bursts,
            "anon": limit * (0.3 + 0.35 * bursts),
            "writes": 2e5 + 1.5e7 * bursts,
            "cache": limit * 0.3,
        }

    release(machine, work, 1, shape, list_releases(machine, 0.5))


def list_times(machine: Machine, every_seconds: float, at_second: float, wander: int) -> Iterator[int]:
    first = -(-(machine.start_at - at_second) // every_seconds) * every_seconds + at_second
    step = (first - machine.start_at) / 10
    while step < machine.steps:
        yield round(step) + between(machine.random, 0, wander)
        step += every_seconds / 10


def add_cron(machine: Machine, name: str) -> None:
    """Every few minutes a pod of a minute, at its quota while it runs."""
    random = machine.random
    every = 60.0 * float(pick(random, [2, 5, 10, 15, 30, 60]))
    limit = float(pick(random, [math.inf, 0.2, 1.0]))
    work = Workload(name, place(random), "CronJob", limit, spread(random, 128, 1024) * MIB, 0.1)
    longest = max(2, min(6 * MINUTE, round(every / 10 * 0.6)))
    wish, size = spread(random, 0.1, 1.2), uniform(random, 0.3, 0.85) * work.memory_limit
    for start in list_times(machine, every, uniform(random, 0, every), 1):
        count = between(random, 1, longest)
        grown = size * level_off(count, count / 3)
        machine.run(work, start, start + count, cpu=wish, anon=grown, cache=50 * MIB, writes=2e5)


def add_nightly(machine: Machine, name: str) -> None:
    """A backup or a report, at the same hour of every night: it reads and writes much, for up to an hour."""
    random = machine.random
    work = Workload(name, place(random), "CronJob", math.inf, 4 * GIB, 0.5)
    hour = uniform(random, 0, 5)
    cpu, flow = (
        uniform(random, 0.1, 0.3) * machine.cores,
        uniform(random, 0.2, 0.6) * machine.disk_bytes_per_second,
    )
    length = between(random, 10 * MINUTE, HOUR)
    for start in list_times(machine, 86_400.0, 3600 * hour, 6):
        count = round(length * uniform(random, 0.85, 1.15))
        anon = uniform(random, 0.3, 0.7) * 4 * GIB * level_off(count, count / 4)
        machine.run(
            work, start, start + count, cpu=cpu, anon=anon, cache=3 * GIB, reads=0.6 * flow, writes=0.4 * flow
        )


def add_leftover(machine: Machine, name: str) -> None:
    """A job that asked for nothing and takes all that is idle, for hours: it waits, the others hardly do."""
    random = machine.random
    work = Workload(name, "batch", "Job", math.inf, math.inf, 0.002)
    step = between(random, 0, 8 * HOUR)
    while step < machine.steps:
        count = between(random, 20 * MINUTE, 6 * HOUR)
        machine.run(work, step, step + count, cpu=1.2 * machine.cores, anon=1 * GIB, writes=1e6)
        step += count + between(random, HOUR, 20 * HOUR)


def add_builds(machine: Machine, name: str) -> None:
    """Pods of a build service: come at working hours, take two cores for minutes, end, some with an error."""
    random = machine.random
    work = Workload(name, "ci", "Job", 2.0, 4 * GIB, 0.5)
    step = between(random, 0, HOUR)
    while step < machine.steps:
        busy = float(season(np.array([machine.start_at + 10.0 * step]), 14, 0.8)[0])
        count = between(random, 1 * MINUTE, 15 * MINUTE)
        grown = uniform(random, 0.2, 0.8) * 4 * GIB * level_off(count, count / 2)
        cpu = uniform(random, 0.8, 2.6) * np.exp(0.2 * random.normal(size=count))
        machine.run(work, step, step + count, cpu=cpu, anon=grown, cache=2 * GIB, writes=8e6, bursts=0.6)
        step += round(random.exponential(40 * MINUTE / max(busy, 0.1))) + 1


def add_scaled(machine: Machine, name: str) -> None:
    """Replicas that follow the day: each is new, warms up, and is gone after hours."""
    random = machine.random
    size = spread(random, 200 * MIB, 800 * MIB)
    work = Workload(name, place(random), "Deployment", math.inf, size * uniform(random, 1.4, 2.5), 0.3)
    template = suffix(random, 9)
    wanted = np.rint(2.5 * season(machine.at, uniform(random, 10, 20), 0.7)).astype(int)
    open_since: list[int] = []
    for step in range(0, machine.steps, 5 * MINUTE):
        while len(open_since) < max(1, wanted[step]):
            open_since.append(step)
        while len(open_since) > max(1, wanted[step]):
            add_replica(machine, work, template, open_since.pop(0), step, size)
    for since in open_since:
        add_replica(machine, work, template, since, None, size)


def add_replica(
    machine: Machine, work: Workload, template: str, start: int, end: int | None, size: float
) -> None:
    count = (machine.steps if end is None else end) - start
    random = machine.random
    anon = size * (0.45 + 0.55 * level_off(count, spread(random, 5 * MINUTE, 2 * HOUR)))
    cpu = 0.25 * np.exp(0.2 * remember(random, count, MINUTE))
    machine.run(work, start, end, template=template, cpu=cpu, anon=anon)


def add_unlimited(machine: Machine, name: str) -> None:
    """No limits at all: grows by day, gives back at night, as caches of people's sessions do."""
    random = machine.random
    work = Workload(name, place(random), "Deployment", math.inf, math.inf, 0.1)
    size = spread(random, 0.2, 2) * GIB

    def shape(count: int, at: Floats) -> Wishes:
        load = traffic(random, at, 0.5)
        slow = season(at, 18, 0.5)
        return {
            "cpu": 0.2 * load,
            "anon": size * (0.6 + 0.4 * slow) * (1 + 0.02 * remember(random, count, HOUR)),
        }

    release(machine, work, 1, shape, list_releases(machine, 1))


def add_trainer(machine: Machine, name: str) -> None:
    """Loads for ten minutes, computes for a day at its quota's edge, writes checkpoints."""
    random = machine.random
    cores = uniform(random, 0.1, 0.2) * machine.cores
    work = Workload(name, "research", "Job", math.inf, 16 * GIB, cores)
    step = between(random, 0, 6 * HOUR)
    while step < machine.steps:
        count = between(random, 3 * HOUR, 30 * HOUR)
        save = ((np.arange(count) % between(random, 20 * MINUTE, HOUR)) < 3).astype(np.float64)
        anon = 9 * GIB * fill(count, between(random, 5 * MINUTE, 20 * MINUTE)) + 1 * GIB * save
        machine.run(
            work, step, step + count, cpu=cores, anon=anon, cache=2 * GIB, writes=1.2e8 * save, reads=2e6
        )
        step += count + between(random, HOUR, 12 * HOUR)


def add_restarted(machine: Machine, name: str) -> None:
    """Ends now and then, a few times in a week, and is started again: a probe that failed, a certificate that was renewed."""
    random = machine.random
    work = Workload(name, place(random), "Deployment", math.inf, 512 * MIB, 0.1)
    many = random.poisson(3 * machine.steps / (7 * DAY))
    ends = sorted({int(step) for step in random.integers(HOUR, max(HOUR + 1, machine.steps), many)})
    life, start = None, 0
    for end in [*ends, None]:
        stop = machine.steps if end is None else end
        if stop - start < 2:
            continue
        anon = 200 * MIB * (0.7 + 0.3 * level_off(stop - start, 10 * MINUTE))
        life = machine.run(work, start, end, before=life, cpu=0.1, anon=anon)
        start = stop + 1


# How often each is met, beside the others.
WORKLOADS: dict[Add, float] = {
    add_web: 5,
    add_java: 3,
    add_cache: 1.5,
    add_files: 1,
    add_database: 1,
    add_recycled: 1.5,
    add_agent: 2,
    add_logger: 1,
    add_cron: 2,
    add_scaled: 1,
    add_unlimited: 1.5,
    add_restarted: 1,
}
# At most one of these on a node, with this chance.
RARE: dict[Add, float] = {add_nightly: 0.6, add_leftover: 0.3, add_builds: 0.3, add_trainer: 0.2}


def make_machine(seed: int, hours: float, containers: int) -> Machine:
    """A healthy node with about so many containers, sized so that it is well packed and not short."""
    random = np.random.default_rng([22, seed])
    steps = round(hours * HOUR)
    start_at = MONDAY + between(random, 0, 6 * 24) * 3600.0 + between(random, 0, 359) * 10.0
    machine = Machine(f"judge-{seed}", random, steps, start_at, has_api=bool(random.random() < 0.7))
    # What follows depends on how large the node is: CPU and disk are chosen first.
    machine.cores = max(4, 4 * round(containers * uniform(random, 0.2, 0.4) / 4))
    machine.disk_bytes_per_second = spread(random, 200e6, 1.5e9)
    chosen = list(WORKLOADS)
    shares = np.array(list(WORKLOADS.values()))
    number = 0
    while count_steady(machine) < containers:
        add = chosen[int(random.choice(len(chosen), p=shares / shares.sum()))]
        add(machine, f"{add.__name__.removeprefix('add_')}-{number}")
        number += 1
    for add, chance in RARE.items():
        if random.random() < chance:
            add(machine, add.__name__.removeprefix("add_"))
    size_node(machine)
    add_mounts(machine)
    add_mishaps(machine)
    return machine


def count_steady(machine: Machine) -> int:
    """Containers in the middle of the span."""
    middle = machine.steps // 2
    return sum(life.start <= middle < life.end for life in machine.lives)


def size_node(machine: Machine) -> None:
    """Bought for what runs on it: three fifths to nine tenths of the cores at the busiest, memory with room."""
    random = machine.random
    wish, anon = np.zeros(machine.steps), np.zeros(machine.steps)
    for life in machine.lives:
        span = slice(life.start, life.start + len(life.cpu))
        anon[span] += np.minimum(life.anon, life.work.memory_limit)
        if life.work.weight >= 0.01:
            wish[span] += np.minimum(life.cpu, life.work.cpu_limit)
    high = float(np.quantile(wish, 0.995))
    machine.cores = max(4, 2 * math.ceil(high / uniform(random, 0.6, 0.9) / 2))
    held = float(anon.max()) + 2 * GIB
    machine.memory_bytes = max(8 * GIB, 4 * GIB * math.ceil(held / uniform(random, 0.55, 0.85) / (4 * GIB)))


def add_mounts(machine: Machine) -> None:
    random, steps = machine.random, machine.steps
    machine.mounts.append(Mount("/dev/nvme0n1p1", "/", "ext4", 100 * GIB, course_root(machine)))
    if random.random() < 0.6:
        # Logs are rotated: up to nine tenths, then back.
        high, low = uniform(random, 0.8, 0.92), uniform(random, 0.5, 0.78)
        logs = low + (high - low) * np.minimum(
            teeth(random, steps, spread(random, 3 * HOUR, 2 * DAY), 0.1), 1.02
        )
        machine.mounts.append(Mount("/dev/nvme1n1", "/var/log", "ext4", 40 * GIB, np.minimum(logs, 0.935)))
    if random.random() < 0.6:
        level = uniform(random, 0.6, 0.91) + 0.004 * remember(random, steps, 6 * HOUR)
        machine.mounts.append(
            Mount("/dev/nvme2n1", "/var/lib/data", "xfs", 800 * GIB, np.minimum(level, 0.93))
        )
    if random.random() < 0.4:
        machine.mounts.append(
            Mount("/dev/dm-0", "/usr", "btrfs", 1 * GIB, np.full(steps, 0.998), is_readonly=True)
        )


def course_root(machine: Machine) -> Floats:
    """Images come with releases; at 85 % the kubelet removes those that nobody uses, down to 80 %."""
    random = machine.random
    level = uniform(random, 0.3, 0.8)
    growth = np.full(machine.steps, spread(random, 1e-9, 3e-7) * 10)
    for life in machine.lives:
        if life.start and life.work.kind == "Deployment" and random.random() < 0.3:
            growth[min(life.start, machine.steps - 1)] += uniform(random, 0.001, 0.012)
    course = np.empty(machine.steps)
    for step, more in enumerate(growth.tolist()):
        level += more
        if level > 0.85:
            level = 0.80
        course[step] = level
    return course + 0.001 * remember(random, machine.steps, 5 * MINUTE)


def add_mishaps(machine: Machine) -> None:
    """Agents are restarted, clocks are set, a driver answers late: nobody needs to get up."""
    random = machine.random
    weeks = machine.steps / (7 * DAY)
    for _ in range(random.poisson(2 * weeks)):
        start = between(random, HOUR, max(HOUR, machine.steps - 2 * HOUR))
        length = between(random, 1, 3) if random.random() < 0.7 else between(random, 3 * MINUTE, HOUR)
        if all(end + MINUTE < start or start + length + MINUTE < begin for begin, end in machine.gaps):
            machine.gaps.append((start, start + length))
    machine.gaps.sort()
    if random.random() < 0.4:
        machine.clock_steps.append((between(random, 0, machine.steps - 1), uniform(random, -40, 40)))
    if random.random() < 0.35:
        machine.gpus = Gpus(tuple(f"GPU-{number}" for number in range(between(random, 1, 8))))
        for _ in range(random.poisson(1.5 * weeks)):
            start = between(random, 0, machine.steps - 1)
            machine.gpus.failed.append((start, start + between(random, 1, 2)))
