"""Generated nodes on which something goes wrong at a known second, or nothing does."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.stories.generate.background import fill_busy, fill_churning, fill_quiet
from tests.stories.generate.cluster import GIB, MIB, Course, Workload
from tests.stories.generate.machine import StoryNode, pulses, ramp, sawtooth, step
from tests.stories.told.incidents import add_victims, loop_crashes
from tests.watch.replay import Replay

HOUR = 3600
END_MS = 1_772_366_400_000


@dataclass(frozen=True, slots=True)
class Planted:
    """What the watcher has to tell."""

    kind: str
    workload: str
    """Or the device."""
    begins: int
    ends: int
    """By this second it must be told: the kill, the end of the load, or the end of the span."""


@dataclass(frozen=True, slots=True)
class Trial:
    replay: Replay
    planted: tuple[Planted, ...]


def make_node(seed: int, hours: float, story: str) -> StoryNode:
    node = StoryNode("node-a", seed, round(hours * HOUR), END_MS, story=story)
    node.has_api = seed % 3 != 0
    node.names_workloads = True
    return node


def fill(node: StoryNode, containers: int) -> None:
    {0: fill_quiet, 1: fill_busy, 2: fill_churning}[node.seed % 3](node, containers)


def pick(node: StoryNode, low: float, high: float) -> int:
    return int(node.random.integers(round(low * node.seconds), round(high * node.seconds)))


def add_teeth(rise: Course, height: float, period: float) -> Course:
    return lambda second: rise(second) + height * ((second % period) / period)


def leak(seed: int, hours: float, containers: int) -> Trial:
    """Rises from some second to its limit, straight, in steps or under a heap that is collected; then it is killed."""
    node = make_node(seed, hours, "watch-leak")
    begins = pick(node, 0.15, 0.3)
    killed = begins + pick(node, 0.25, 0.6)
    limit = float(node.random.choice([0.5, 1, 2])) * GIB
    low = limit * float(node.random.uniform(0.2, 0.45))
    path = ramp(begins, killed, low, limit)
    if seed % 3 == 1:
        # A heap that fills and is collected, on top.
        tooth, period = 0.12 * limit, float(node.random.uniform(60, 240))
        path = add_teeth(ramp(begins, killed, low, limit - tooth), tooth, period)
    work = Workload("leaky", memory_limit=limit)
    life = node.run(work, end=killed, cpu=0.2, anon=path, file=0.1 * limit)[0]
    life.is_killed = True
    node.again(life, killed + 6, cpu=0.2, anon=low, file=0.1 * limit)
    fill(node, containers)
    told = Planted("memory_leak", "leaky", begins, killed), Planted("oom_kill", "leaky", killed, killed + 120)
    return Trial(Replay(node), told)


def kill(seed: int, hours: float, containers: int) -> Trial:
    """Killed out of the blue: a request that takes all of it within seconds."""
    node = make_node(seed, hours, "watch-kill")
    killed = pick(node, 0.3, 0.8)
    work = Workload("burst", memory_limit=1 * GIB)
    life = node.run(work, end=killed, cpu=0.2, anon=ramp(killed - 8, killed, 300 * MIB, 1 * GIB))[0]
    life.is_killed = True
    node.again(life, killed + 6, cpu=0.2, anon=300 * MIB)
    fill(node, containers)
    return Trial(Replay(node), (Planted("oom_kill", "burst", killed, killed + 120),))


def throttle(seed: int, hours: float, containers: int) -> Trial:
    node = make_node(seed, hours, "watch-throttle")
    begins = pick(node, 0.3, 0.6)
    limit = float(node.random.choice([0.25, 0.5, 1, 2]))
    demand = limit * float(node.random.uniform(1.1, 2.0))
    work = Workload("encoder", namespace="media", cpu_limit=limit, memory_limit=1 * GIB)
    node.run(work, 2, cpu=step(begins, 0.4 * limit, demand, begins + 1800), anon=200 * MIB)
    fill(node, containers)
    return Trial(Replay(node), (Planted("cpu_throttling", "encoder", begins, begins + 1800),))


def neighbour(seed: int, hours: float, containers: int) -> Trial:
    """CPU, disk or memory; others wait for at least ten minutes."""
    node = make_node(seed, hours, "watch-neighbour")
    add_victims(node)
    begins = pick(node, 0.3, 0.6)
    ends = begins + int(node.random.integers(600, 1500))
    if seed % 3 == 0:
        cores = node.cores * float(node.random.uniform(1.0, 1.5))
        node.run(Workload("etl", namespace="batch"), cpu=step(begins, 0.15, cores, ends))
    elif seed % 3 == 1:
        write = node.disk_bytes_per_second * float(node.random.uniform(1.2, 1.8))
        node.run(Workload("etl", namespace="batch"), cpu=0.3, write=step(begins, 200e3, write, ends))
    else:
        node.run(Workload("etl", "Job", "batch"), 2, start=begins, end=ends, cpu=0.6 * node.cores)
    fill_busy(node, containers)
    return Trial(Replay(node), (Planted("noisy_neighbour", "etl", begins, ends),))


def crash_loop(seed: int, hours: float, containers: int) -> Trial:
    node = make_node(seed, hours, "watch-crash")
    loop_crashes(node)
    fill(node, containers)
    return Trial(Replay(node), (Planted("crash_loop", "migrator", 0, 1800),))


def full_disk(seed: int, hours: float, containers: int) -> Trial:
    node = make_node(seed, hours, "watch-disk")
    begins, full = pick(node, 0.1, 0.3), pick(node, 0.75, 0.95)
    node.filesystem_share = ramp(begins, full, float(node.random.uniform(0.3, 0.7)), 0.995)
    fill(node, containers)
    return Trial(Replay(node), (Planted("disk_full", "/", begins, full),))


def gpu_loss(seed: int, hours: float, containers: int) -> Trial:
    node = make_node(seed, hours, "watch-gpu")
    gone = pick(node, 0.2, 0.8)
    fill(node, containers)
    return Trial(
        Replay(node, ("GPU-0", "GPU-1"), gone), (Planted("gpu_loss", "nvidia GPU-0", gone, gone + 180),)
    )


def healthy(seed: int, hours: float, containers: int) -> Trial:
    """Nothing is wrong: heaps are collected, caches warm up and fill their limits, cron jobs come, the day rises."""
    node = make_node(seed, hours, "watch-healthy")
    random = node.random
    period = float(random.uniform(300, 3000))
    heap = Workload("heap", memory_limit=1 * GIB)
    node.run(heap, cpu=0.3, anon=sawtooth(period, 250 * MIB, float(random.uniform(500, 850)) * MIB))
    warm = Workload("warm", memory_limit=2 * GIB)
    tau = float(random.uniform(600, 4000))
    top = float(random.uniform(0.5, 0.8)) * 2 * GIB
    node.run(warm, cpu=0.2, anon=lambda second: 200 * MIB + (top - 200 * MIB) * (1 - np.exp(-second / tau)))
    cache = Workload("filesrv", memory_limit=500 * MIB)
    node.run(cache, cpu=0.2, anon=60 * MIB, file=ramp(0, node.seconds, 100 * MIB, 2 * GIB), read=8e6)
    day = float(random.uniform(0, 86_400))

    def swing(level: float) -> Course:
        return lambda second: level * (1 + 0.5 * np.sin(2 * np.pi * (second + day) / 86_400))

    node.run(Workload("web", memory_limit=1 * GIB), 2, cpu=swing(0.6), anon=swing(400 * MIB))
    batch = Workload("report", "CronJob", "data", cpu_limit=1.0, memory_limit=1 * GIB)
    for start in range(int(random.integers(60, 900)), node.seconds, 900):
        node.run(batch, start=start, end=min(start + 90, node.seconds), cpu=1.1, anon=400 * MIB)
    node.run(Workload("api", cpu_limit=1.0), cpu=pulses(600, 30, 0.3, 1.1))
    node.filesystem_share = ramp(0, node.seconds, 0.4, 0.4 + float(random.uniform(0, 0.15)))
    fill(node, containers)
    return Trial(Replay(node, ("GPU-0",)), ())


Make = Callable[[int, float, int], Trial]
PLANTS: dict[str, Make] = {
    "leak": leak,
    "kill": kill,
    "throttle": throttle,
    "neighbour": neighbour,
    "crash_loop": crash_loop,
    "full_disk": full_disk,
    "gpu_loss": gpu_loss,
}
