"""One call of every tool, on the demo archive."""

from typing import Any

from nodescope.use.mcp.tools import TOOLS

API = {"container": "api", "node": "demo-1"}
CALLS: dict[str, dict[str, Any]] = {
    "what_is_wrong": {"node": "demo-1"},
    "list_nodes": {},
    "top_containers": {"by": "memory", "node": "demo-1"},
    "list_containers": {"node": "demo-2", "sort": "memory"},
    "summarize_container": {"container": "encoder", "node": "demo-1"},
    "analyze_container": {**API, "study": "changepoint", "metric": "memory"},
    "explain_incident": {"at": "-6m", "minutes": 4, "node": "demo-1"},
    "compare_windows": {**API, "a_from": "-20m", "a_to": "-12m", "b_from": "-7m", "b_to": "now"},
    "find_metrics": {"question": "does its cpu spike periodically?"},
    "list_metrics": {"search": "memory"},
    "scan": {"study": "trend", "metric": "memory", "node": "demo-1"},
    "rightsize": {"node": "demo-1"},
    "summarize_node": {"node": "demo-1"},
}
assert set(CALLS) == set(TOOLS)
