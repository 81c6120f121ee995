"""A finding as an event of the archive, and back: every change of its life is one event."""

import json
from collections.abc import Mapping
from typing import Any

from nodescope.base.findings.node_finding import NodeFinding, parse_finding
from nodescope.base.frame import Event

# The event's kind; readers that look for starts and ends of containers pass over it.
FINDING = "finding"
# Its fact: the finding in JSON.
FACT = "finding"
# Events of a finding are a node's; the finding says whom it is about.
SCOPE = "node"


def make_event(finding: NodeFinding) -> Event:
    labels = (("kind", finding.kind), ("severity", finding.severity), ("state", finding.state))
    text = json.dumps(finding.to_json(), separators=(",", ":"), allow_nan=False)
    return Event(FINDING, round(finding.updated * 1e9), SCOPE, (finding.id,), labels, {FACT: text})


def read_event(kind: str, facts: Mapping[str, Any]) -> NodeFinding | None:
    """None for other events, and for one that cannot be read."""
    if kind != FINDING or not isinstance(facts.get(FACT), str):
        return None
    try:
        content = json.loads(facts[FACT])
    except (ValueError, RecursionError):
        return None
    return parse_finding(content) if isinstance(content, dict) else None
