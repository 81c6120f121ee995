"""Next calls that several tools suggest."""

from math import ceil, floor

from nodescope.base.time_range import TimeRange
from nodescope.use.mcp.protocol.answer import Fact, NextCall
from nodescope.use.mcp.tools.shared.time_text import render_iso


def keep_span(span: TimeRange) -> dict[str, Fact]:
    """The same span in the next call, in whole seconds that cover it."""
    start, end = floor(span.from_ms / 1000), ceil(span.to_ms / 1000)
    return {"from": render_iso(start * 1000), "to": render_iso(end * 1000)}


def suggest_study(
    container: str | None, study: str, metric: str, node: str, why: str, **more: Fact
) -> NextCall:
    arguments = {"container": container, "study": study, "metric": metric, "node": node, **more}
    return NextCall("analyze_container", arguments, why)


def suggest_incident(at_seconds: float, node: str, why: str) -> NextCall:
    return NextCall("explain_incident", {"at": render_iso(at_seconds * 1000), "node": node}, why)
