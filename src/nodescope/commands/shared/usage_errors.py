"""
What argparse says about a wrong command line, in our words: what was wrong, what is accepted, the nearest name.

    the following arguments are required: shell     shell (accepted: bash, zsh, fish) is missing
    argument --port: invalid int value: 'x'         --port x is not accepted; accepted: a whole number
"""

import argparse
import re
from collections.abc import Callable, Sequence

from nodescope.base.text import clean_text, hint_nearest

# argparse names the type of a value by its function.
KINDS = {"int": "a whole number", "float": "a number", "Path": "a path"}
LONGEST_VALUE = 80


def reword(actions: Sequence[argparse.Action], message: str) -> str:
    """The message, where it is one that we know; as it was otherwise."""
    for pattern, build in PATTERNS.items():
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return build(actions, *found.groups())
    return message


def say_missing(actions: Sequence[argparse.Action], names: str) -> str:
    found = [(name, find_action(actions, name)) for name in names.split(", ")]
    # Words that another program takes may be none at all.
    missing = [(name, one) for name, one in found if one is None or one.nargs != argparse.REMAINDER]
    words = " and ".join(f"{name}{explain(one)}" for name, one in missing)
    return f"{words} {'is' if len(missing) == 1 else 'are'} missing"


def say_choice(actions: Sequence[argparse.Action], name: str, value: str) -> str:
    action = find_action(actions, name)
    choices = [str(one) for one in (action.choices if action is not None and action.choices else ())]
    given = value.strip("'\"")
    return (
        f"{name} {clean_text(given, LONGEST_VALUE)} is not accepted{hint_nearest(given, choices)} "
        f"(accepted: {', '.join(choices)})"
    )


def say_type(actions: Sequence[argparse.Action], name: str, kind: str, value: str) -> str:
    del actions
    given = clean_text(value.strip("'\""), LONGEST_VALUE)
    return f"{name} {given} is not accepted; accepted: {KINDS.get(kind, kind)}"


def say_value(actions: Sequence[argparse.Action], name: str) -> str:
    return f"{name} needs a value{explain(find_action(actions, name))}"


PATTERNS: dict[str, Callable[..., str]] = {
    r"the following arguments are required: (.+)": say_missing,
    r"argument ([^:]+): invalid choice: (.+?) \(choose from .*\)": say_choice,
    r"argument ([^:]+): invalid (\w+) value: (.+)": say_type,
    r"argument ([^:]+): expected (?:one|at least one) argument": say_value,
}


def find_action(actions: Sequence[argparse.Action], name: str) -> argparse.Action | None:
    """By the name that argparse prints: all options of it, what its help shows, or where it is kept."""
    for action in actions:
        if name in ("/".join(action.option_strings), action.metavar, action.dest):
            return action
    return None


def explain(action: argparse.Action | None) -> str:
    """What it takes, in brackets: its choices, or the first sentence of its help."""
    if action is None:
        return ""
    if action.choices:
        return f" (accepted: {', '.join(str(one) for one in action.choices)})"
    meaning = action.help if action.help not in (None, argparse.SUPPRESS) else ""
    first = (meaning or "").partition(". ")[0].rstrip(".")
    return f" ({first})" if first else ""
