"""What the watcher of a node found: shared by all who tell it and all who read it."""

from nodescope.base.findings.node_finding import (
    CONFIRMED_STATES,
    KINDS,
    SEVERITIES,
    STATES,
    NodeFinding,
    describe_health,
    parse_finding,
    rank_findings,
)

__all__ = [
    "CONFIRMED_STATES",
    "KINDS",
    "SEVERITIES",
    "STATES",
    "NodeFinding",
    "describe_health",
    "parse_finding",
    "rank_findings",
]
