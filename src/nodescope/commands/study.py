"""nodescope study: a question asked of a series, answered in one sentence with its evidence."""

import argparse
from pathlib import Path

from nodescope.base.errors import RequestRejected, SettingsRejected
from nodescope.use.studies import STUDIES
from nodescope.use.studies.command import run_study_command

EXAMPLE = """example:
  nodescope study changepoint requests.csv
  nodescope study periodicity *.csv --json

A CSV file has the columns time and value: seconds or ISO 8601, an empty value is missing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    questions = "\n".join(f"  {study.name:<12} {study.question}" for study in STUDIES.values())
    parser.epilog = f"studies:\n{questions}\n\n{EXAMPLE}"
    parser.add_argument("name", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("paths", metavar="FILE", nargs="+", help="CSV files")
    parser.add_argument("--kind", choices=("gauge", "counter"), default="gauge", help="gauge unless given")
    parser.add_argument("--unit", default="", help="the values' unit, for the sentences: bytes, cores, ratio")
    parser.add_argument("--limit", type=float, help="what the series must not reach")
    parser.add_argument("--json", action="store_true", help="one JSON line per file")


def run(options: argparse.Namespace) -> int:
    paths = [Path(path) for path in options.paths]
    folders = [path for path in paths if path.is_dir()]
    if folders:
        raise RequestRejected(
            f"{folders[0]} is a folder; accepted: CSV files with the columns time and value"
        )
    if options.limit is not None and options.limit <= 0:
        raise SettingsRejected(f"--limit {options.limit:g} is not accepted; accepted: a number above 0")
    return run_study_command(
        options.name,
        paths,
        json_output=options.json,
        kind=options.kind,
        unit=options.unit,
        limit=options.limit,
    )
