"""What each setting means, in the words that stand under it in its dataclass: for --help, `settings` and the docs."""

import argparse
import ast
import inspect
from functools import cache
from itertools import pairwise

from nodescope.base import settings as settings_module
from nodescope.base.settings import FIELDS
from nodescope.base.settings_load import show_value

# The help of an option that is a setting.
SETTING = "a setting"
# Where a setting's unit is part of its name.
UNITS = {"_seconds": "a duration such as 500ms or 2m", "_bytes": "a size such as 64MiB", "_days": "days"}


@cache
def read_meanings() -> dict[str, str]:
    """Setting to what is written under it; read by syntax, once, and only by those who print it."""
    tree = ast.parse(inspect.getsource(settings_module))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    found = {}
    for field, below in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            found[field.target.id] = inspect.cleandoc(below.value.value)
    return found


def read_first_sentence(name: str) -> str:
    """The first paragraph is one sentence, or two short ones."""
    return " ".join(read_meanings()[name].partition("\n\n")[0].split())


def describe_unit(name: str) -> str:
    return next((words for ending, words in UNITS.items() if name.endswith(ending)), "")


def describe_accepted(action: argparse.Action) -> list[str]:
    """What an option takes, and what it is unless given; a switch takes nothing."""
    if action.nargs == 0:
        return []
    field = FIELDS[action.dest]
    choices = ("true", "false") if isinstance(field.default, bool) else field.metadata.get("choices", ())
    words = " or ".join(choices) or describe_unit(action.dest)
    usual = show_value(action.dest, field.default)
    return [*([words] if words else []), *([f"default {usual}"] if usual != "-" else [])]


class MeaningFormatter(argparse.RawDescriptionHelpFormatter):
    """Help in which an option that is a setting says what the setting means: looked up when help is printed."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.help != SETTING:
            return action.help
        words = read_first_sentence(action.dest).removesuffix(".")
        notes = [f"({'; '.join(accepted)})"] if (accepted := describe_accepted(action)) else []
        if action.const == "false":
            words = f"turns this off: {words[0].lower()}{words[1:]}"
        elif isinstance(action, argparse._AppendAction):  # noqa: SLF001 - it has no other name
            notes.append("; may be repeated")
        return " ".join([words, *notes]).replace(" ;", ";").replace("%", "%%")
