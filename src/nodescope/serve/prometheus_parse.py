"""
Prometheus text of others, parsed strictly and bounded.

For files that scripts leave (`publish.textfile`) and for the exporters that we are
compared with (`use.peers`). A wrong line is a ParseError that names it.
"""

import re
from dataclasses import dataclass, field

from nodescope.base.errors import ParseError
from nodescope.base.text import clean_text
from nodescope.serve.prometheus_text import Labels

# node_exporter has no bounds; a script that fills its folder must not fill Prometheus.
MOST_SERIES = 20_000
LABEL_CHARACTERS = 1024
TYPES = frozenset({"counter", "gauge", "histogram", "summary", "untyped"})
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})\s*(?:\{{(.*)\}})?\s*(\S+)(?:\s+(\S+))?")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass(slots=True)
class TextFamily:
    """One name of a file, with what the file says of it."""

    name: str
    metric_type: str = "untyped"
    help: str = ""
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)
    """(name with its suffix, labels, value)."""


def parse_text(text: str, *, has_timestamps: bool = False, most: int = MOST_SERIES) -> dict[str, TextFamily]:
    """The families of a text; ParseError names the line that is wrong."""
    families: dict[str, TextFamily] = {}
    count = 0
    # Not splitlines: a label value may hold any other line break of Unicode.
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole.strip(" \t\r")
        if line.startswith("#"):
            note_comment(families, line)
        elif line:
            add_sample(families, line, number, has_timestamps=has_timestamps)
            count += 1
        if count > most:
            raise ParseError(f"more than {most} series")
    return {name: family for name, family in families.items() if family.samples}


def note_comment(families: dict[str, TextFamily], line: str) -> None:
    words = line.split(None, 3)
    if len(words) < 4 or words[1] not in ("HELP", "TYPE") or not re.fullmatch(_NAME, words[2]):
        return
    family = families.setdefault(words[2], TextFamily(words[2]))
    if words[1] == "HELP":
        family.help = clean_text(words[3], LABEL_CHARACTERS)
    elif words[3] in TYPES:
        family.metric_type = words[3]


def add_sample(families: dict[str, TextFamily], line: str, number: int, *, has_timestamps: bool) -> None:
    match = _SAMPLE.fullmatch(line)
    if match is None:
        raise ParseError(f"line {number}: expected name{{labels}} value, got {line[:60]!r}")
    name, labels, value, timestamp = match.groups()
    if timestamp is not None and not has_timestamps:
        raise ParseError(f"line {number}: a timestamp is not accepted: {line[:60]!r}")
    try:
        parsed = float(value)
    except ValueError as error:
        raise ParseError(f"line {number}: expected a number, got {value[:40]!r}") from error
    family = find_family(families, name)
    family.samples.append((name, parse_labels(labels or "", number), parsed))


def find_family(families: dict[str, TextFamily], name: str) -> TextFamily:
    """A histogram's and a summary's series carry suffixes."""
    for kind, suffixes in SUFFIXES.items():
        for suffix in suffixes:
            family = families.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
            if family and family.metric_type == kind:
                return family
    return families.setdefault(name, TextFamily(name))


def parse_labels(text: str, number: int) -> Labels:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text.rstrip()):
        match = _LABEL.match(text, place)
        if match is None or match[1] in labels:
            raise ParseError(f"line {number}: wrong or repeated label at {text[place : place + 40]!r}")
        value = re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), match[2])
        labels[match[1]] = clean_text(value, LABEL_CHARACTERS)
        place = match.end()
    return tuple(labels.items())
