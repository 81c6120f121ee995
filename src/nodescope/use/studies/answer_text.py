"""An answer as a person reads it in a terminal: the sentence, a small plot, the evidence."""

from nodescope.use.studies.finding import Evidence, Finding, Measure, StudyAnswer
from nodescope.use.studies.plot import render_plot
from nodescope.use.studies.series import Series
from nodescope.use.studies.words import rounded, sure

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"

# A screenful; all of them are in --json.
MOST_FINDINGS = 12


def render_answer(answer: StudyAnswer, series: Series, width: int, *, colour: bool) -> str:
    heading = cleaned(answer.series.get("file") or answer.series.get("metric") or "series")
    lines = [styled(f"{heading}: {answer.study}", DIM, colour=colour)]
    lines += [styled(cleaned(answer.sentence), BOLD, colour=colour), ""]
    plot = render_plot(series, answer.findings, width)
    lines += [*plot, ""] if plot else []
    for finding in answer.findings[:MOST_FINDINGS]:
        lines += render_finding(finding)
    if len(answer.findings) > MOST_FINDINGS:
        lines.append(f"  ... and {len(answer.findings) - MOST_FINDINGS} more; --json has all of them")
    lines.append(f"  {answer.samples} samples, {100 * answer.missing_share:.1f} % missing")
    return "\n".join(lines) + "\n"


def render_finding(finding: Finding) -> list[str]:
    sure_of_it = f"{sure(finding.confidence)} ({finding.confidence:.2f})"
    figures = ", ".join(
        f"{name} {figure(value)}" for name, value in told(finding.measures) + told(finding.evidence)
    )
    return [f"* {cleaned(finding.sentence)}", f"  {sure_of_it}; {cleaned(figures)}"]


def told(measures: Evidence) -> list[tuple[str, Measure]]:
    return [(name.replace("_", " "), value) for name, value in measures.items() if value is not None]


def figure(value: Measure) -> str:
    return rounded(float(value)) if isinstance(value, (int, float)) else str(value)


def styled(text: str, style: str, *, colour: bool) -> str:
    return f"{style}{text}{PLAIN}" if colour else text


def cleaned(text: str) -> str:
    """Names come from files and labels: control characters never reach the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
