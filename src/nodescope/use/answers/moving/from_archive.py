"""The state of nodes from what their archives say: figures of the span, and what each workload's pods used."""

from collections.abc import Iterable, Mapping, Sequence

from nodescope.use.answers.moving.node_state import NodeState, RunningPod
from nodescope.use.answers.node_summary.summary import NodeSummary
from nodescope.use.answers.rightsizing.need import ContainerNeed, NodeNeeds

CONTAINERS_ONLY = "its CPU use is that of its containers; what else runs there was not measured"


def derive_state(summary: NodeSummary, needs: NodeNeeds) -> NodeState:
    throttled = [one.throttled for one in needs.needs if one.throttled is not None]
    return NodeState(
        summary.node,
        summary.cores,
        summary.cpu_mean,
        summary.pressure_cpu,
        max(throttled, default=None),
        summary.memory_bytes,
        summary.memory_last,
        summary.pressure_memory,
        summary.pressure_io,
        pods=tuple(list_pods(needs.needs)),
        unknown=(*dict.fromkeys(needs.unseen), *(() if summary.is_cpu_whole else (CONTAINERS_ONLY,))),
    )


def list_pods(needs: Iterable[ContainerNeed]) -> Iterable[RunningPod]:
    """Each replica that runs at the end, with the sum over its containers."""
    groups: dict[tuple[str, str, str], list[ContainerNeed]] = {}
    for one in needs:
        if one.replicas:
            groups.setdefault((one.namespace, one.workload, one.kind), []).append(one)
    for (namespace, workload, kind), containers in groups.items():
        cores = add_known([one.cpu_mean for one in containers])
        memory = add_known([one.memory_most for one in containers])
        for _ in range(max(one.replicas for one in containers)):
            yield RunningPod(namespace, workload, kind, "", cores, memory)


def add_known(values: Sequence[float | None]) -> float | None:
    """None as soon as one is not known: half of a pod is no pod."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def join_states(summaries: Mapping[str, NodeSummary], needs: Mapping[str, NodeNeeds]) -> list[NodeState]:
    return [derive_state(one, needs[name]) for name, one in summaries.items() if name in needs]
