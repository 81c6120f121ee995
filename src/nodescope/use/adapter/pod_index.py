"""
Which pods there are, with which labels, and on which node; and where each node's agent answers.

Fifty thousand pods are kept in some 20 MiB: of each its name, uid and node, and
its labels once for all that have the same.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from nodescope.use.adapter.label_selector import Matches, parse_selector

Labels = tuple[tuple[str, str], ...]
RUNNING = "Running"


@dataclass(frozen=True, slots=True)
class KnownPod:
    """One pod, as far as its metrics need it."""

    namespace: str
    name: str
    uid: str
    node: str
    """Empty where it has none yet."""
    is_running: bool


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """The agent's pod of a node."""

    node: str
    address: str
    created: str


class PodIndex:
    """Fed by a watch of pods; any thread."""

    def __init__(self, agents: str, agents_namespace: str = "") -> None:
        """`agents`: the labels of the agents' pods; of their namespace, where it is known."""
        self._is_agent: Matches = parse_selector(agents)
        self._agents_namespace = agents_namespace
        self._lock = threading.Lock()
        self._pods: dict[str, dict[Labels, dict[str, KnownPod]]] = {}
        """By namespace, labels and name."""
        self._labels: dict[Labels, Labels] = {}
        """Each set once, however many pods have it."""
        self._places: dict[tuple[str, str], Labels] = {}
        self._agents: dict[str, dict[str, KnownAgent]] = {}
        """By node and uid: during a rollout there are two."""

    # -- what the watch says --------------------------------------------------

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        fresh = PodIndex("", self._agents_namespace)
        fresh._is_agent = self._is_agent
        for item in items:
            fresh.change(item)
        with self._lock:
            self._pods, self._labels = fresh._pods, fresh._labels
            self._places, self._agents = fresh._places, fresh._agents

    def change(self, item: Mapping[str, Any]) -> None:
        about = item.get("metadata") or {}
        labels = parse_labels(about.get("labels"))
        pod = parse_known_pod(item)
        with self._lock:
            self._drop(pod.namespace, pod.name)
            labels = self._labels.setdefault(labels, labels)
            self._pods.setdefault(pod.namespace, {}).setdefault(labels, {})[pod.name] = pod
            self._places[pod.namespace, pod.name] = labels
            self._note_agent(pod, labels, item)

    def remove(self, item: Mapping[str, Any]) -> None:
        about = item.get("metadata") or {}
        namespace, name = str(about.get("namespace") or ""), str(about.get("name") or "")
        with self._lock:
            pod = self._drop(namespace, name)
            if pod is not None and pod.node in self._agents:
                self._agents[pod.node].pop(pod.uid, None)

    def _drop(self, namespace: str, name: str) -> KnownPod | None:
        labels = self._places.pop((namespace, name), None)
        if labels is None:
            return None
        alike = self._pods[namespace][labels]
        pod = alike.pop(name)
        if not alike:
            del self._pods[namespace][labels]
            self._labels.pop(labels, None)
            if not self._pods[namespace]:
                del self._pods[namespace]
        return pod

    def _note_agent(self, pod: KnownPod, labels: Labels, item: Mapping[str, Any]) -> None:
        address = str((item.get("status") or {}).get("podIP") or "")
        if self._agents_namespace not in ("", pod.namespace) or not self._is_agent(dict(labels)):
            return
        about = item.get("metadata") or {}
        mine = self._agents.setdefault(pod.node, {})
        mine.pop(pod.uid, None)
        # Whatever its state is called: another container of the same pod may be failing.
        if pod.node and address and not about.get("deletionTimestamp"):
            mine[pod.uid] = KnownAgent(pod.node, address, str(about.get("creationTimestamp") or ""))

    # -- what is asked ----------------------------------------------------------

    def __len__(self) -> int:
        return len(self._places)

    def count_agents(self) -> int:
        return sum(map(bool, self._agents.values()))

    def select(self, namespace: str, selector: str) -> list[KnownPod]:
        matches = parse_selector(selector)
        with self._lock:
            groups = list(self._pods.get(namespace, {}).items())
            return [pod for labels, alike in groups if matches(dict(labels)) for pod in alike.values()]

    def find(self, namespace: str, name: str) -> KnownPod | None:
        with self._lock:
            labels = self._places.get((namespace, name))
            return None if labels is None else self._pods[namespace][labels][name]

    def list_nodes(self) -> list[str]:
        """Those that have an agent."""
        with self._lock:
            return [node for node, agents in self._agents.items() if agents]

    def find_agent(self, node: str) -> KnownAgent | None:
        """The newest of a node."""
        with self._lock:
            mine = self._agents.get(node)
            return max(mine.values(), key=lambda agent: agent.created) if mine else None


def parse_known_pod(item: Mapping[str, Any]) -> KnownPod:
    about, spec, status = (item.get(part) or {} for part in ("metadata", "spec", "status"))
    return KnownPod(
        intern(str(about.get("namespace") or "")),
        str(about.get("name") or ""),
        str(about.get("uid") or ""),
        intern(str(spec.get("nodeName") or "")),
        status.get("phase") == RUNNING and not about.get("deletionTimestamp"),
    )


def parse_labels(found: object) -> Labels:
    return tuple(intern_pairs(found)) if isinstance(found, Mapping) else ()


def intern_pairs(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in sorted(found.items()):
        yield intern(str(key)), intern(str(value))
