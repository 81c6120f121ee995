"""Nodes from data folders on this machine: files, and the log of an agent that still writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope import __version__
from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text
from nodescope.base.time_range import DAY_MS, TimeRange
from nodescope.use.answers.clocks import ITS_FILES, find_ahead
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import ContainerEvent, list_events
from nodescope.use.answers.findings import run_studies
from nodescope.use.answers.foreign_record import rename_node
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.incidents.incident import IncidentList
from nodescope.use.answers.metrics import MetricRow, list_metrics
from nodescope.use.answers.node_summary.summary import NodeSummary, summarize_nodes
from nodescope.use.answers.node_summary.wrongs import NodeWrongs, read_wrongs
from nodescope.use.answers.overview import About, know_size
from nodescope.use.answers.ranked.ranking import list_busiest
from nodescope.use.answers.rightsizing.measure import read_needs
from nodescope.use.answers.rightsizing.need import NodeNeeds
from nodescope.use.answers.scanning.scan import NodeScan, scan_nodes
from nodescope.use.answers.snapshots import NodeFolders, ServedNode, View
from nodescope.use.answers.timeseries import FIGURES_MOST, Timeseries, TimeseriesRequest, read_timeseries
from nodescope.use.mcp.nodes.backend import clean_about, clean_lives, clean_metric
from nodescope.use.mcp.nodes.fleet import NodeDirectory, NodeEntry
from nodescope.use.mcp.nodes.stop import check_stopped
from nodescope.use.nodes.viewer_client import NodeAway
from nodescope.use.studies import StudyAnswer

# Files that do not say whose they are.
NAMELESS = "unnamed"


class LocalFolders(NodeDirectory):
    """Nodes of data folders on this machine, found anew as folders fill."""

    def __init__(self, paths: Sequence[Path], clock: Clock, folders: NodeFolders | None = None) -> None:
        self._paths = tuple(paths)
        self.folders = folders or NodeFolders(paths, clock)

    def entries(self) -> Mapping[str, NodeEntry]:
        names = [name_of(node) for node in self.folders.snapshot().nodes]
        return {name: NodeEntry(name, LocalNode(self.folders, name), "this machine") for name in names}

    def make_ready(self) -> None:
        """
        The checksums and footers of each node's newest day: a quarter of a second of a first answer.

        Most questions are about it; what is older is looked at with the first question about that.
        """
        for node in self.folders.snapshot().nodes:
            newest_ms = node.to_ms or 0
            for entry in node.catalog.select(newest_ms - DAY_MS, newest_ms):
                entry.find_damage()

    def trouble(self) -> str:
        """Why there is nothing to ask; empty when there is."""
        snapshot = self.folders.snapshot()
        if snapshot.nodes:
            return ""
        where = ", ".join(clean_text(str(path), 200) for path in self._paths[:3])
        if snapshot.refusals:
            first = snapshot.refusals[0]
            return f"no data that can be read in {where}: {clean_text(first.reason, 200)}"
        return f"there is no data in {where} yet; an agent's first samples come within seconds of its start"


def name_of(node: ServedNode) -> str:
    return clean_text(node.name) or NAMELESS


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One node of these folders."""

    _folders: NodeFolders
    _node: str

    def _view(self) -> View:
        check_stopped()
        view = self._folders.view()
        found = tuple(node for node in view.nodes if name_of(node) == self._node)
        if not found:
            raise RequestRejected(f'there is no data of node "{self._node}" any more')
        return replace(view, nodes=found[:1])

    @property
    def series_most(self) -> int:
        return FIGURES_MOST

    def read_about(self) -> About:
        view = self._view()
        (node,) = view.nodes
        problems = tuple(one.reason for one in view.snapshot.refusals)
        size = know_size(self._folders, view, node)
        about = About(self._node, __version__, node.from_ms, node.to_ms, len(node.listed), problems, size)
        return clean_about(replace(about, ahead_seconds=find_ahead(node), ahead_of=ITS_FILES))

    def read_metrics(self) -> list[MetricRow]:
        return [clean_metric(row) for row in list_metrics(self._view().nodes)]

    def read_lives(self, span: TimeRange | None) -> list[Life]:
        return clean_lives(self._view().lives(span), self._node)

    def read_timeseries(self, metric: str, span: TimeRange, ids: Sequence[str] | None) -> Timeseries:
        view = self._view()
        lives = None if ids is None else choose(view, ids)
        return read_timeseries(
            view, TimeseriesRequest(metric, span, 1, "auto", lives, limits=False, series_most=FIGURES_MOST)
        )

    def run_studies(self, study: str, metric: str, ids: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        view = self._view()
        return run_studies(view, study, metric, choose(view, ids), span, check=check_stopped)

    def list_busiest(self, metric: str, span: TimeRange) -> list[str]:
        return [life.id for life in list_busiest(self._view(), metric, span)]

    def read_events(self, span: TimeRange) -> list[ContainerEvent]:
        return list(list_events(self._view(), span).events)

    def read_incidents(self, span: TimeRange, ids: Sequence[str] | None) -> IncidentList | None:
        found = list_incidents(self._view(), span, None if ids is None else set(ids), check_stopped)
        return rename_node(found[0], self._node) if found else None

    def read_wrongs(self) -> NodeWrongs:
        found = read_wrongs(self._view(), check_stopped)
        if not found:
            raise NodeAway("it has no data yet")
        return replace(found[0], node=self._node)

    def summarize(self, span: TimeRange) -> NodeSummary:
        return rename_node(summarize_nodes(self._view(), span, check_stopped)[0], self._node)

    def scan(self, study: str, metric: str, span: TimeRange) -> NodeScan:
        return rename_node(scan_nodes(self._view(), study, metric, span, check_stopped)[0], self._node)

    def read_needs(self, span: TimeRange, ids: Sequence[str] | None) -> NodeNeeds:
        found = read_needs(self._view(), span, None if ids is None else set(ids), check_stopped)
        return rename_node(found[0], self._node)


def choose(view: View, ids: Sequence[str]) -> tuple[Life, ...]:
    by_id = {life.id: life for life in view.lives()}
    return tuple(by_id[one] for one in ids if one in by_id)
