"""Next calls that several tools suggest."""

from nodescope.use.mcp.protocol.answer import Fact, NextCall
from nodescope.use.mcp.tools.shared.time_text import render_iso


def suggest_study(
    container: str | None, study: str, metric: str, node: str, why: str, **more: Fact
) -> NextCall:
    arguments = {"container": container, "study": study, "metric": metric, "node": node, **more}
    return NextCall("analyze_container", arguments, why)


def suggest_incident(at_seconds: float, node: str, why: str) -> NextCall:
    return NextCall("explain_incident", {"at": render_iso(at_seconds * 1000), "node": node}, why)
