"""
What the cluster's page asks of one node, whoever answers: a data folder here, files in an object store, or the
node's viewer over HTTP.

What a viewer sends is checked before it is kept: a node must not be able to
fill the memory of all others' page, nor to break it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nodescope.base.text import clean_name, clean_text
from nodescope.base.time_range import TimeRange
from nodescope.read.files.store_listing import StoreListing, find_failure
from nodescope.serve.http_client import Endpoint, HttpClient
from nodescope.use.answers.foreign_record import rename_node
from nodescope.use.answers.minutes.json_form import parse_minutes
from nodescope.use.answers.minutes.node_minutes import (
    CELLS_MOST,
    EVENTS_SHOWN,
    FINDINGS_SHOWN,
    NodeMinutes,
    cover,
    read_minutes,
)
from nodescope.use.answers.ranked.workload_ranking import rank_workloads
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.cluster.grid import MEASURED
from nodescope.use.nodes.viewer_client import (
    ANSWER_BYTES,
    NodeAway,
    ViewerAccess,
    ViewerClient,
    render_span,
)

# Workloads of one node; the largest count.
WORKLOADS_MOST = 300
# As long as a node's own page waits at the most, and the connections that it uses.
PAGE_SECONDS = 60.0
PAGES_KEPT = 4


@dataclass(frozen=True, slots=True)
class CellsWanted:
    """Cells of a span, or of the newest `seconds` that a node has, where no span is known yet."""

    step_ms: int
    span: TimeRange | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkloadOnNode:
    """What one workload used on one node over a span."""

    namespace: str
    name: str
    kind: str
    pods: int
    restarts: int
    used: float
    unit: str


class AskedNode(Protocol):
    """One node. Calls block, and are made on threads; NodeAway where there is no answer."""

    is_local: bool

    def read_minutes(self, wanted: CellsWanted) -> NodeMinutes: ...

    def rank(self, metric: str, span: TimeRange) -> list[WorkloadOnNode]: ...

    def close(self) -> None: ...


class FolderNode:
    """A node whose data folder is on this machine."""

    is_local = True

    def __init__(self, folders: NodeFolders, name: str) -> None:
        self._folders = folders
        self._name = name

    def read_minutes(self, wanted: CellsWanted) -> NodeMinutes:
        view = self._folders.view()
        node = next((one for one in view.nodes if one.name == self._name), None)
        if node is None or node.to_ms is None:
            raise NodeAway("its data folder has no data")
        span = wanted.span or TimeRange(node.to_ms - round(wanted.seconds * 1000), node.to_ms)
        only = type(view)(view.engine, view.snapshot, (node,))
        return read_minutes(only, span, wanted.step_ms)[0]

    def rank(self, metric: str, span: TimeRange) -> list[WorkloadOnNode]:
        view = self._folders.view()
        nodes = tuple(one for one in view.nodes if one.name == self._name)
        rows = rank_workloads(self._folders, type(view)(view.engine, view.snapshot, nodes), metric, span)
        return [
            WorkloadOnNode(
                clean_name(row.group.workload.namespace),
                clean_name(row.group.workload.name),
                clean_text(row.group.workload.kind, 40),
                row.use.pods,
                row.group.restarts,
                row.use.over_span,
                row.unit,
            )
            for row in rows[:WORKLOADS_MOST]
        ]

    def close(self) -> None:
        """Its files are shared with the viewer."""


class StoreNode(FolderNode):
    """A node whose files are in an object store."""

    is_local = False

    def __init__(self, folders: NodeFolders, name: str, store: StoreListing) -> None:
        super().__init__(folders, name)
        self._store = store

    def read_minutes(self, wanted: CellsWanted) -> NodeMinutes:
        found = super().read_minutes(wanted)
        self._check(TimeRange(found.from_ms, found.to_ms))
        return found

    def rank(self, metric: str, span: TimeRange) -> list[WorkloadOnNode]:
        found = super().rank(metric, span)
        self._check(span)
        return found

    def _check(self, span: TimeRange) -> None:
        """A store that does not answer is not a node on which nothing was measured."""
        mine = [one for one in self._store.entries if one.node == self._name]
        inside = [one for one in mine if one.from_ms <= span.to_ms and one.to_ms >= span.from_ms]
        if reason := find_failure(inside):
            raise NodeAway(reason)


class RemoteNode:
    """A node behind its viewer."""

    is_local = False

    def __init__(self, node: str, endpoint: Endpoint, access: ViewerAccess) -> None:
        self._node = node
        self.client = ViewerClient(node, endpoint, access)
        self.pages = HttpClient(
            endpoint,
            PAGE_SECONDS,
            ANSWER_BYTES,
            connect_seconds=access.deadline_seconds,
            kept=PAGES_KEPT,
            clock=access.clock,
        )
        """For its own page, where a study may take its time."""

    def read_minutes(self, wanted: CellsWanted) -> NodeMinutes:
        when = render_span(wanted.span) if wanted.span else {"range": f"{wanted.seconds:.0f}s"}
        content = self.client.ask_by_name("/api/minutes", {**when, "step": str(wanted.step_ms // 1000)})
        try:
            found = parse_minutes(content)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            found = []
        if not found or not is_sound(found[0], wanted):
            raise NodeAway("its viewer sent what is not an answer to the question")
        return rename_node(found[0], self._node)

    def rank(self, metric: str, span: TimeRange) -> list[WorkloadOnNode]:
        query = {"metric": metric, "limit": str(WORKLOADS_MOST), **render_span(span)}
        content = self.client.ask_by_name("/api/workloads", query)
        try:
            unit = clean_text(str(content["unit"]), 40)
            return [parse_workload(row, unit) for row in content["workloads"][:WORKLOADS_MOST]]
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            raise NodeAway("its viewer sent what is not an answer to the question") from None

    def close(self) -> None:
        self.client.close()
        self.pages.close()


def is_sound(found: NodeMinutes, wanted: CellsWanted) -> bool:
    """As many cells as its own range has, of the width that was asked for; of a span that was asked for, all of it."""
    number = (found.to_ms - found.from_ms) // max(found.step_ms, 1)
    if found.step_ms != wanted.step_ms or not 0 < number <= CELLS_MOST or found.from_ms % found.step_ms:
        return False
    if len(found.events) > EVENTS_SHOWN or len(found.findings) > FINDINGS_SHOWN:
        return False
    if wanted.span is not None:
        asked = cover(wanted.span, wanted.step_ms)
        if (found.from_ms, found.to_ms) != (asked.from_ms, asked.to_ms):
            return False
    return all(len(getattr(found, name)) == number for name in MEASURED)


def parse_workload(row: dict[str, object], unit: str) -> WorkloadOnNode:
    used = float(str(row.get("over_span") or 0.0))
    if not math.isfinite(used):
        raise ValueError("no use is infinite")
    return WorkloadOnNode(
        clean_name(row.get("namespace")),
        clean_name(row["name"]),
        clean_text(str(row.get("kind") or ""), 40),
        int(str(row.get("pods") or 0)),
        int(str(row.get("restarts") or 0)),
        used,
        unit,
    )


def list_names(nodes: Sequence[str], most: int) -> str:
    shown = ", ".join(clean_text(node, 60) for node in nodes[:most])
    return f"{shown} and {len(nodes) - most} more" if len(nodes) > most else shown
