"""nodescope study: a question about a series, answered in one sentence with its evidence."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from nodescope.base.errors import RequestRejected, SettingsRejected
from nodescope.base.text import render_unknown
from nodescope.commands.shared.archive import check_metric, choose_span, open_view
from nodescope.commands.shared.options import add_containers, add_span
from nodescope.commands.text.study_answer import print_answer
from nodescope.commands.text.terminal import has_colour
from nodescope.use.studies import STUDIES, Series, StudyAnswer, anomaly, run_study
from nodescope.use.studies.csv_series import SeriesRefused, read_series

EXAMPLE = """example:
  nodescope study trend ~/.local/state/nodescope --container api --metric memory --from -1h
  nodescope study trend ~/.local/state/nodescope --all --metric memory
  nodescope study anomaly ~/.local/state/nodescope --container api --metric all
  nodescope study changepoint requests.csv
  nodescope study periodicity *.csv --json

A CSV file has the columns time and value: seconds or ISO 8601, an empty value is missing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    questions = "\n".join(f"  {study.name:<12} {study.question}" for study in STUDIES.values())
    parser.epilog = f"studies:\n{questions}\n\n{EXAMPLE}"
    parser.add_argument("name", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="a data folder or Parquet files, or CSV files"
    )
    add_containers(parser)
    parser.add_argument("--all", action="store_true", help="over all workloads: those in which it finds most")
    parser.add_argument(
        "--metric",
        metavar="M",
        help="plain or raw name, for a data folder; of anomaly several with commas between, or all",
    )
    add_span(parser)
    parser.add_argument(
        "--kind", choices=("gauge", "counter"), default="gauge", help="of a CSV file; gauge unless given"
    )
    parser.add_argument("--unit", default="", help="of a CSV file, for the sentences: bytes, cores, ratio")
    parser.add_argument("--limit", type=float, help="of a CSV file: what the series must not reach")
    parser.add_argument("--json", action="store_true", help="one JSON line per series")


def run(options: argparse.Namespace) -> int:
    if options.limit is not None and options.limit <= 0:
        raise SettingsRejected(f"--limit {options.limit:g} is not accepted; accepted: a number above 0")
    if options.name not in STUDIES:
        raise SettingsRejected(render_unknown("study", options.name, STUDIES))
    if is_archive(options.paths):
        return scan_archive(options) if options.all else study_archive(options)
    if options.container or options.metric or options.all:
        raise SettingsRejected(
            "--container, --metric and --all are for a data folder; a CSV file is one series"
        )
    return study_files(options)


def is_archive(paths: list[Path]) -> bool:
    return any(path.is_dir() or path.suffix == ".parquet" for path in paths)


def study_archive(options: argparse.Namespace) -> int:
    """The study on every chosen series, one answer each."""
    from nodescope.commands.containers import find_lives
    from nodescope.use.answers import findings
    from nodescope.use.answers.timeseries import TimeseriesRequest

    if not options.metric:
        raise SettingsRejected("--metric is needed for a data folder; nodescope metrics PATH lists them")
    view = open_view(options.paths)
    span = choose_span(view, options, options.paths)
    lives = find_lives(view.lives(), options.container)
    if options.name == anomaly.NAME and findings.is_several(options.metric):
        for name in findings.split_metrics(options.metric):
            check_metric(view, name)
        print_answers(options, findings.study_together(view, options.metric, lives, span))
        return 0
    check_metric(view, options.metric)
    points = findings.choose_points(options.name, span)
    request = TimeseriesRequest(options.metric, span, points, lives=lives, is_bounded=False)
    found = list(findings.read_series(view, request))
    if all(series.not_collected for _, series in found):
        raise RequestRejected(
            f'no sample of "{options.metric}" in this range; nodescope metrics lists what there is'
        )
    histories = findings.read_weeks(view, request) if options.name == anomaly.NAME else {}
    print_answers(options, findings.study_each(options.name, found, histories=histories))
    return 0


def scan_archive(options: argparse.Namespace) -> int:
    """One study over all workloads: the sentence, then a line for each that stands out."""
    from nodescope.serve.json_text import render_json
    from nodescope.use.answers.scanning.json_form import render_scans
    from nodescope.use.answers.scanning.scan import (
        USUAL_METRIC,
        merge_rows,
        render_row,
        render_scan,
        scan_nodes,
    )

    if options.container:
        raise SettingsRejected("--all looks at every workload; leave out --container")
    view = open_view(options.paths)
    metric = options.metric or USUAL_METRIC.get(options.name, "cpu")
    check_metric(view, metric)
    found = scan_nodes(view, options.name, metric, choose_span(view, options, options.paths))
    if options.json:
        sys.stdout.buffer.write(render_json(render_scans(found)) + b"\n")
        return 0
    lines = [render_scan(found), *(f"  {render_row(row)}" for row in merge_rows(found)[1:])]
    lines += [f"Not looked at: {line}." for one in found for line in one.unseen]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def study_files(options: argparse.Namespace) -> int:
    """
    The exit code: 0 done, 1 a file could not be read, with one line why.

    A file that is refused does not stop the others. `correlation` compares
    every file with all the others.
    """
    everything: list[Series] = []
    for file in options.paths:
        try:
            everything.append(read_series(file, options.kind, options.unit, options.limit))
        except SeriesRefused as refusal:
            sys.stderr.write(f"nodescope study: {refusal}\n")
    print_answers(options, ((run_study(options.name, series, everything), series) for series in everything))
    return 0 if len(everything) == len(options.paths) else 1


def print_answers(options: argparse.Namespace, answers: Iterable[tuple[StudyAnswer, Series]]) -> None:
    for answer, series in answers:
        print_answer(answer, series, sys.stdout, json_output=options.json, colour=has_colour())
