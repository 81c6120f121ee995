"""
Which pods to move, one after the other, each by what all pods together would lose less.

A node is crowded when its tasks wait for CPUs that others have (pressure, and
most cores in use), when they wait for memory, or when the memory bus is full.
Waiting although cores are free is by quotas or pinning: another node does not
cure it, and the answer says so.

    lost(node) = cores in use * q(share in use)      q(u) = u / (1 - u), its tangent from 0.9 on

A move is advised where the sum over both nodes falls most, the target stays
below 70 % of its cores and 80 % of its memory, and is not crowded itself. It is
then taken as done, and the next is looked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nodescope.use.answers.moving.node_state import NodeState, RunningPod, list_unknown

# Shares of time or of the resource from which on a node is crowded.
CONTENTION, BUSY = 0.10, 0.70
MEMORY_PRESSURE = 0.05
BUS = 0.80
IO_PRESSURE = 0.20
# Waiting with fewer cores in use than this is not by too few cores.
FREE_CORES = 0.60
# What a target may have in use afterwards.
TARGET_BUSY, TARGET_FILLED, TARGET_BUS = 0.70, 0.80, 0.70
MOST_MOVES = 5
# A move that saves less than this share of what a node loses is not worth a restart.
LEAST_GAIN = 0.10
# Waiting grows without bounds at 1; from here on it grows linearly.
FULL = 0.9
NOT_CHECKED = (
    "volumes, affinity and disruption budgets are not looked at: a scheduler decides where a new pod runs"
)


@dataclass(frozen=True, slots=True)
class MoveAdvice:
    """One pod that should run elsewhere."""

    pod: RunningPod
    source: str
    target: str
    resource: str
    """cpu, memory or bus: of what the source has too little."""
    reason: str
    source_after: float
    """Share of the resource in use on the source afterwards; before, and so for the target."""
    source_before: float
    target_after: float
    target_before: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Moves, the first first; and what could not be told."""

    moves: tuple[MoveAdvice, ...]
    crowded: tuple[str, ...]
    """Each crowded node, and by what."""
    stays: tuple[str, ...]
    """Why a crowded node keeps all its pods, or waits for another reason."""
    unknown: tuple[str, ...]


def derive_lost(used: float, cores: float) -> float:
    """Cores' worth of work that the tasks of a node lose by waiting."""
    share = max(0.0, used / cores)
    if share <= FULL:
        return used * share / (1 - share)
    return used * (FULL / (1 - FULL) + (share - FULL) / (1 - FULL) ** 2)


def find_shortage(node: NodeState) -> tuple[str, str]:
    """What a node has too little of, and in words; empty where nothing."""
    busy = node.busy
    if busy is not None and busy >= FREE_CORES and (node.contention or 0.0) >= CONTENTION:
        return (
            "cpu",
            f"tasks wait for a CPU in {node.contention:.0%} of the time, {busy:.0%} of its cores are in use",
        )
    if (node.memory_pressure or 0.0) >= MEMORY_PRESSURE:
        return "memory", f"tasks wait for memory in {node.memory_pressure:.0%} of the time"
    if (node.bus or 0.0) >= BUS:
        return "bus", f"{node.bus:.0%} of its memory bandwidth is in use"
    return "", ""


def describe_other_waits(node: NodeState) -> Iterator[str]:
    """Waiting that no move cures, or of which the cause is not known."""
    busy = node.busy
    if busy is not None and busy < FREE_CORES and (node.contention or 0.0) >= CONTENTION:
        cause = (
            "a quota holds containers back: look at their limits (rightsize)"
            if (node.throttled or 0.0) >= CONTENTION
            else "by quotas, or because they are pinned"
        )
        yield (
            f"{node.name}: tasks wait for a CPU in {node.contention:.0%} of the time although "
            f"{1 - busy:.0%} of its cores are free: {cause}; another node would not help"
        )
    if (node.io_pressure or 0.0) >= IO_PRESSURE:
        yield (
            f"{node.name}: tasks wait for I/O in {node.io_pressure:.0%} of the time; "
            "which pod causes that is not in these figures"
        )


def advise(nodes: Sequence[NodeState]) -> Advice:
    state = {node.name: node for node in nodes}
    shortages = {node.name: find_shortage(node) for node in nodes}
    crowded = tuple(f"{name}: {words}" for name, (_, words) in shortages.items() if words)
    moves: list[MoveAdvice] = []
    while len(moves) < MOST_MOVES:
        best = choose_move(state, shortages)
        if best is None:
            break
        moves.append(best)
        take_as_done(state, best)
    moved = {move.source for move in moves}
    stays = [line for node in nodes for line in describe_other_waits(node)]
    for name, (resource, _) in shortages.items():
        if resource and name not in moved:
            stays.append(f"{name}: {explain_stay(state, name, resource)}")
    unknown = [*list_unknown(nodes), NOT_CHECKED]
    return Advice(tuple(moves), crowded, tuple(stays), tuple(unknown))


def choose_move(state: dict[str, NodeState], shortages: dict[str, tuple[str, str]]) -> MoveAdvice | None:
    """The move that saves most, of all crowded nodes."""
    found = [
        (gain, move)
        for name, (resource, words) in shortages.items()
        if resource
        for gain, move in list_moves(state, name, resource, words)
    ]
    return max(found, key=lambda one: (one[0], one[1].pod.full_name), default=(0.0, None))[1]


def list_moves(
    state: dict[str, NodeState], source: str, resource: str, words: str
) -> Iterator[tuple[float, MoveAdvice]]:
    here = state[source]
    measure = {"cpu": measure_cpu, "memory": measure_memory, "bus": measure_bus}[resource]
    if is_relieved(here, resource):
        return
    for pod in here.pods:
        if pod.fixed:
            continue
        for there in state.values():
            if there.name == source or there.refuses or find_shortage(there)[0] or not fits(pod, there):
                continue
            judged = measure(pod, here, there)
            if judged is not None:
                gain, shares = judged
                yield gain, MoveAdvice(pod, source, there.name, resource, words, *shares)


def is_relieved(node: NodeState, resource: str) -> bool:
    """By the moves that were advised already."""
    share = {"cpu": node.busy, "memory": node.filled, "bus": node.bus}[resource]
    limit = {"cpu": BUSY, "memory": TARGET_FILLED, "bus": TARGET_BUS}[resource]
    return share is None or share < limit


def fits(pod: RunningPod, node: NodeState) -> bool:
    """Within what a target may have in use; what is not known of either does not fit."""
    if pod.cores is None or node.busy is None or node.cores is None or node.contention is None:
        return False
    if node.busy + pod.cores / node.cores > TARGET_BUSY:
        return False
    if any(node.labels.get(key) != value for key, value in pod.selector):
        return False
    if None not in (pod.requested, node.unrequested) and (pod.requested or 0.0) > (node.unrequested or 0.0):
        return False
    if pod.memory_bytes is None or node.filled is None or node.memory_bytes is None:
        # A pod of which only the cores are known goes where memory is no trouble.
        return (node.memory_pressure or 0.0) < MEMORY_PRESSURE and (node.filled or 0.0) <= TARGET_BUSY
    return node.filled + pod.memory_bytes / node.memory_bytes <= TARGET_FILLED


Judged = tuple[float, tuple[float, float, float, float]]


def measure_cpu(pod: RunningPod, here: NodeState, there: NodeState) -> Judged | None:
    """What is lost less on both nodes; None where it is not worth a restart."""
    used, cores, more, room = here.used_cores, here.cores, there.used_cores, there.cores
    if not pod.cores or used is None or not cores or more is None or not room:
        return None
    left = max(0.0, used - pod.cores)
    before = derive_lost(used, cores) + derive_lost(more, room)
    gain = before - derive_lost(left, cores) - derive_lost(more + pod.cores, room)
    if gain < LEAST_GAIN * derive_lost(used, cores):
        return None
    return gain, (left / cores, used / cores, (more + pod.cores) / room, more / room)


def measure_memory(pod: RunningPod, here: NodeState, there: NodeState) -> Judged | None:
    """The share of the crowded node's memory that it frees, less what it takes of the other's."""
    size, whole, room = pod.memory_bytes, here.memory_bytes, there.memory_bytes
    if not size or not whole or not room or here.filled is None or there.filled is None:
        return None
    freed, taken = size / whole, size / room
    if freed < LEAST_GAIN / 2:
        return None
    return freed - taken * there.filled, (
        here.filled - freed,
        here.filled,
        there.filled + taken,
        there.filled,
    )


def measure_bus(pod: RunningPod, here: NodeState, there: NodeState) -> Judged | None:
    """Shares of the bus are taken as alike on both nodes: how fast a bus is was not measured."""
    moved, total = pod.bandwidth, sum(one.bandwidth or 0.0 for one in here.pods)
    if not moved or not total or here.bus is None or there.bus is None:
        return None
    share = here.bus * moved / total
    if share < LEAST_GAIN * here.bus or there.bus + share > TARGET_BUS:
        return None
    return share - share * there.bus, (here.bus - share, here.bus, there.bus + share, there.bus)


def take_as_done(state: dict[str, NodeState], move: MoveAdvice) -> None:
    """The pod is on its target from here on, with all that it uses."""
    here, there = state[move.source], state[move.target]
    pods = list(here.pods)
    pods.remove(move.pod)
    bus = (move.source_after, move.target_after) if move.resource == "bus" else (here.bus, there.bus)
    state[move.source] = replace(add_use(here, move.pod, -1), pods=tuple(pods), bus=bus[0])
    state[move.target] = replace(add_use(there, move.pod, 1), pods=(*there.pods, move.pod), bus=bus[1])


def add_use(node: NodeState, pod: RunningPod, sign: int) -> NodeState:
    cores, memory = sign * (pod.cores or 0.0), sign * (pod.memory_bytes or 0.0)
    free = None if node.unrequested is None else node.unrequested - sign * (pod.requested or 0.0)
    return replace(
        node,
        unrequested=free,
        used_cores=None if node.used_cores is None else max(0.0, node.used_cores + cores),
        used_bytes=None if node.used_bytes is None else max(0.0, node.used_bytes + memory),
    )


def explain_stay(state: dict[str, NodeState], name: str, resource: str) -> str:
    """Why no pod of a crowded node is advised to move."""
    node = state[name]
    movable = [pod for pod in node.pods if not pod.fixed]
    if not movable:
        reasons = sorted({pod.fixed for pod in node.pods})
        return f"none of its pods can be moved ({'; '.join(reasons) or 'none is known'})"
    if all(pod.cores is None for pod in movable):
        return "what its pods use is not known"
    if resource == "bus" and all(pod.bandwidth is None for pod in movable):
        return "which of its pods fill the memory bus is not known"
    if not any(fits(pod, other) for pod in movable for other in state.values() if other.name != name):
        return "no other node has room for any of its pods, or none is known well enough"
    return "no single move would help enough: its pods need fewer cores each, or the cluster more nodes"
