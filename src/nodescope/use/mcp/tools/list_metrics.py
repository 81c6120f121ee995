"""What was measured, in which unit, what it means; and which studies there are."""

from itertools import chain

from nodescope.use.answers.metrics import MetricRow
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_NAMES, NextCall, ToolAnswer
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.studies import STUDIES


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = await fleet.ask_all(values["node"], lambda backend: backend.read_metrics())
    rows: dict[str, MetricRow] = {}
    for row in chain.from_iterable(replies.answers.values()):
        rows.setdefault(row.name, row)
    search = values["search"]
    found = [row for row in rows.values() if not search or matches(row, search)]
    found.sort(key=lambda row: (not row.is_plain, row.name))
    plain = sum(row.is_plain for row in found)
    matching = f' matching "{search}"' if search else ""
    headline = f"{plain} metrics with plain names and {len(found) - plain} raw ones{matching}; {len(STUDIES)} studies."
    if not found:
        headline = f"No metric{matching} among {len(rows)}; try find_metrics with a question."
    return ToolAnswer(
        headline=headline,
        status="found" if found else "none",
        names=tuple(describe(row) for row in found),
        left_out=max(0, len(found) - MOST_NAMES),
        studies={study.name: study.question for study in STUDIES.values()},
        looked_at=f"metrics of {', '.join(list(replies.answers)[:8])}",
        not_looked_at=("raw names beyond what fits: narrow with search",) if len(found) > 40 else (),
        nodes_away=replies.missing,
        next_call=NextCall(
            "find_metrics", {"question": "is it short of memory?"}, "which metric and study answer a question"
        ),
    )


def matches(row: MetricRow, search: str) -> bool:
    text = f"{row.name} {row.help} {row.unit}".lower()
    return all(word in text for word in search.lower().split())


def describe(row: MetricRow) -> str:
    unit = f" [{row.unit}]" if row.unit else ""
    return f"{row.name}{unit}: {row.help}"


TOOL = Tool(
    "list_metrics",
    "Metrics and studies",
    "Metric names with unit and meaning, and the study types.",
    (NODE, Argument("search", "words in name or meaning")),
    run,
)
