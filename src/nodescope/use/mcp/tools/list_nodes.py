"""Which nodes are there, are they ready, and how new is their data?"""

from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import render_moment
from nodescope.use.answers.clocks import SKEW_SECONDS, NodeClock, list_skews, measured_against
from nodescope.use.answers.overview import About
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.time_text import render_age


async def run(fleet: Fleet, _: Values) -> ToolAnswer:
    entries = fleet.choose(None)
    replies = await fleet.ask(entries, lambda backend: backend.read_about())
    abouts = replies.answers.values()
    ready = [about for about in abouts if about.to_ms is not None]
    empty = {about.node: "ready, but it has no data yet" for about in abouts if about.to_ms is None}
    now_ms = fleet.clock.wall_ns() // 1_000_000
    trouble = fleet.directory.trouble()
    off = list_off(ready, fleet.directory.server_ahead(), now_ms)
    return ToolAnswer(
        headline=" ".join(
            [
                render_headline(ready, len(entries), now_ms),
                *(f"{one[0].upper()}{one[1:]}." for one in off[:1]),
            ]
        ),
        status="found" if ready else "not_enough_data",
        findings=tuple(render_node(about, now_ms) for about in ready[:MOST_FINDINGS]),
        names=tuple(about.node for about in ready[MOST_FINDINGS:]),
        looked_at=f"{len(entries)} nodes, each asked for its newest data",
        not_looked_at=(
            *([trouble] if trouble else []),
            *off,
        ),
        nodes_away=dict(sorted({**replies.missing, **empty}.items())),
        next_call=suggest(ready),
    )


def render_headline(ready: list[About], known: int, now_ms: int) -> str:
    nodes = "node is" if len(ready) == 1 else "nodes are"
    waiting = f"; {known - len(ready)} more not" if known > len(ready) else ""
    if not ready:
        return f"No node is ready ({known} known)."
    newest_ms = max(clock_of(about).correct(now_ms) for about in ready)
    return (
        f"{len(ready)} {nodes} ready{waiting}; the newest data is of {render_moment(newest_ms)} "
        f"({render_age(newest_ms, now_ms)})."
    )


def clock_of(about: About) -> NodeClock:
    return NodeClock(about.to_ms or 0, about.ahead_seconds, about.ahead_of)


def list_off(ready: list[About], server_ahead: float | None, now_ms: int) -> list[str]:
    """Whose clock is off; that one node's data is older is in its own line."""
    clocks = {about.node: measured_against(clock_of(about), server_ahead) for about in ready}
    lines = list_skews(clocks, now_ms)
    if server_ahead is not None and abs(server_ahead) >= SKEW_SECONDS:
        word = "behind" if server_ahead > 0 else "ahead of"
        off = render_seconds(abs(server_ahead))
        lines.append(f"this machine's clock is {off} {word} the API server's: ages are by this machine's")
    return lines


def render_node(about: About, now_ms: int) -> ToolFinding:
    start_ms, end_ms = about.from_ms or 0, about.to_ms or 0
    corrected_ms = clock_of(about).correct(now_ms)
    return ToolFinding(
        f"{about.node}: ready, {about.containers} containers seen (each restart is one more), data from {render_moment(start_ms)} "
        f"to {render_moment(end_ms)} ({render_age(corrected_ms, now_ms)}){render_ahead(about)}.",
        "node",
        node=about.node,
        start_at=start_ms / 1000,
        end_at=end_ms / 1000,
        evidence={
            "ready": True,
            "version": about.version,
            "containers_seen": about.containers,
            "newest_seconds": (now_ms - corrected_ms) / 1000,
            "clock_ahead_seconds": about.ahead_seconds,
            "files_not_read": len(about.problems) or None,
            "problem": about.problems[0] if about.problems else None,
        },
    )


def render_ahead(about: About) -> str:
    ahead = about.ahead_seconds or 0.0
    if abs(ahead) < SKEW_SECONDS:
        return ""
    return f"; its clock is {render_seconds(abs(ahead))} {'ahead' if ahead > 0 else 'slow'}"


def suggest(ready: list[About]) -> NextCall | None:
    if not ready:
        return None
    arguments = {"by": "memory", "node": ready[0].node} if len(ready) == 1 else {"by": "memory"}
    return NextCall(
        "top_containers", arguments, "who uses the most; by may be cpu, memory, throttled, pressure"
    )


TOOL = Tool(
    "list_nodes",
    "Nodes",
    "Which nodes there are, how new their data is, why some are not ready. Start here.",
    (),
    run,
)
