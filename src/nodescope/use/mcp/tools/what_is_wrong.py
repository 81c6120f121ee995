"""Is anything wrong now, and what is the worst of it?"""

from collections.abc import Sequence
from dataclasses import replace

from nodescope.base.findings import NodeFinding
from nodescope.base.quantity import render_seconds
from nodescope.base.text import clean_name, clean_text
from nodescope.use.answers.node_summary.wrongs import NodeWrongs
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.incident import make_finding, moment_of
from nodescope.use.mcp.tools.shared.next_call import suggest_incident
from nodescope.use.mcp.tools.shared.time_text import render_at

MOST_VICTIMS = 3
WEIGHTS = {"kill": 8.0, "hurt": 4.0, "waste": 2.0, "curious": 1.0}
# An incident of the archive hurt somebody, as far as one can tell.
INCIDENT_WEIGHT = 3.0


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = await fleet.ask_all(values["node"], lambda backend: backend.read_wrongs())
    parts = list(replies.answers.values())
    found = [finding for part in parts for finding in tell(part)]
    ranked = sorted(found, key=lambda one: -one.weight)
    return ToolAnswer(
        headline=render_headline(parts),
        status="found" if ranked else "none",
        findings=tuple(ranked[:MOST_FINDINGS]),
        left_out=max(0, len(ranked) - MOST_FINDINGS),
        rest="a node shows them",
        looked_at=f"what the watchers of {', '.join(list(replies.answers)[:8])} found{describe_unwatched(parts)}",
        nodes_away=replies.missing,
        next_call=suggest(parts),
    )


def describe_unwatched(parts: Sequence[NodeWrongs]) -> str:
    names = [part.node for part in parts if not part.is_watched]
    return (
        f"; incidents of the last hour and memory that nears its limit on {', '.join(names[:8])}, where no watcher has told of any"
        if names
        else ""
    )


def tell(part: NodeWrongs) -> list[ToolFinding]:
    """Confirmed findings; where no watcher ran, who is near its limit, and incidents."""
    incidents = part.incidents.incidents if part.incidents else ()
    return [
        *(render_finding(one, part) for one in part.told),
        *(replace(make_finding(one, part.newest_ms), weight=INCIDENT_WEIGHT) for one in incidents),
    ]


def render_finding(one: NodeFinding, part: NodeWrongs) -> ToolFinding:
    left = one.time_to_limit_seconds
    facts: dict[str, Fact] = {
        "severity": one.severity,
        "cause": clean_name(one.cause) or None,
        "victims": one.victims_count or None,
        "victims_most": "; ".join(map(clean_name, one.victims[:MOST_VICTIMS])) or None,
        "time_to_limit_seconds": None if left is None else round(left),
        "silenced": True if one.silenced else None,
        "said": one.feedback or None,
        "finding": one.id,
    }
    return ToolFinding(
        clean_text(one.sentence, 400),
        one.kind,
        node=part.node,
        container=clean_name(one.who) or None,
        start_at=one.onset,
        when=render_at(round(one.onset * 1000), part.newest_ms),
        evidence=facts,
        weight=weigh(one),
    )


def weigh(one: NodeFinding) -> float:
    """By consequence; the sooner the limit, the more."""
    left = one.time_to_limit_seconds
    soon = 0.0 if left is None else 1 / (1 + left / 600)
    return (WEIGHTS[one.severity] + soon) * (0.1 if one.silenced else 1.0)


def render_headline(parts: Sequence[NodeWrongs]) -> str:
    """The node's own sentence; of several nodes the worst one's, with how many are healthy."""
    if len(parts) == 1:
        return parts[0].sentence
    ill = [part for part in parts if not part.is_healthy]
    if not ill:
        return f"Nothing is wrong on {len(parts)} nodes."
    worst = min(ill, key=lambda part: -max([weigh(one) for one in part.told] or [INCIDENT_WEIGHT]))
    return f"Something is wrong on {len(ill)} of {len(parts)} nodes. {worst.sentence}"


def suggest(parts: Sequence[NodeWrongs]) -> NextCall | None:
    ranked = sorted(((weigh(one), part, one) for part in parts for one in part.told), key=lambda row: -row[0])
    if not ranked:
        incident = next(
            (part.incidents.incidents[0] for part in parts if part.incidents and part.incidents.incidents),
            None,
        )
        if incident:
            # What grew for an hour is looked for at its kill: at its onset nothing was to be seen.
            return suggest_incident(
                moment_of(incident) / 1000, incident.node, "its cause and victims, with figures"
            )
        busy: dict[str, Fact] = {"by": "cpu", **({"node": parts[0].node} if len(parts) == 1 else {})}
        return NextCall("top_containers", busy, "who uses the most")
    _, part, one = ranked[0]
    if one.kind in ("memory_leak", "oom_kill", "waste", "cpu_throttling", "crash_loop") and one.workload:
        who: dict[str, Fact] = {"container": clean_name(one.workload), "node": part.node}
        left = one.time_to_limit_seconds
        why = (
            f"its use and limits; {render_seconds(left)} are left"
            if left is not None
            else "its use, limits and restarts"
        )
        return NextCall("summarize_container", who, why)
    return suggest_incident(one.onset, part.node, "cause and victims, with figures")


TOOL = Tool(
    "what_is_wrong",
    "What is wrong",
    "Start here: what is wrong now, worst first, with cause, victims and time to the limit.",
    (NODE,),
    run,
)
