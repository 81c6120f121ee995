"""Reference texts that a client may keep: plain names of metrics, studies, how to ask, and the schema of answers."""

import json
from collections.abc import Callable

import mcp_types as types

from nodescope.base.metric_names import PLAIN
from nodescope.use.mcp.protocol.answer import ANSWER_SCHEMA
from nodescope.use.mcp.protocol.errors import ToolMisused, render_no_such
from nodescope.use.mcp.protocol.instructions import INSTRUCTIONS
from nodescope.use.studies import STUDIES

MARKDOWN, SCHEMA = "text/markdown", "application/schema+json"


def render_metrics() -> str:
    rows = [f"| `{row.name}` | {row.unit} | {row.help} |" for row in PLAIN.values()]
    return "\n".join(["| metric | unit | meaning |", "|---|---|---|", *rows]) + "\n"


def render_studies() -> str:
    return "\n".join(f"- **{study.name}**: {study.question}" for study in STUDIES.values()) + "\n"


# Name, title, what it tells, its text and type: the same for everybody, and while the program runs.
ROWS: tuple[tuple[str, str, str, Callable[[], str], str], ...] = (
    (
        "metrics",
        "Plain names of metrics",
        "What each plain name means, and in which unit it is.",
        render_metrics,
        MARKDOWN,
    ),
    ("studies", "Studies", "The question that each study answers.", render_studies, MARKDOWN),
    (
        "guide",
        "How to ask",
        "In which order to call the tools, and how to read answers.",
        lambda: INSTRUCTIONS,
        MARKDOWN,
    ),
    (
        "answer",
        "Schema of answers",
        "Every field of the structured part, which is the same for all tools.",
        lambda: json.dumps(ANSWER_SCHEMA, indent=1),
        SCHEMA,
    ),
)
RESOURCES = [
    types.Resource(uri=f"nodescope://{name}", name=name, title=title, description=about, mime_type=kind)
    for name, title, about, _, kind in ROWS
]
TEXTS = {f"nodescope://{name}": (build, kind) for name, _, _, build, kind in ROWS}


def read_resource(uri: str) -> types.ReadResourceResult:
    if uri not in TEXTS:
        raise ToolMisused(render_no_such("resource", uri, TEXTS, 120))
    build, kind = TEXTS[uri]
    contents = types.TextResourceContents(uri=uri, mime_type=kind, text=build())
    return types.ReadResourceResult(contents=[contents])
