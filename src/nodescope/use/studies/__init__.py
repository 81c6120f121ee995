"""
Studies: questions asked of a series, each answered with findings a person can trust.

One file per study; a study is added by writing its file and one row here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodescope.use.studies import anomaly, changepoint, correlation, periodicity, summary, trend
from nodescope.use.studies.finding import Finding, StudyAnswer
from nodescope.use.studies.series import Series

__all__ = ["STUDIES", "Finding", "Series", "Study", "StudyAnswer", "run_study"]


@dataclass(frozen=True)
class Study:
    name: str
    question: str
    run: Callable[[Series], StudyAnswer]


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study("periodicity", "Does it repeat itself, how often, from when to when?", periodicity.study),
        Study("changepoint", "When did its level, slope, noise or pattern change?", changepoint.study),
        Study("trend", "Does it rise or fall for good, and when does it reach its limit?", trend.study),
        Study("summary", "What are its figures, and how close is it to full?", summary.study),
        Study("anomaly", "Is its newest stretch unusual against its own history?", anomaly.study),
        Study("correlation", "Which other series moved together with it?", correlation.study),
    )
}


def run_study(
    name: str, series: Series, everything: Sequence[Series], history: Series | None = None
) -> StudyAnswer:
    """
    The study's answer about one series; `correlation` compares it with the others of everything.

    history is the same series before; `changepoint` looks there for what repeats, `anomaly` for what is
    usual at this hour on such a day.
    """
    if name == correlation.NAME:
        return correlation.study(series, [other for other in everything if other is not series])
    if name == changepoint.NAME:
        return changepoint.study(series, history)
    if name == anomaly.NAME:
        return anomaly.study(series, history=history)
    return summary.study_figures(series) if name == summary.FIGURES else STUDIES[name].run(series)
