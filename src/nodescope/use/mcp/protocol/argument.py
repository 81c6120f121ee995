"""
Arguments of tools: one declaration gives the schema a client sees and the check behind it.

Checked by hand and not by the schema: a model that sent something wrong gets
one sentence that tells how to put it right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nodescope.base.text import clean_text, hint_nearest
from nodescope.use.mcp.protocol.errors import ToolMisused

# Longer than any name or time; a question may be a paragraph.
TEXT_CHARACTERS = 400

Kind = Literal["text", "moment", "count"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a tool."""

    name: str
    help: str
    kind: Kind = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int = 1
    most: int = 60
    remedy: str = ""
    """Where a required value is found."""

    def schema(self) -> dict[str, Any]:
        if self.kind == "count":
            limits = {"minimum": self.least, "maximum": self.most}
            return {"type": "integer", **limits, "description": self.help}
        choices = {"enum": list(self.choices)} if self.choices else {}
        return {"description": self.help, "type": "string", **choices}

    def check(self, value: object) -> str | int:
        if self.kind == "count":
            return self._check_count(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and self.kind == "moment":
            # Epoch seconds, as structured answers have them.
            return repr(value)
        if not isinstance(value, str):
            raise ToolMisused(f'"{self.name}" must be text, not {name_type(value)}: {self.help}')
        text = clean_text(value, TEXT_CHARACTERS).strip()
        if not text:
            raise ToolMisused(f'"{self.name}" is empty: {self.help}')
        if self.choices and text.lower() in self.choices:
            return text.lower()
        if self.choices and text not in self.choices:
            raise ToolMisused(
                f'"{self.name}" has no "{text[:80]}"{hint_nearest(text, self.choices)}; '
                f"accepted: {', '.join(self.choices)}"
            )
        return text

    def _check_count(self, value: object) -> int:
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value.strip()[:9])
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not self.least <= value <= self.most:
            shown = clean_text(repr(value), 40)
            raise ToolMisused(
                f'"{self.name}" must be a whole number from {self.least} to {self.most}, not {shown}'
            )
        return value


Values = dict[str, Any]


def build_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    required = [one.name for one in arguments if one.required]
    return {
        "type": "object",
        "properties": {one.name: one.schema() for one in arguments},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def check_arguments(tool: str, arguments: Sequence[Argument], given: Mapping[str, object]) -> Values:
    """Every argument by name, None where it was not given; else a sentence that tells how to fix the call."""
    known = {one.name: one for one in arguments}
    for name in given:
        if name not in known:
            accepted = ", ".join(known) or "none"
            shown = clean_text(name, 80)
            raise ToolMisused(
                f'{tool} has no argument "{shown}"{hint_nearest(shown, known)}; accepted: {accepted}'
            )
    for one in arguments:
        if one.required and given.get(one.name) is None:
            remedy = f"; {one.remedy}" if one.remedy else ""
            raise ToolMisused(f'{tool} needs "{one.name}": {one.help}{remedy}')
    return {
        one.name: None if given.get(one.name) is None else one.check(given[one.name]) for one in arguments
    }


def name_type(value: object) -> str:
    words = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return words.get(type(value), type(value).__name__)


# -- shared by tools ---------------------------------------------------------------

NODE = Argument("node", "default: all")
CONTAINER = Argument(
    "container",
    "pod/container, a pod's or container's name, or an id",
    required=True,
    remedy="list_containers or top_containers names them",
)
FROM = Argument("from", "14:05, -2h, ISO 8601, epoch", "moment")
TO = Argument("to", "default: newest", "moment")
NAMESPACE = Argument("namespace", "exactly")
