"""Reference texts that a client may keep: plain names of metrics, studies, and how to ask."""

from collections.abc import Callable

import mcp_types as types

from nodescope.base.metric_names import PLAIN
from nodescope.use.mcp.protocol.errors import ToolMisused, render_no_such
from nodescope.use.mcp.protocol.instructions import INSTRUCTIONS
from nodescope.use.studies import STUDIES

MARKDOWN = "text/markdown"


def render_metrics() -> str:
    rows = [f"| `{row.name}` | {row.unit} | {row.help} |" for row in PLAIN.values()]
    return "\n".join(["| metric | unit | meaning |", "|---|---|---|", *rows]) + "\n"


def render_studies() -> str:
    return "\n".join(f"- **{study.name}**: {study.question}" for study in STUDIES.values()) + "\n"


# Name, title, what it tells, and its text: the same for everybody, and while the program runs.
ROWS: tuple[tuple[str, str, str, Callable[[], str]], ...] = (
    (
        "metrics",
        "Plain names of metrics",
        "What each plain name means, and in which unit it is.",
        render_metrics,
    ),
    ("studies", "Studies", "The question that each study answers.", render_studies),
    (
        "guide",
        "How to ask",
        "In which order to call the tools, and how to read answers.",
        lambda: INSTRUCTIONS,
    ),
)
RESOURCES = [
    types.Resource(uri=f"nodescope://{name}", name=name, title=title, description=about, mime_type=MARKDOWN)
    for name, title, about, _ in ROWS
]
TEXTS = {f"nodescope://{name}": build for name, _, _, build in ROWS}


def read_resource(uri: str) -> types.ReadResourceResult:
    if uri not in TEXTS:
        raise ToolMisused(render_no_such("resource", uri, TEXTS, 120))
    contents = types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=TEXTS[uri]())
    return types.ReadResourceResult(contents=[contents])
