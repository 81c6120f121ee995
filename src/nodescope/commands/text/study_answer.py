"""A study's answer on a terminal: the sentence, a small plot, the evidence; or one line of JSON."""

import json
import shutil
from collections.abc import Mapping
from typing import TextIO

from nodescope.base.quantity import render_number
from nodescope.base.text import clean_text
from nodescope.commands.text.study_plot import render_plot
from nodescope.commands.text.terminal import paint
from nodescope.use.studies.finding import Finding, Measure, StudyAnswer
from nodescope.use.studies.series import Series

# A screenful; all of them are in --json.
MOST_FINDINGS = 12
# Longer than any sentence of ours: names inside it are cut where they are read.
LINE_CHARACTERS = 4096
# As much of a container's id as other tools show.
ID_CHARACTERS = 12
# A confidence as a word, for people who do not read decimals.
CONFIDENCE_WORDS = ((0.99, "almost certain"), (0.9, "very likely"), (0.7, "likely"), (0.5, "possible"))


def print_answer(
    answer: StudyAnswer, series: Series, out: TextIO, *, json_output: bool, colour: bool
) -> None:
    if json_output:
        print(json.dumps(answer.to_json(), ensure_ascii=False, allow_nan=False), file=out, flush=True)
        return
    width = shutil.get_terminal_size((80, 24)).columns
    print(render_study(answer, series, width, colour=colour), file=out)


def render_study(answer: StudyAnswer, series: Series, width: int, *, colour: bool) -> str:
    heading = clean_text(name_series(answer.series), LINE_CHARACTERS)
    lines = [paint(f"{heading}: {answer.study}", "dim", wanted=colour)]
    lines += [paint(clean_text(answer.sentence, LINE_CHARACTERS), "bold", wanted=colour), ""]
    plot = render_plot(series, answer.findings, width)
    lines += [*plot, ""] if plot else []
    for finding in answer.findings[:MOST_FINDINGS]:
        lines += render_finding(finding)
    if len(answer.findings) > MOST_FINDINGS:
        lines.append(f"  ... and {len(answer.findings) - MOST_FINDINGS} more; --json has all of them")
    lines.append(f"  {answer.samples} samples, {100 * answer.missing_share:.1f} % missing")
    return "\n".join(lines) + "\n"


def name_series(series: Mapping[str, str | None]) -> str:
    """`memory of cache-1/cache (4a81c8f7b8d2)`: two runs of one container are told apart by their ids."""
    name = series.get("file") or series.get("metric") or "series"
    container, identifier = series.get("container"), (series.get("id") or "")[:ID_CHARACTERS]
    return f"{name} of {container} ({identifier})" if container and identifier else name


def render_finding(finding: Finding) -> list[str]:
    likely = next((word for least, word in CONFIDENCE_WORDS if finding.confidence >= least), "unlikely")
    figures = ", ".join(
        f"{name.replace('_', ' ')} {render_measure(value)}"
        for name, value in (*finding.measures.items(), *finding.evidence.items())
        if value is not None
    )
    return [
        f"* {clean_text(finding.sentence, LINE_CHARACTERS)}",
        f"  {likely} ({finding.confidence:.2f}); {clean_text(figures, LINE_CHARACTERS)}",
    ]


def render_measure(value: Measure) -> str:
    return render_number(float(value)) if isinstance(value, (int, float)) else str(value)
