"""
What happens on a generated node: ordinary services, noise that only looks like news, and one planted cause.

Noise is on every node: jobs by the clock, a crash loop that was there before,
traffic that rises and falls, levels that wander; on a churning node hundreds
of short jobs an hour as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from tools.incidents.machine import GIB, MIB, Floats, Machine, Wish, run_machine

CLASSES = ("cpu", "memory", "disk", "network", "leak", "deploy", "throttled", "bandwidth", "gpu")
KINDS = ("quiet", "busy", "churning")
NAMES = tuple(
    f"{first}-{second}"
    for first in ("cart", "search", "ads", "auth", "mail", "billing", "stock", "media", "chat", "maps")
    for second in ("api", "web", "worker", "db", "cache", "proxy", "index", "queue")
)
CONTAINERS = 100


@dataclass(frozen=True, slots=True)
class Planted:
    """The truth of one node."""

    kind: str
    """Of the node."""
    cause: str
    """One of CLASSES; empty on a node where nothing happens."""
    workload: str
    onset: int
    """The step."""


@dataclass(slots=True)
class Generated:
    """A node: `lead` steps of history, then the span that is asked about."""

    machine: Machine
    wishes: list[Wish]
    curves: Mapping[str, Floats]
    truth: Planted
    lead: int
    steps: int
    step_seconds: float
    has_counters: bool
    """Whether cycles and cache misses are counted for each container."""
    has_pressure: bool
    """Whether the kernel tells who waits; cgroup v1 does not."""


@dataclass(slots=True)
class Draft:
    """A node while it is being made."""

    random: np.random.Generator
    machine: Machine
    lead: int
    steps: int
    step_seconds: float
    wishes: list[Wish]

    def ticks(self, seconds: float) -> int:
        return max(1, round(seconds / self.step_seconds))

    def draw(self, low: float, high: float) -> float:
        return float(self.random.uniform(low, high))

    def wander(self, size: int, spread: float, seconds: float) -> Floats:
        """Autocorrelated noise around 1."""
        keep = np.exp(-self.step_seconds / seconds)
        found = self.random.standard_normal(size) * np.sqrt(1 - keep**2)
        found[0] = self.random.standard_normal()
        # x[t] + keep x[t-1] + keep^2 x[t-2] + ...: each round doubles how far back it reaches.
        reach = 1
        while reach < size and keep**reach > 1e-6:
            found[reach:] = found[reach:] + keep**reach * found[:-reach]
            reach *= 2
        around: Floats = np.exp(spread * found)
        return around


def generate(
    seed: int,
    kind: str,
    cause: str,
    step_seconds: float = 5.0,
    hours: float = 1.0,
    containers: int = CONTAINERS,
    lead_hours: float = 1.0,
) -> Generated:
    random = np.random.default_rng([seed, KINDS.index(kind), CLASSES.index(cause) + 1 if cause else 0])
    cores = float(random.choice([16, 32, 64]))
    machine = Machine(cores, cores * 4 * GIB, 400 * MIB, 1.2e9, cores * 4e9)
    lead, span = round(lead_hours * 3600 / step_seconds), round(hours * 3600 / step_seconds)
    draft = Draft(random, machine, lead, lead + span, step_seconds, [])
    names = list(random.permutation(NAMES))
    services = add_services(draft, names, kind, containers)
    add_noise(draft, kind, names)
    at = lead + round(draft.draw(0.2, 0.75) * span)
    truth = Planted(kind, "", "", at)
    if cause:
        for _ in range(2):
            add_bystander(draft, services, at)
        # A job by the clock that happens to begin just then.
        add_job(draft, f"{names[40]}-cron", at, 30.0, draft.draw(0.5, 2.5), 200 * MIB, 5 * MIB, kind="cron")
        workload = PLANTERS[cause](draft, services, at, str(names[-1]))
        truth = Planted(kind, cause, workload, at)
    curves = run_machine(machine, draft.wishes, draft.steps, random)
    has_counters = bool(random.random() < 0.5)
    has_pressure = bool(random.random() < 0.85)
    return Generated(
        machine, draft.wishes, curves, truth, lead, draft.steps, step_seconds, has_counters, has_pressure
    )


# -- what is always there -----------------------------------------------------------


def add_services(draft: Draft, names: list[str], kind: str, containers: int) -> list[list[Wish]]:
    """Each with one to five replicas; together a third of the cores, or two thirds on a busy node."""
    groups: list[list[Wish]] = []
    count = 0
    weights: list[float] = []
    while count < containers:
        replicas = min(containers - count, int(draft.random.integers(1, 6)))
        groups.append([make_service(draft, names[len(groups)], number) for number in range(replicas)])
        weights += [float(draft.random.lognormal(0, 1))] * replicas
        count += replicas
    scale = draft.machine.cores * (0.6 if kind == "busy" else 0.3) / sum(weights)
    files = draft.machine.memory_bytes * draft.draw(0.2, 0.4) / count
    for one, weight in zip((one for group in groups for one in group), weights):
        one.cpu = one.cpu * weight * scale
        one.anon = one.anon * draft.machine.memory_bytes * 0.35 / count
        one.file = one.file * files
        draft.wishes.append(one)
    return groups


def make_service(draft: Draft, name: str, number: int) -> Wish:
    steps = draft.steps
    seconds = np.arange(steps) * draft.step_seconds
    wave = 1 + draft.draw(0, 0.2) * np.sin(2 * np.pi * seconds / draft.draw(1800, 9000) + draft.draw(0, 6))
    spiky = draft.random.random() < 0.15
    cpu = wave * draft.wander(steps, 0.15, 60) * np.exp(0.2 * draft.random.standard_normal(steps))
    if spiky:
        cpu = cpu * np.where(draft.random.random(steps) < 0.02, draft.draw(2, 6), 1.0)
    io = draft.random.lognormal(-1, 1.5) * MIB * wave * draft.wander(steps, 0.3, 30)
    network = draft.random.lognormal(0, 1.5) * MIB * wave * draft.wander(steps, 0.2, 30)
    anon = draft.random.lognormal(0, 0.6) * draft.wander(steps, 0.01, 600)
    file = draft.random.lognormal(0, 0.8) * draft.wander(steps, 0.02, 600)
    return Wish(
        name, "service", 0, cpu, anon, file, io, network, draft.draw(0.3e9, 2e9), pod=f"{name}-{number}"
    )


def add_noise(draft: Draft, kind: str, names: list[str]) -> None:
    for number in range(int(draft.random.integers(1, 4))):
        add_cron(draft, f"{names[40 + number]}-cron")
    if draft.random.random() < 0.6:
        add_loop(draft, f"{names[45]}-broken")
    if kind == "churning":
        add_churn(draft, names[46:52])


def add_cron(draft: Draft, name: str) -> None:
    period, length = float(draft.random.choice([120, 300, 600, 900])), draft.draw(10, 50)
    at, cores = draft.draw(0, period), draft.draw(0.5, 2.5)
    while draft.ticks(at) < draft.steps - 1:
        add_job(draft, name, draft.ticks(at), length, cores, draft.draw(50, 400) * MIB, 5 * MIB, kind="cron")
        at += period


def add_job(
    draft: Draft,
    name: str,
    first: int,
    seconds: float,
    cores: float,
    size: float,
    io: float,
    kind: str = "job",
) -> None:
    count = min(draft.ticks(seconds), draft.steps - first)
    if count <= 0:
        return
    ones = np.ones(count)
    noisy = np.exp(0.2 * draft.random.standard_normal(count))
    ends = first + count < draft.steps
    draft.wishes.append(
        Wish(
            name,
            kind,
            first,
            cores * noisy,
            size * ones,
            20 * MIB * ones,
            io * noisy,
            MIB * ones,
            pod=f"{name}-{len(draft.wishes)}",
            ends=ends,
        )
    )


def add_loop(draft: Draft, name: str) -> None:
    """A crash loop that was there before the span."""
    at, number = draft.draw(0, 60), 0
    while draft.ticks(at) < draft.steps - 1:
        length = draft.draw(5, 25)
        add_job(draft, name, draft.ticks(at), length, draft.draw(0.1, 0.6), 80 * MIB, MIB, kind="loop")
        draft.wishes[-1].pod, draft.wishes[-1].restarts = f"{name}-0", number
        at += length + draft.draw(20, 120)
        number += 1


def add_churn(draft: Draft, names: list[str]) -> None:
    """Five hundred short jobs an hour, of some workloads and of none."""
    hours = draft.steps * draft.step_seconds / 3600
    for number in range(round(500 * hours)):
        name = (
            str(draft.random.choice(names)) + "-batch" if draft.random.random() < 0.7 else f"run-{number:05d}"
        )
        first = int(draft.random.integers(0, draft.steps - 1))
        add_job(
            draft,
            name,
            first,
            draft.draw(5, 60),
            draft.draw(0.05, 0.8),
            draft.draw(20, 300) * MIB,
            draft.draw(0, 3) * MIB,
        )


def add_bystander(draft: Draft, services: list[list[Wish]], at: int) -> None:
    """Innocent news near the cause: a service whose level moves by a third or so, some minutes before or after."""
    group = services[int(draft.random.integers(1, len(services)))]
    moment = at + draft.ticks(draft.draw(60, 600)) * int(draft.random.choice([-1, 1]))
    for one in group:
        one.cpu = one.cpu * np.where(np.arange(draft.steps) >= moment, draft.draw(1.2, 1.6), 1.0)


# -- the causes ---------------------------------------------------------------------


def shape(draft: Draft, at: int, rise_seconds: float, seconds: float) -> Floats:
    """From 0 to 1 at `at`, and back after some minutes, or not at all."""
    place = np.arange(draft.steps)
    up = np.clip((place - at) / max(1, draft.ticks(rise_seconds)), 0, 1)
    return np.where(place < at + draft.ticks(seconds), up, 0.0)


def choose_taker(draft: Draft, services: list[list[Wish]], name: str, at: int, seconds: float) -> Wish:
    """A service that was there, or a job that comes new."""
    if draft.random.random() < 0.5:
        return services[0][0]
    one = make_service(draft, name, 0)
    count = min(draft.ticks(seconds), draft.steps - at)
    for field in ("cpu", "anon", "file", "disk", "network"):
        setattr(
            one,
            field,
            getattr(one, field)[at : at + count] * (0.05 if field in ("cpu", "anon", "file") else 0.2),
        )
    one.anon, one.file = one.anon * GIB, one.file * GIB
    one = replace(one, first=at, ends=at + count < draft.steps, kind="job", got={})
    draft.wishes.append(one)
    return one


def part(one: Wish, curve: Floats) -> Floats:
    return curve[one.first : one.last]


def plant_cpu(draft: Draft, services: list[list[Wish]], at: int, name: str) -> str:
    seconds = draft.draw(75, 1500)
    one = choose_taker(draft, services, name, at, seconds)
    used = sum(float(wish.cpu.mean()) for wish in draft.wishes if wish.kind == "service")
    cores = (draft.machine.cores - used) * draft.draw(0.95, 1.6)
    one.cpu = one.cpu + cores * part(one, shape(draft, at, draft.draw(1, 30), seconds))
    return one.workload


def plant_memory(draft: Draft, services: list[list[Wish]], at: int, name: str) -> str:
    seconds = draft.draw(300, 1500)
    one = choose_taker(draft, services, name, at, seconds)
    held = sum(
        float(wish.anon.mean()) + float(wish.file.mean()) for wish in draft.wishes if wish.kind == "service"
    )
    size = draft.machine.memory_bytes * 0.96 - held * draft.draw(0.45, 0.8)
    curve = part(one, shape(draft, at, draft.draw(20, 180), seconds))
    one.anon = one.anon + max(size, draft.machine.memory_bytes * 0.3) * curve
    one.cpu = one.cpu + draft.draw(0.3, 1.0) * curve
    return one.workload


def plant_disk(draft: Draft, services: list[list[Wish]], at: int, name: str) -> str:
    seconds = draft.draw(75, 1500)
    one = choose_taker(draft, services, name, at, seconds)
    curve = part(one, shape(draft, at, draft.draw(1, 20), seconds))
    one.disk = one.disk + draft.machine.disk_bytes * draft.draw(0.9, 2.0) * curve
    one.cpu = one.cpu + draft.draw(0.1, 0.6) * curve
    return one.workload


def plant_network(draft: Draft, services: list[list[Wish]], at: int, name: str) -> str:
    seconds = draft.draw(75, 1500)
    one = choose_taker(draft, services, name, at, seconds)
    curve = part(one, shape(draft, at, draft.draw(1, 20), seconds))
    one.network = one.network + draft.machine.network_bytes * draft.draw(1.1, 2.5) * curve
    one.cpu = one.cpu + draft.draw(0.1, 0.8) * curve
    return one.workload


def plant_bandwidth(draft: Draft, services: list[list[Wish]], at: int, name: str) -> str:
    seconds = draft.draw(240, 1500)
    one = choose_taker(draft, services, name, at, seconds)
    curve = part(one, shape(draft, at, draft.draw(1, 20), seconds))
    cores = draft.machine.cores * draft.draw(0.08, 0.2)
    one.cpu, one.intensity = (
        one.cpu + cores * curve,
        draft.machine.bandwidth_bytes / cores * draft.draw(0.8, 1.4),
    )
    return one.workload


def plant_gpu(draft: Draft, services: list[list[Wish]], at: int, name: str) -> str:
    """Three services compute on one GPU; then a fourth wants all of it."""
    for many in services[2:5]:
        many[0].gpu = draft.draw(0.15, 0.3) * draft.wander(len(many[0].cpu), 0.1, 60.0)
    seconds = draft.draw(120, 1500)
    one = choose_taker(draft, services[:2], name, at, seconds)
    curve = part(one, shape(draft, at, draft.draw(1, 20), seconds))
    one.gpu = 0.02 + draft.draw(0.9, 2.0) * curve
    one.cpu = one.cpu + draft.draw(0.1, 0.6) * curve
    return one.workload


def plant_leak(draft: Draft, services: list[list[Wish]], at: int, _: str) -> str:
    """Grows from some minutes into the data until its own limit ends it."""
    one = services[0][0]
    begun = int(draft.draw(0.1, 0.7) * at)
    base = float(one.anon.mean())
    limit = base * draft.draw(2, 6)
    place = np.arange(draft.steps)
    one.anon = one.anon + (limit - base) * np.clip((place - begun) / max(1, at - begun), 0, 1)
    one.limit_bytes = limit
    back = min(draft.steps - 1, at + draft.ticks(draft.draw(2, 15)))
    after = Wish(
        one.workload,
        "service",
        back,
        one.cpu[back:],
        np.full(draft.steps - back, base),
        one.file[back:],
        one.disk[back:],
        one.network[back:],
        one.intensity,
        limit_bytes=limit,
        pod=one.pod,
        restarts=1,
    )
    for field in ("cpu", "anon", "file", "disk", "network"):
        setattr(one, field, getattr(one, field)[:at])
    one.anon = np.minimum(one.anon, limit)
    one.ends = one.ends_in_oom = True
    draft.wishes.append(after)
    return one.workload


def plant_deploy(draft: Draft, services: list[list[Wish]], at: int, _: str) -> str:
    """All pods are replaced within a minute; the new image needs more."""
    group = max(services[:12], key=lambda many: float(sum(one.cpu.mean() for one in many)))
    factor = draft.draw(1.6, 3.0)
    for number, one in enumerate(group):
        first = min(draft.steps - 2, at + draft.ticks(number * draft.draw(5, 15)))
        after = replace(
            one,
            first=first,
            cpu=one.cpu[first:] * factor,
            image="2.0.0",
            pod=f"{one.workload}-new{number}",
            got={},
        )
        for field in ("anon", "file", "disk", "network"):
            setattr(after, field, getattr(one, field)[first:])
        for field in ("cpu", "anon", "file", "disk", "network"):
            setattr(one, field, getattr(one, field)[:first])
        one.ends = True
        draft.wishes.append(after)
    return group[0].workload


def plant_throttled(draft: Draft, services: list[list[Wish]], at: int, _: str) -> str:
    """It wants more than its own quota lets it have."""
    one = services[0][0]
    base = float(one.cpu.mean())
    one.cpu = one.cpu / max(base, 1e-9) * draft.draw(0.3, 0.8)
    one.quota = float(one.cpu.mean()) * draft.draw(1.6, 2.5)
    one.cpu = one.cpu * (
        1 + part(one, shape(draft, at, draft.draw(1, 60), draft.draw(300, 2000))) * draft.draw(2, 5)
    )
    return one.workload


PLANTERS: Mapping[str, Callable[[Draft, list[list[Wish]], int, str], str]] = {
    "cpu": plant_cpu,
    "memory": plant_memory,
    "disk": plant_disk,
    "network": plant_network,
    "leak": plant_leak,
    "deploy": plant_deploy,
    "throttled": plant_throttled,
    "bandwidth": plant_bandwidth,
    "gpu": plant_gpu,
}
