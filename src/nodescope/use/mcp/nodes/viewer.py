"""
A node behind its viewer: the same questions, put to the viewer's HTTP API.

What a viewer says about tenants is cleaned here, whatever the viewer did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from nodescope.base.time_range import TimeRange
from nodescope.serve.http_client import Endpoint
from nodescope.use.answers.clocks import THIS_MACHINE
from nodescope.use.answers.container_table import NO_METRIC
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import EVENTS_MOST, ContainerEvent
from nodescope.use.answers.findings import STUDIES_MOST
from nodescope.use.answers.foreign_record import Record, rename_node
from nodescope.use.answers.incidents.incident import IncidentList
from nodescope.use.answers.incidents.json_form import parse_incidents
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.node_summary.sentence import parse_summaries
from nodescope.use.answers.node_summary.summary import NodeSummary
from nodescope.use.answers.node_summary.wrongs import NodeWrongs, parse_wrongs
from nodescope.use.answers.overview import About
from nodescope.use.answers.rightsizing.json_form import parse_needs
from nodescope.use.answers.rightsizing.need import NodeNeeds
from nodescope.use.answers.scanning.json_form import parse_scans
from nodescope.use.answers.scanning.scan import NodeScan
from nodescope.use.answers.timeseries import SERIES_MOST, Timeseries
from nodescope.use.answers.wire import (
    EVENTS,
    EXACT_TIMESERIES,
    parse_about,
    parse_containers,
    parse_metrics,
    parse_studies,
)
from nodescope.use.mcp.nodes.backend import clean_about, clean_lives, clean_metric
from nodescope.use.mcp.nodes.stop import check_stopped
from nodescope.use.nodes.viewer_client import NodeAway, ViewerAccess, ViewerClient, render_span
from nodescope.use.studies import StudyAnswer

# One figure for the whole span, as it is, and no look at limits, which costs as much again.
ONE_FIGURE = {"max_points": "1", "limits": "off", "exact": "on"}
ROWS = 1000
# The list of metrics changes with the agent's version.
METRICS_NS = 120_000_000_000
LIVES_NS = 2_000_000_000


class ViewerNode:
    """One node of one viewer."""

    def __init__(self, node: str, endpoint: Endpoint, access: ViewerAccess) -> None:
        self._node = node
        self._clock = access.clock
        self._client = ViewerClient(node, endpoint, access)
        self._metrics: tuple[int, list[MetricRow]] | None = None
        self._lives: tuple[int, list[Life]] | None = None

    # -- the questions ----------------------------------------------------------

    @property
    def series_most(self) -> int:
        return SERIES_MOST

    def read_about(self) -> About:
        check_stopped()
        found = self._client.ask("/api/instance", {})
        self._client.choose_node(found)
        about = clean_about(parse_about(found, self._node))
        # What the dates of files say of the node goes before its viewer's clock, which may be another's.
        if about.ahead_seconds is not None:
            return about
        return replace(about, ahead_seconds=self._client.ahead_seconds, ahead_of=THIS_MACHINE)

    def read_metrics(self) -> list[MetricRow]:
        mono_ns = self._clock.mono_ns()
        if self._metrics is None or mono_ns - self._metrics[0] > METRICS_NS:
            rows = parse_metrics(self._ask_node("/api/metrics", {}))
            self._metrics = (mono_ns, [clean_metric(row) for row in rows])
        return self._metrics[1]

    def read_lives(self, span: TimeRange | None) -> list[Life]:
        """A tool asks for them several times over; they are kept for as long as one takes."""
        mono_ns = self._clock.mono_ns()
        if self._lives is None or mono_ns - self._lives[0] > LIVES_NS:
            query = {"metric": NO_METRIC, "limit": str(ROWS), "sort": "last_seen", "range": "all"}
            table = parse_containers(self._ask_node("/api/containers", query))
            self._lives = (mono_ns, clean_lives([row.life for row in table.rows], self._node))
        return [life for life in self._lives[1] if span is None or life.is_within(span)]

    def read_timeseries(self, metric: str, span: TimeRange, ids: Sequence[str] | None) -> Timeseries:
        query = {"metric": metric, **name_ids(ids), **ONE_FIGURE, **render_span(span)}
        return EXACT_TIMESERIES.parse(self._ask_node("/api/timeseries", query))

    def run_studies(self, study: str, metric: str, ids: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        query = {"metric": metric, **name_ids(ids), **render_span(span), "exact": "on"}
        return parse_studies(self._ask_node(f"/api/study/{quote(study)}", query))

    def list_busiest(self, metric: str, span: TimeRange) -> list[str]:
        query = {"metric": metric, "sort": "value", "limit": str(STUDIES_MOST), **render_span(span)}
        table = parse_containers(self._ask_node("/api/containers", query))
        return [row.life.id for row in table.rows if row.figure]

    def read_events(self, span: TimeRange) -> list[ContainerEvent]:
        query = {"limit": str(EVENTS_MOST), **render_span(span)}
        return list(EVENTS.parse(self._ask_node("/api/events", query)).events)

    def read_incidents(self, span: TimeRange, ids: Sequence[str] | None) -> IncidentList | None:
        found = parse_incidents(self._ask_node("/api/incidents", {**name_ids(ids), **render_span(span)}))
        return rename_node(found[0], self._node) if found else None

    def read_wrongs(self) -> NodeWrongs:
        found = parse_wrongs(self._ask_node("/api/wrong", {}), self._node)
        if found is None:
            raise NodeAway("its viewer has no data of it")
        return found

    def summarize(self, span: TimeRange) -> NodeSummary:
        found = parse_summaries(self._ask_node("/api/node", render_span(span)))
        return self._of_node(found)

    def scan(self, study: str, metric: str, span: TimeRange) -> NodeScan:
        query = {"metric": metric, **render_span(span)}
        found = parse_scans(self._ask_node(f"/api/scan/{quote(study)}", query))
        return self._of_node(found)

    def read_needs(self, span: TimeRange, ids: Sequence[str] | None) -> NodeNeeds:
        found = parse_needs(self._ask_node("/api/rightsize", {**name_ids(ids), **render_span(span)}))
        return self._of_node(found)

    def _of_node(self, found: Sequence[Record]) -> Record:
        if not found:
            raise NodeAway("its viewer has no data of it")
        return rename_node(found[0], self._node)

    # -- the wire -----------------------------------------------------------------

    def _ask_node(self, path: str, query: Mapping[str, str]) -> Any:
        check_stopped()
        return self._client.ask_node(path, query)

    def close(self) -> None:
        self._client.close()


def name_ids(ids: Sequence[str] | None) -> dict[str, str]:
    return {} if ids is None else {"containers": ",".join(ids)}
