"""
Metrics that other programs leave as files: `*.prom` of one folder, as node_exporter's textfile collector has it.

A file is read again when its size or time changed. It is taken whole or not at
all: a wrong line, a timestamp, a name that we publish ourselves or a type that an
earlier file said otherwise refuses it, and the reason is on /metrics and in the log.
Files, their size and their series are bounded. Every name is checked and every
label value is written anew, so that no file can break the exposition.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodescope.base.errors import ParseError
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.serve.prometheus_parse import TextFamily, parse_text
from nodescope.serve.prometheus_text import (
    MetricFamily,
    build_labelled,
    build_single,
    render_header,
    render_labels,
    render_value,
)

log = Log("textfile")

# node_exporter has no bounds; a script that fills the folder must not fill Prometheus.
MOST_FILES = 100
MOST_BYTES = 2**20
# Who writes such files does so every few minutes; a day without is a script that died.
STALE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file as it was when it was last looked at."""

    stamp: tuple[int, int]
    families: Mapping[str, TextFamily]
    error: str = ""


class TextfileFolder:
    """Looks at the folder at each scrape; reads what has changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: dict[str, ReadFile] = {}
        self._told: dict[str, str] = {}

    def read(self, taken: frozenset[str], at_seconds: float) -> "TextfileAnswer":
        """`taken` are the names that the agent publishes itself."""
        listed, error = self._list()
        self._files = {name: self._look(name) for name in listed}
        merged: dict[str, TextFamily] = {}
        errors = {"": error} if error else {}
        for name, found in sorted(self._files.items()):
            why = found.error or find_conflict(found.families, merged, taken)
            if why:
                errors[name] = why
            else:
                merge_families(merged, found.families)
        self._tell(errors)
        found_files = [(name, found.stamp[0]) for name, found in self._files.items() if found.stamp[0]]
        times = {os.path.join(self._path, name): time_ns / 1e9 for name, time_ns in found_files}
        stale = sum(at_seconds - seconds > STALE_SECONDS for seconds in times.values())
        return TextfileAnswer(merged, times, errors, stale)

    def _list(self) -> tuple[list[str], str]:
        try:
            names = sorted(name for name in os.listdir(self._path) if name.endswith(".prom"))
        except OSError as error:
            return [], f"the folder cannot be listed: {error.strerror}"
        if len(names) > MOST_FILES:
            return names[:MOST_FILES], f"{len(names)} files, of which the first {MOST_FILES} are read"
        return names, ""

    def _look(self, name: str) -> ReadFile:
        path = os.path.join(self._path, name)
        try:
            status = os.stat(path)
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._files.get(name)
            return known if known and known.stamp == stamp else read_file(path, stamp)
        except OSError as error:
            return ReadFile((0, 0), {}, f"cannot be read: {error.strerror}")

    def _tell(self, errors: Mapping[str, str]) -> None:
        """Each reason once, when it appears."""
        for name, why in errors.items():
            if self._told.get(name) != why:
                log.warning("textfile refused", file=clean_text(name), why=why)
        self._told = dict(errors)


def read_file(path: str, stamp: tuple[int, int]) -> ReadFile:
    if stamp[1] > MOST_BYTES:
        return ReadFile(stamp, {}, f"{stamp[1]} bytes, at most {MOST_BYTES} are read")
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    try:
        return ReadFile(stamp, parse_text(data.decode("utf-8")))
    except (ParseError, UnicodeDecodeError) as error:
        return ReadFile(stamp, {}, clean_text(str(error)))


def find_conflict(
    found: Mapping[str, TextFamily], merged: Mapping[str, TextFamily], taken: frozenset[str]
) -> str:
    for name, family in found.items():
        own = {name, *(sample for sample, _, _ in family.samples)} & taken
        if own:
            return f"{min(own)} is a name that nodescope publishes itself"
        before = merged.get(name)
        if before and before.metric_type != family.metric_type:
            return f"{name} is a {before.metric_type} in another file, and a {family.metric_type} here"
        known = {sample[:2] for sample in before.samples} if before else set()
        series = [sample[:2] for sample in family.samples]
        if len(set(series)) < len(series) or not known.isdisjoint(series):
            return f"a series of {name} stands twice"
    return ""


def merge_families(merged: dict[str, TextFamily], found: Mapping[str, TextFamily]) -> None:
    for name, family in found.items():
        there = merged.setdefault(name, TextFamily(name, family.metric_type, family.help))
        there.samples = [*there.samples, *family.samples]


@dataclass(frozen=True, slots=True)
class TextfileAnswer:
    """What the files say, and how they stand."""

    families: Mapping[str, TextFamily]
    times: Mapping[str, float]
    errors: Mapping[str, str]
    stale: int

    def own_families(self) -> Iterator[MetricFamily]:
        sentence = "1 when a file of the textfile folder could not be taken."
        yield build_single("node_textfile_scrape_error", sentence, bool(self.errors))
        if self.times:
            cleaned = {clean_text(name): seconds for name, seconds in self.times.items()}
            sentence = "When a file of the textfile folder was last written, as epoch seconds."
            yield build_labelled("node_textfile_mtime_seconds", sentence, "file", cleaned)
        refused = sum(1 for name in self.errors if name)
        counts = {"ok": len(self.times) - refused, "refused": refused, "stale": self.stale}
        sentence = (
            "Files of the textfile folder; stale ones were not written for a day and are counted twice."
        )
        yield build_labelled("nodescope_textfile_files", sentence, "state", counts)

    def render(self, *, openmetrics: bool) -> str:
        return "".join(self._lines(openmetrics=openmetrics))

    def _lines(self, *, openmetrics: bool) -> Iterator[str]:
        for family in self.families.values():
            kind = family.metric_type
            if openmetrics and kind == "counter" and not family.name.endswith("_total"):
                kind = "untyped"
            sentence = family.help or f"Metric of a file in the textfile folder, {family.name}."
            yield render_header(family.name, kind, sentence, openmetrics=openmetrics)
            for name, labels, value in family.samples:
                shown = "NaN" if value != value else render_value(value)  # noqa: PLR0124
                yield f"{name}{render_labels(labels)} {shown}\n"
