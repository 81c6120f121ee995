"""
What is wrong on a node: the findings of its watcher; where none ran, the incidents of the last hour and who
will reach its memory limit soon.

Both come from the archive and its live tail, so that a data folder, a viewer
and a copy in an object store give the same answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodescope.base.findings import NodeFinding, describe_health, parse_finding, rank_findings
from nodescope.base.quantity import render_count
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.read.files.told_findings import read_findings
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.incidents.explain import MOST_INCIDENTS
from nodescope.use.answers.incidents.incident import IncidentList
from nodescope.use.answers.incidents.json_form import parse_incidents, render_incidents
from nodescope.use.answers.incidents.sentence import render_list
from nodescope.use.answers.node_summary.nearing import find_nearing
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.wire import Json

# As far back as the store of findings reaches.
BACK_MS = 7 * 86_400_000
# Of what is over, the last hour is shown.
OVER_SECONDS = 3600.0
INCIDENT_MS = 3_600_000

# The incidents of a node's last hour; None where there is nothing to look at.
Find = Callable[[ServedNode], IncidentList | None]


@dataclass(frozen=True, slots=True)
class NodeWrongs:
    """One node's part, the worst first."""

    node: str
    newest_ms: int
    findings: tuple[NodeFinding, ...]
    is_watched: bool
    """False where no watcher has ever said anything: then incidents and limits that are near answer."""
    incidents: IncidentList | None = None

    @property
    def told(self) -> list[NodeFinding]:
        """Confirmed, open: what somebody should know."""
        return [one for one in self.findings if one.is_confirmed]

    @property
    def is_healthy(self) -> bool:
        if any(one.is_page_worthy for one in self.findings):
            return False
        return self.is_watched or not (self.incidents and self.incidents.incidents)

    @property
    def sentence(self) -> str:
        """The one line that viewer, commands and MCP server say."""
        if self.is_watched or self.findings:
            return describe_health(self.findings, self.node) + self._beside()
        return (
            render_list(self.incidents) if self.incidents else f"There is no data of {self.node} to judge by."
        )

    def _beside(self) -> str:
        """The incidents that come after what was told first."""
        count = len(self.incidents.incidents) if self.incidents and not self.is_watched else 0
        return f" Beside it there {render_were(count)} in the last hour." if count else ""


def render_were(incidents: int) -> str:
    return f"{'was' if incidents == 1 else 'were'} {render_count(incidents, 'incident')}"


def read_wrongs(view: View, check: Callable[[], None] = lambda: None) -> list[NodeWrongs]:
    def find(node: ServedNode) -> IncidentList | None:
        return find_last_hour(view, node, check)

    found = [read_node(node, find) for node in view.nodes if node.to_ms is not None]
    by_name = {clean_text(node.name): node for node in view.nodes}
    return [
        one if one.is_watched else replace(one, findings=find_nearing(view, by_name[one.node], check))
        for one in found
    ]


def read_node(node: ServedNode, find: Find) -> NodeWrongs:
    """`find` is asked only where no watcher ran: to look for incidents costs more than all else here."""
    newest_ms = node.to_ms or 0
    known = read_findings(node.catalog, newest_ms - BACK_MS, newest_ms, node.tail)
    shown = [one for one in known if one.is_open or newest_ms / 1000 - (one.ended or 0.0) <= OVER_SECONDS]
    name = clean_text(node.name)
    if known:
        return NodeWrongs(name, newest_ms, tuple(rank_findings(shown)), is_watched=True)
    return NodeWrongs(name, newest_ms, (), is_watched=False, incidents=find(node))


def find_last_hour(
    view: View, node: ServedNode, check: Callable[[], None] = lambda: None, most: int = MOST_INCIDENTS
) -> IncidentList | None:
    newest_ms = node.to_ms or 0
    oldest_ms = node.from_ms if node.from_ms is not None else newest_ms
    span = TimeRange(max(oldest_ms, newest_ms - INCIDENT_MS), newest_ms)
    only = View(view.engine, view.snapshot, (node,))
    found = list_incidents(only, span, None, check, most) if span.to_ms > span.from_ms else []
    return found[0] if found else None


# -- the viewer's JSON ------------------------------------------------------------------


def render_wrongs(found: list[NodeWrongs]) -> Json:
    return {"nodes": [render_one(one) for one in found]}


def render_one(one: NodeWrongs) -> Json:
    incidents = render_incidents([one.incidents])["nodes"] if one.incidents else []
    return {
        "node": one.node,
        "sentence": one.sentence,
        "newest": one.newest_ms / 1000,
        "watched": one.is_watched,
        "findings": [{**finding.to_json(), "evidence": dict(finding.evidence)} for finding in one.findings],
        "incidents": incidents,
    }


def parse_wrongs(content: Mapping[str, Any], node: str) -> NodeWrongs | None:
    """Of a viewer's answer the first node; what is not well formed of it is left out."""
    rows = content.get("nodes")
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], Mapping) else None
    if row is None:
        return None
    listed = row.get("findings")
    findings = [
        parse_finding(one) for one in (listed if isinstance(listed, list) else ()) if isinstance(one, Mapping)
    ]
    incidents = parse_incidents({"nodes": row.get("incidents") or []})
    newest = row.get("newest")
    return NodeWrongs(
        node,
        round(newest * 1000) if isinstance(newest, int | float) else 0,
        tuple(rank_findings(one for one in findings if one is not None)),
        bool(row.get("watched")),
        incidents[0] if incidents else None,
    )
