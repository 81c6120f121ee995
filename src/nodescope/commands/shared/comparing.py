"""Connects the viewer's comparison of two spans with the tool that answers it to agents: one function, one sentence."""

from typing import TYPE_CHECKING

import anyio

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange

if TYPE_CHECKING:
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.answers.wire import Json
    from nodescope.use.mcp.protocol.answer import ToolAnswer
    from nodescope.use.viewer.request import Compare

# As long as the page waits for a study.
DEADLINE_SECONDS = 60.0


def build_compare(folders: "NodeFolders") -> "Compare":
    def compare(node: str, container: str, spans: tuple[TimeRange, TimeRange] | None) -> "Json":
        # The tools are loaded when somebody compares.
        from nodescope.use.mcp.nodes.fleet import Fleet
        from nodescope.use.mcp.nodes.local import LocalFolders
        from nodescope.use.mcp.protocol.argument import check_arguments
        from nodescope.use.mcp.tools.compare_windows import NAMES, TOOL

        given = {name: word for name, word in (("node", node), ("container", container)) if word}
        if spans:
            ends = [moment_ms for span in spans for moment_ms in (span.from_ms, span.to_ms)]
            given |= {name: str(moment_ms) for name, moment_ms in zip(NAMES, ends, strict=True)}
        clock = SystemClock()
        fleet = Fleet(LocalFolders((), clock, folders), clock, DEADLINE_SECONDS)
        return render_comparison(
            anyio.run(TOOL.run, fleet, check_arguments(TOOL.name, TOOL.arguments, given))
        )

    return compare


def render_comparison(answer: "ToolAnswer") -> "Json":
    return {
        "sentence": answer.headline,
        "differences": [
            {
                "sentence": one.sentence,
                "node": one.node,
                "container": one.container,
                "metric": one.metric,
                "unit": one.unit,
                "before": one.evidence.get("before"),
                "after": one.evidence.get("after"),
            }
            for one in answer.findings
        ],
        "looked_at": answer.looked_at,
        "not_looked_at": list(answer.not_looked_at),
    }
