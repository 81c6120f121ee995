"""
Questions of an autoscaler, answered: values of pods, of nodes, and sums over the pods of a label.

Pods without a value are left out of a list: an HPA then takes them as idle when
it would scale up and as busy when it would scale down. A sum cannot leave
anything out: there a pod that is missing counts as what it was when last known,
or as the mean of the others, whichever is more, so that missing data never
scale anything down.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodescope.base.errors import RequestRejected
from nodescope.use.adapter.metric_table import AskedMetric
from nodescope.use.adapter.pod_index import KnownPod, PodIndex
from nodescope.use.adapter.reports import NodeReport, Reports, pick_number

# Below this share of known pods a sum would be a guess.
LEAST_KNOWN = 0.5
# Questions whose last values are remembered, and pods in each.
REMEMBERED = 1000
PODS_REMEMBERED = 5000


class NothingKnown(RequestRejected):
    """No agent told the value, or it is too old."""

    status, title = 404, "not found"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value, and of when it is."""

    name: str
    """Of the pod or node."""
    value: float
    at_ms: int


@dataclass(slots=True)
class Answers:
    """On the event loop."""

    index: PodIndex
    reports: Reports
    _last: OrderedDict[tuple[str, str, str], dict[str, float]] = field(default_factory=OrderedDict)
    """By namespace, metric and selector: each pod's last value."""

    async def read_pods(self, metric: AskedMetric, pods: Sequence[KnownPod]) -> list[MetricValue]:
        """Of those that are known; NothingKnown when none is."""
        placed = [pod for pod in pods if pod.node]
        told = await self.reports.gather(dict.fromkeys(pod.node for pod in placed))
        values = [
            MetricValue(pod.name, value, told[pod.node].newest_ms)
            for pod in placed
            if pod.node in told and (value := pick(told[pod.node], metric, pod.uid)) is not None
        ]
        if not values:
            raise NothingKnown(self._explain(metric, pods, told))
        return values

    async def read_nodes(self, metric: AskedMetric, nodes: Sequence[str]) -> list[MetricValue]:
        told = await self.reports.gather(nodes)
        values = [
            MetricValue(node, value, report.newest_ms)
            for node, report in told.items()
            if (value := pick(report, metric, "")) is not None
        ]
        if not values:
            why = self.reports.explain(nodes[0]) if nodes and nodes[0] not in told else "it is not measured"
            raise NothingKnown(f"{metric.name} is not known of any of {len(nodes)} nodes: {why}")
        return values

    async def read_sum(self, metric: AskedMetric, namespace: str, selector: str) -> MetricValue:
        """Over the running pods of a label; of a node's number: the mean over them."""
        pods = [pod for pod in self.index.select(namespace, selector) if pod.is_running]
        values = await self.read_pods(metric, pods)
        known = {value.name: value.value for value in values}
        if len(known) < LEAST_KNOWN * len(pods):
            raise NothingKnown(
                f"{metric.name} is known of {len(known)} of {len(pods)} pods: too few for a sum"
            )
        total = self._fill(metric, namespace, selector, pods, known)
        return MetricValue("", total, min(value.at_ms for value in values))

    def _fill(
        self,
        metric: AskedMetric,
        namespace: str,
        selector: str,
        pods: Sequence[KnownPod],
        known: Mapping[str, float],
    ) -> float:
        last = self._last.pop((namespace, metric.name, selector), {})
        mean = sum(known.values()) / len(known)
        filled = {
            pod.name: known[pod.name] if pod.name in known else max(mean, last.get(pod.name, mean))
            for pod in pods
        }
        self._last[namespace, metric.name, selector] = dict(list(filled.items())[:PODS_REMEMBERED])
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        return sum(filled.values()) if not is_share(metric) else sum(filled.values()) / len(filled)

    def _explain(self, metric: AskedMetric, pods: Sequence[KnownPod], told: Mapping[str, NodeReport]) -> str:
        if not pods:
            return f"{metric.name}: no pod matches"
        silent = [pod.node for pod in pods if pod.node and pod.node not in told]
        if silent:
            return f"{metric.name} of {len(pods)} pods is not known: {silent[0]}: {self.reports.explain(silent[0])}"
        return f"{metric.name} of {len(pods)} pods is not known: it was not measured in the last seconds"


def is_share(metric: AskedMetric) -> bool:
    """What is not added up over pods."""
    return metric.of_node or metric.number not in ("cpu", "memory")


def pick(report: NodeReport, metric: AskedMetric, uid: str) -> float | None:
    numbers = report.metrics if metric.of_node else report.read_pod(uid)
    found = pick_number(numbers, metric.number, metric.place)
    return None if found is None else found * metric.factor
