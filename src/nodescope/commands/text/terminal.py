"""Tables and colour on a terminal; plain text when piped."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TextIO

CODES = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}
_PAINT = re.compile(r"\x1b\[[0-9;]*m")


def has_colour(out: TextIO | None = None, environment: Mapping[str, str] | None = None) -> bool:
    """Only on a terminal, and never when NO_COLOR is set (https://no-color.org)."""
    environment = os.environ if environment is None else environment
    return (out or sys.stdout).isatty() and not environment.get("NO_COLOR")


def paint(text: str, colour: str, *, wanted: bool | None = None) -> str:
    wanted = has_colour() if wanted is None else wanted
    return f"\x1b[{CODES[colour]}m{text}\x1b[0m" if wanted else text


def width_of(text: str) -> int:
    return len(_PAINT.sub("", text))


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need; the last one wraps at the terminal's edge."""
    widths = [max(width_of(str(row[place])) for row in (head, *rows)) for place in range(len(head))]
    columns = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 10_000
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    room = max(30, columns - before)
    lines = []
    for row in ([paint(cell, "bold") for cell in head], *rows):
        cells = [str(cell) + " " * (width - width_of(str(cell))) for cell, width in zip(row[:-1], widths)]
        last = textwrap.wrap(str(row[-1]), room) or [""]
        lines.append("  ".join([*cells, last[0]]).rstrip())
        lines += [" " * before + part for part in last[1:]]
    return "\n".join(lines) + "\n"
