"""nodescope fleet: a study or a question over many nodes and days."""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.errors import RequestRejected, SettingsRejected
from nodescope.base.quantity import parse_bytes, parse_seconds
from nodescope.base.text import hint_nearest, render_unknown
from nodescope.base.time_range import parse_moment
from nodescope.commands.shared.options import add_span, read_quantity, read_span
from nodescope.commands.text.progress import clear_progress, show_progress

if TYPE_CHECKING:
    # Arrow and DuckDB are loaded when the question is asked, not for --help.
    from nodescope.read.files.file_survey import Survey
    from nodescope.use.fleet.unit import Job, Unit

EXAMPLE = """questions:
  leaks        memory that grows and keeps growing, by workload
  changes      what changed together at --at T, by image, workload, namespace and node
  top          who uses most of a metric, and at what time of day
  compare      two archives A B side by side, or with --at T before and after it
  files        the Parquet files that are served: for Spark, Trino, DuckDB
  or a study   trend, changepoint, periodicity, anomaly, summary, correlation

example:
  nodescope fleet leaks s3://bucket/archive --from -7d
  nodescope fleet changes /data/nodes --at 14:05
  nodescope fleet top s3://bucket/archive --metric cpu_throttled --by workload
  nodescope fleet periodicity /data/nodes --metric cpu --out findings.parquet
"""
QUESTIONS = ("leaks", "changes", "top", "compare", "files")
# What is looked at unless --metric says otherwise.
METRICS = {
    "leaks": ("memory_anon",),
    "changes": ("memory", "cpu"),
    "top": ("cpu",),
    "compare": ("cpu", "memory"),
}
# Option, default, what stands for its value, and its help.
VALUES = (
    ("--at", None, "T", "the moment of `changes`; 14:05 is that of the newest day"),
    ("--within", "2m", "TIME", "how near to --at a change must be; 2m unless given"),
    ("--span", "30m", "TIME", "how much before and after --at is read; 30m unless given"),
    ("--by", "workload", "GROUP", "workload, namespace, image or node"),
    ("--scheduler", None, "ADDRESS", "a Dask scheduler, tcp://host:8786; else workers are started here"),
    ("--workers", os.cpu_count() or 1, "N", "workers started here; one a core"),
    ("--memory", "1GiB", "BYTES", "the most a worker started here may take; 1GiB"),
    ("--false-share", 0.05, "Q", "of the findings that are kept, how many may be false; 0.05 unless given"),
    ("--limit", 20, "N", "lines of the summary; 20"),
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
MS_PER_DAY = 86_400_000
TIMES, SIZES = "90s, 2m, 1h, ...", "512MiB, 2GiB, ..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("question", metavar="QUESTION", help="a question or a study, as below")
    parser.add_argument(
        "roots",
        metavar="PATH|URL",
        nargs="+",
        help="data folders, folders of data folders, or s3:// gs:// abfs:// file:// addresses",
    )
    parser.add_argument("--metric", action="append", metavar="M", help="plain or raw name; may be repeated")
    add_span(parser, "-7d")
    for name, default, metavar, about in VALUES:
        parse = str if default is None else type(default)
        parser.add_argument(name, default=default, type=parse, metavar=metavar, help=about)
    parser.add_argument("--out", type=Path, metavar="FILE", help="all findings as .parquet, .csv or .json")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")


def run(options: argparse.Namespace) -> int:
    from nodescope.read.files.file_survey import survey_roots
    from nodescope.use.fleet.findings_file import check_ending

    check(options)
    if options.out:
        check_ending(options.out)
    survey = survey_roots(options.roots)
    if not survey.files:
        raise RequestRejected(nothing_here(options.roots, survey))
    if options.question == "files":
        return list_files(survey)
    job, units = plan(options, survey)
    return ask(options, survey, job, units)


def nothing_here(roots: Sequence[str], survey: "Survey") -> str:
    """One line, whatever the reason."""
    if not survey.faults:
        return f"{', '.join(roots)}: there is no data here yet"
    first, *more = survey.faults
    return f"{first.where}: {first.reason}" + (f" (and {len(more)} more)" if more else "")


def check(options: argparse.Namespace) -> None:
    from nodescope.use.fleet.workload import GROUPINGS
    from nodescope.use.studies import STUDIES

    known = [*QUESTIONS, *STUDIES]
    if options.question not in known:
        raise SettingsRejected(render_unknown("question", options.question, known))
    if options.by not in GROUPINGS:
        near = hint_nearest(options.by, GROUPINGS)
        raise SettingsRejected(f"--by {options.by} is not accepted{near} (accepted: {', '.join(GROUPINGS)})")
    if options.question in STUDIES and not options.metric:
        raise SettingsRejected("--metric is needed for a study; nodescope metrics PATH lists them")
    if options.question == "changes" and not options.at:
        raise SettingsRejected("--at is needed for changes: the moment at which something changed")
    if options.question == "compare" and not options.at and len(options.roots) != 2:
        raise SettingsRejected("compare needs two archives A B, or --at T for before and after")
    for name in ("workers", "limit"):
        if getattr(options, name) < 1:
            raise SettingsRejected(f"--{name} {getattr(options, name)} is not accepted; accepted: 1 or more")
    if not 0 < options.false_share < 1:
        raise SettingsRejected(
            f"--false-share {options.false_share:g} is not accepted; accepted: between 0 and 1"
        )


def list_files(survey: "Survey") -> int:
    for file in sorted(survey.files, key=lambda one: (one.node, one.from_ms)):
        sys.stdout.write(f"{file.name}\n")
    for fault in survey.faults:
        sys.stderr.write(f"nodescope fleet: not listed: {fault.where}: {fault.reason}\n")
    return 0


def parse_clock_time(text: str, newest_ms: int) -> int:
    """A clock time alone is the newest one that the data reach."""
    match = _CLOCK.fullmatch(text)
    if not match:
        return parse_moment(text, newest_ms)
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    if hours > 23 or minutes > 59 or seconds > 59:
        raise RequestRejected(f"{text} is no time of day; accepted: 00:00 to 23:59:59")
    at_ms = newest_ms // MS_PER_DAY * MS_PER_DAY + ((hours * 60 + minutes) * 60 + seconds) * 1000
    return at_ms if at_ms <= newest_ms else at_ms - MS_PER_DAY


def check_metrics(names: Sequence[str], survey: "Survey") -> None:
    """
    A misspelt plain name, before every worker looks for it in vain.

    A raw name may be on other nodes than the one that is looked at here.
    """
    from nodescope.base.metric_names import PLAIN
    from nodescope.read.files.file_survey import open_files
    from nodescope.read.query.resolve import resolve_metric

    doubtful = [name for name in names if name not in PLAIN and "." not in name]
    if doubtful:
        newest = max(survey.files, key=lambda file: file.to_ms)
        catalog, _ = open_files([newest])
        for name in doubtful:
            resolve_metric(name, catalog.metrics, "auto")


def plan(options: argparse.Namespace, survey: "Survey") -> "tuple[Job, list[Unit]]":
    from nodescope.read.files.file_survey import survey_roots
    from nodescope.use.fleet.unit import Job, split_by_day, units_around

    newest_ms = survey.to_ms or 0
    from_ms, to_ms = read_span(options, newest_ms)
    metrics = tuple(dict.fromkeys(options.metric or METRICS[options.question]))
    check_metrics(metrics, survey)
    at_ms = parse_clock_time(options.at, newest_ms) if options.at else None
    within_ms = round(read_quantity(options, "within", parse_seconds, TIMES) * 1000)
    span_ms = round(read_quantity(options, "span", parse_seconds, TIMES) * 1000)
    if options.question == "changes":
        at = at_ms or 0
        if span_ms < 2 * within_ms:
            raise SettingsRejected("--span must be at least twice --within: what is usual is seen around it")
        units = units_around(survey, metrics, at - span_ms, at + span_ms)
        return Job("changes", at, within_ms), units
    if options.question != "compare":
        return Job(options.question), split_by_day(survey, metrics, from_ms, to_ms)
    if at_ms is not None:
        before = split_by_day(survey, metrics, at_ms - span_ms, at_ms - 1, "A")
        return Job("top"), [*before, *split_by_day(survey, metrics, at_ms, at_ms + span_ms, "B")]
    first, second = (
        split_by_day(survey_roots([root]), metrics, from_ms, to_ms, side)
        for side, root in zip("AB", options.roots)
    )
    return Job("top"), [*first, *second]


def ask(options: argparse.Namespace, survey: "Survey", job: "Job", units: "list[Unit]") -> int:
    from nodescope.commands.text.fleet_answer import render_answer, render_pairs, summarize
    from nodescope.keep.copy.object_store import is_url
    from nodescope.read.files.sidecar_cache import SidecarCache, cache_folder
    from nodescope.use.fleet.answer import build_answer
    from nodescope.use.fleet.cluster import open_cluster, run_units
    from nodescope.use.fleet.compare import compare
    from nodescope.use.fleet.findings_file import write_findings

    if not units:
        raise RequestRejected("there is no data in this range")
    parts = []
    workers = min(options.workers, len(units))
    memory_bytes = read_quantity(options, "memory", parse_bytes, SIZES)
    with open_cluster(options.scheduler, workers, memory_bytes) as client:
        for part in run_units(client, units, job):
            parts.append(part)
            findings = sum(len(one.rows) for one in parts)
            show_progress(len(parts) / len(units), f"{len(parts)}/{len(units)} units, {findings} findings")
    clear_progress()
    if any(is_url(root) for root in options.roots):
        SidecarCache(cache_folder(os.environ)).prune()
    answer = build_answer(parts, survey.faults, job, options.by, options.false_share)
    pairs = compare(answer.rows, options.by) if options.question == "compare" else None
    summary = summarize(answer, pairs)
    if options.out:
        write_findings(options.out, answer.rows, summary)
    if options.json:
        sys.stdout.write(json.dumps({**summary, "findings": answer.rows}, ensure_ascii=False) + "\n")
    elif pairs is not None:
        sys.stdout.write(render_pairs(answer, pairs, options.limit))
    else:
        sys.stdout.write(render_answer(answer, options.limit))
    if options.out and not options.json:
        sys.stdout.write(f"{len(answer.rows)} findings in {options.out}\n")
    return 0
