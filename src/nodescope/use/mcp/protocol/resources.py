"""Reference texts that a client may keep: plain names of metrics, studies, and how to ask."""

from collections.abc import Callable
from dataclasses import dataclass

from nodescope.base.metric_names import PLAIN
from nodescope.base.text import clean_text, hint_nearest
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.instructions import INSTRUCTIONS
from nodescope.use.studies import STUDIES


@dataclass(frozen=True, slots=True)
class Resource:
    """A text with an address; the same for everybody, and while the program runs."""

    uri: str
    name: str
    title: str
    description: str
    build: Callable[[], str]


def render_metrics() -> str:
    rows = [f"| `{row.name}` | {row.unit} | {row.help} |" for row in PLAIN.values()]
    return "\n".join(["| metric | unit | meaning |", "|---|---|---|", *rows]) + "\n"


def render_studies() -> str:
    return "\n".join(f"- **{study.name}**: {study.question}" for study in STUDIES.values()) + "\n"


RESOURCES: dict[str, Resource] = {
    resource.uri: resource
    for resource in (
        Resource(
            "nodescope://metrics",
            "metrics",
            "Plain names of metrics",
            "What each plain name means, and in which unit it is.",
            render_metrics,
        ),
        Resource(
            "nodescope://studies",
            "studies",
            "Studies",
            "The question that each study answers.",
            render_studies,
        ),
        Resource(
            "nodescope://guide",
            "guide",
            "How to ask",
            "In which order to call the tools, and how to read answers.",
            lambda: INSTRUCTIONS,
        ),
    )
}


def read_resource(uri: str) -> str:
    resource = RESOURCES.get(uri)
    if resource is None:
        shown = clean_text(uri, 120)
        raise ToolMisused(
            f'no resource "{shown}"{hint_nearest(shown, RESOURCES)}; there are: {", ".join(RESOURCES)}'
        )
    return resource.build()
