"""A study's answer on a terminal: the sentence, a small plot, the evidence; or one line of JSON."""

import json
import shutil
from collections.abc import Mapping
from typing import TextIO

from nodescope.base.text import clean_text
from nodescope.commands.text.evidence import render_figures
from nodescope.commands.text.study_plot import render_plot
from nodescope.commands.text.terminal import paint, wrap_words
from nodescope.use.studies.finding import Finding, StudyAnswer
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
    print(render_study(answer, series, width, colour=colour, is_wrapped=out.isatty()), file=out)


def render_study(
    answer: StudyAnswer, series: Series, width: int, *, colour: bool, is_wrapped: bool = False
) -> str:
    """Piped, a sentence is one line; on a terminal it ends at the edge, between words."""
    room = width if is_wrapped else None
    heading = f"{clean_text(name_series(answer.series), LINE_CHARACTERS)}: {answer.study}"
    sentence = clean_text(answer.sentence, LINE_CHARACTERS)
    lines = [paint(line, "dim", wanted=colour) for line in wrap_words(heading, room)]
    lines += [*(paint(line, "bold", wanted=colour) for line in wrap_words(sentence, room)), ""]
    plot = render_plot(series, answer.findings, width)
    lines += [*plot, ""] if plot else []
    for finding in answer.findings[:MOST_FINDINGS]:
        lines += render_finding(finding, room)
    if len(answer.findings) > MOST_FINDINGS:
        more = len(answer.findings) - MOST_FINDINGS
        lines += wrap_words(f"  ... and {more} more; --json has all of them", room, "  ")
    lines.append(f"  {answer.samples} samples, {100 * answer.missing_share:.1f} % missing")
    return "\n".join(lines) + "\n"


def name_series(series: Mapping[str, str | None]) -> str:
    """`memory of cache-1/cache (4a81c8f7b8d2)`: two runs of one container are told apart by their ids."""
    name = series.get("file") or series.get("metric") or "series"
    container, identifier = series.get("container"), (series.get("id") or "")[:ID_CHARACTERS]
    return f"{name} of {container} ({identifier})" if container and identifier else name


def render_finding(finding: Finding, room: int | None) -> list[str]:
    likely = next((word for least, word in CONFIDENCE_WORDS if finding.confidence >= least), "unlikely")
    figures = clean_text(render_figures(finding), LINE_CHARACTERS)
    told = (
        f"* {clean_text(finding.sentence, LINE_CHARACTERS)}",
        f"  {likely} ({finding.confidence:.2f}); {figures}",
    )
    return [line for text in told for line in wrap_words(text, room, "  ")]
