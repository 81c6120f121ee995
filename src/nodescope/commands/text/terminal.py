"""
Tables and colour on a terminal; plain text when piped.

Names of pods, processes and files are other people's text. A cell loses its
control characters when it is put into a table, and whatever is printed passes
a stream that lets only our own sequences through.
"""

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from nodescope.base.text import clean_text

CODES = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}
_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_PAINTED = re.compile(r"(\x1b\[(?:32|31|33|2|1)m)(.*)(\x1b\[0m)", re.DOTALL)
# Ours: colour, the screen of `top` (another page, with or without a cursor), the line of a progress bar.
_OURS = r"\x1b\[(?:(?:32|31|33|2|1|0)m|H|J|K|2K|\?1049[hl]|\?25[hl])"
# Control characters but line feed, carriage return and tab; C1 as well, which some terminals obey.
_CONTROL = re.compile(f"({_OURS})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Not after a digit.
_BETWEEN_WORDS = re.compile(r"(?<=[^0-9 ]) +")
CELL_CHARACTERS = 4096


class CleanStream:
    """A text stream without control characters that are not ours."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        self._out.write(_CONTROL.sub(lambda match: match[1] or " ", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def clean_cell(cell: object) -> str:
    """What was painted stays painted; the text within is somebody's."""
    text = str(cell)
    painted = _PAINTED.fullmatch(text)
    if painted:
        return painted[1] + clean_text(painted[2], CELL_CHARACTERS) + painted[3]
    return clean_text(text, CELL_CHARACTERS)


def has_colour(out: TextIO | None = None, environment: Mapping[str, str] | None = None) -> bool:
    """Only on a terminal, and never when NO_COLOR is set (https://no-color.org)."""
    environment = os.environ if environment is None else environment
    return (out or sys.stdout).isatty() and not environment.get("NO_COLOR")


def paint(text: str, colour: str, *, wanted: bool | None = None) -> str:
    wanted = has_colour() if wanted is None else wanted
    return f"\x1b[{CODES[colour]}m{text}\x1b[0m" if wanted else text


def width_of(text: str) -> int:
    """Columns on a terminal: a Chinese letter takes two, an accent that is put over another letter none."""
    plain = _PAINT.sub("", text)
    return len(plain) if plain.isascii() else sum(map(letter_width, plain))


def letter_width(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


def cut_columns(text: str, most: int) -> str:
    """So many columns at most, with dots at the end of what was longer."""
    if width_of(text) <= most:
        return text
    dots = "..."[: max(0, most)]
    kept, room = "", most - len(dots)
    for letter in text:
        room -= letter_width(letter)
        if room < 0:
            break
        kept += letter
    return kept + dots


def wrap_words(text: str, columns: int | None, indent: str = "") -> list[str]:
    """
    Lines that end between words, the further ones indented; None: one line.

    A number and what follows it (512 MiB, 21 600) stay together. A word that is longer than a line is
    a name: it is not broken, the terminal does that.
    """
    if columns is None or width_of(text) <= columns:
        return [text]
    begin = text[: len(text) - len(text.lstrip())]
    lines = [begin]
    for word in _BETWEEN_WORDS.split(text.strip()):
        line = lines[-1]
        is_empty = line in {begin, indent}
        grown = line + word if is_empty else f"{line} {word}"
        if width_of(grown) > columns and not is_empty:
            lines.append(indent + word)
        else:
            lines[-1] = grown
    return lines


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need; the last one wraps at the terminal's edge."""
    rows = [[clean_cell(cell) for cell in row] for row in rows]
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
