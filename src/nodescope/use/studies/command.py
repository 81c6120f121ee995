"""`nodescope study NAME FILE.csv...`: reads the files, runs the study, prints text or one JSON line per file."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from nodescope.use.studies import STUDIES, correlation
from nodescope.use.studies.answer_text import render_answer
from nodescope.use.studies.csv_series import SeriesRefused, read_series
from nodescope.use.studies.finding import StudyAnswer
from nodescope.use.studies.series import Kind, Series
from nodescope.use.studies.words import unknown_name

DONE, FAILED, WRONG_USAGE = 0, 1, 2


def run_study_command(
    name: str,
    files: Sequence[str | Path],
    *,
    json_output: bool = False,
    kind: Kind = "gauge",
    unit: str = "",
    limit: float | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """
    The exit code: 0 done, 1 a file could not be read, 2 wrong usage.

    A file that is refused does not stop the others. `correlation` compares
    every file with all the others.
    """
    out, err = out or sys.stdout, err or sys.stderr
    if name not in STUDIES:
        print(unknown_name("study", name, list(STUDIES)), file=err)
        return WRONG_USAGE
    if not files:
        print(f"no file; for example: nodescope study {name} FILE.csv", file=err)
        return WRONG_USAGE
    series, refused = read_all(files, kind, unit, limit, err)
    colour = is_colourful(out, os.environ if environment is None else environment)
    for one in series:
        print_answer(answer_for(name, one, series), one, out, json_output=json_output, colour=colour)
    return FAILED if refused else DONE


def read_all(
    files: Sequence[str | Path], kind: Kind, unit: str, limit: float | None, err: TextIO
) -> tuple[list[Series], int]:
    """Every series that could be read, and how many files could not, each with one line why."""
    series: list[Series] = []
    for file in files:
        try:
            series.append(read_series(Path(file), kind, unit, limit))
        except SeriesRefused as refusal:
            print(refusal, file=err)
    return series, len(files) - len(series)


def answer_for(name: str, series: Series, everything: list[Series]) -> StudyAnswer:
    if name == correlation.NAME:
        return correlation.study(series, [other for other in everything if other is not series])
    return STUDIES[name].run(series)


def print_answer(
    answer: StudyAnswer, series: Series, out: TextIO, *, json_output: bool, colour: bool
) -> None:
    if json_output:
        print(json.dumps(answer.to_json(), ensure_ascii=False, allow_nan=False), file=out, flush=True)
        return
    width = shutil.get_terminal_size((80, 24)).columns
    print(render_answer(answer, series, width, colour=colour), file=out)


def is_colourful(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Only on a terminal, and never when NO_COLOR is set (https://no-color.org)."""
    return out.isatty() and not environment.get("NO_COLOR")
