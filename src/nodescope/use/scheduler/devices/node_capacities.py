"""
How many whole devices each node has, by its allocatable resources.

The watch of nodes is of their metadata alone: whole nodes are ten times as
long, and change with every heartbeat. What a node has changes seldom, so whole
nodes are listed now and then, and only in clusters with pods that ask for
devices.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.base.log import Log
from nodescope.kube.client import Client
from nodescope.kube.watch import ListPages
from nodescope.serve.step_thread import StepThread
from nodescope.use.scheduler.devices.claims import read_key
from nodescope.use.scheduler.devices.device_request import is_whole, parse_count

log = Log("devices")
LOOK_SECONDS = 0.5
RENEW_SECONDS = 600.0
# A list for nodes that came since the last one.
LEAST_SECONDS = 10.0
# Small pages: the answers to kube-scheduler wait while one is parsed.
PAGE = 20


def parse_capacity(item: Mapping[str, Any]) -> dict[str, int]:
    status = item.get("status")
    room = status.get("allocatable") if isinstance(status, Mapping) else None
    room = room if isinstance(room, Mapping) else {}
    return {name: parse_count(count) for name, count in room.items() if is_whole(name)}


@dataclass(slots=True)
class NodeCapacities:
    """By node; read by every request, replaced as a whole."""

    client: Client | None
    clock: Clock
    is_wanted: Callable[[], bool]
    """Whether any pod asks for devices."""
    names: Callable[[], Iterable[str]]
    """The nodes that the watch knows."""
    found: dict[str, dict[str, int]] = field(default_factory=dict)
    reason: str = ""
    """Why the last list failed; empty when it did not."""
    _listed_mono_ns: int | None = None
    _thread: StepThread | None = None

    def find(self, node: str, resource: str) -> int | None:
        """None where the node has not been read."""
        found = self.found.get(node)
        return None if found is None else found.get(resource, 0)

    def start(self) -> None:
        if self.client is not None:
            self._thread = StepThread("capacities", self._look, self.client, self.clock)
            self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()

    def _look(self) -> float:
        self.step()
        return LOOK_SECONDS

    def step(self) -> None:
        if self.client is None or not self._is_due():
            return
        self._listed_mono_ns = self.clock.mono_ns()
        try:
            pages = ListPages(self.client, "/api/v1/nodes", {}, page=PAGE)
            self.found = {read_key(item)[1:]: parse_capacity(item) for item in pages.items()}
            self.reason = ""
        except (KubernetesAway, KubernetesRefused, OSError) as error:
            if str(error) != self.reason:
                log.warning("devices of nodes not known", reason=str(error))
            self.reason = str(error)

    def _is_due(self) -> bool:
        if not self.is_wanted():
            return False
        if self._listed_mono_ns is None:
            return True
        age_seconds = (self.clock.mono_ns() - self._listed_mono_ns) / 1e9
        if age_seconds < LEAST_SECONDS:
            return False
        return (
            age_seconds >= RENEW_SECONDS
            or bool(self.reason)
            or any(name not in self.found for name in self.names())
        )
