"""
From the answers of all units to the answer: what is kept, in which groups, what was not looked at.

A finding is kept if it is significant among all series that were looked at;
the others stay in the table, marked, and are counted.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import exp
from statistics import median
from typing import Any

from nodescope.read.files.file_survey import SurveyFault
from nodescope.use.fleet.group import Group, count_looked, group_of, group_rows
from nodescope.use.fleet.significance import binomial_tail, log_likelihood_ratio
from nodescope.use.fleet.unit import Job, UnitAnswer
from nodescope.use.fleet.workload import GROUPINGS
from nodescope.use.studies.maths.tail_probability import adjust_p_values

# A finding may be kept together with its workload or image: a team can act on those.
COMMON = ("workload", "image")
# The weight of the median group's rate of changes in every group's own rate.
PRIOR_SECONDS = 1800.0


@dataclass(slots=True)
class GroupTest:
    """Whether a group has more findings than usual: the binomial test of one group."""

    by: str
    group: Group
    chance: float
    adjusted: float
    nats: float
    expected: float
    """The share of its findings that would be there by chance."""


@dataclass(slots=True)
class FleetAnswer:
    question: str
    by: str
    nodes: int
    units: int
    series: int
    """Series with enough samples."""
    short: int
    samples: int
    false_share: float
    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    group_tests: list[GroupTest] = field(default_factory=list)
    faults: list[SurveyFault] = field(default_factory=list)
    not_collected: list[str] = field(default_factory=list)
    at: float | None = None
    fetched_bytes: int = 0

    @property
    def kept(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kept"]]


def build_answer(
    parts: Sequence[UnitAnswer], faults: Sequence[SurveyFault], job: Job, by: str, false_share: float
) -> FleetAnswer:
    answer = FleetAnswer(
        job.question,
        by,
        len({part.unit.node for part in parts}),
        len(parts),
        sum(part.looked.total() for part in parts),
        sum(part.short for part in parts),
        sum(part.samples for part in parts),
        false_share,
        [row for part in parts for row in part.rows],
        faults=list(dict.fromkeys([*faults, *(fault for part in parts for fault in part.faults)])),
        at=None if job.at_ms is None else job.at_ms / 1000,
        fetched_bytes=sum(part.fetched_bytes for part in parts),
    )
    answer.not_collected = missing_metrics(parts)
    if job.question == "changes":
        judge_changes(answer, parts, job)
    elif job.question in ("top", "summary"):
        judge_figures(answer, parts)
    else:
        judge_findings(answer, parts)
    answer.rows.sort(key=lambda row: (not row["kept"], row["chance"], -abs(row["magnitude"] or 0.0)))
    return answer


def missing_metrics(parts: Sequence[UnitAnswer]) -> list[str]:
    asked = {part.unit.metric for part in parts}
    return sorted(asked - {part.unit.metric for part in parts if part.collected})


def judge_findings(answer: FleetAnswer, parts: Sequence[UnitAnswer]) -> None:
    """
    Kept: what is significant by itself, or what the series of a workload or image have in common.

    A hundred replicas with weak findings are more evidence than one of them: a
    finding is common to a group when more of the group has it than of the rest.
    """
    own = adjust_p_values([row["chance"] for row in answer.rows], answer.series)
    mark_rows(answer, own, test_groups(answer, parts, COMMON, partial(rest_share, answer, parts)))

    def rank(group: Group) -> Any:
        soonest = group.spread("time_to_limit_seconds")
        return (
            -group.series,
            soonest.low if soonest else float("inf"),
            -max(abs(row["magnitude"] or 0.0) for row in group.rows),
        )

    answer.groups = group_rows(answer.kept, count_looked(parts, answer.by), answer.by, rank)


def mark_rows(answer: FleetAnswer, own: Sequence[float], tests: Sequence[GroupTest]) -> None:
    """
    Each row with its adjusted p-value, its own or that of its workload or image.

    A node's or a namespace's test says that something is there, not that it is
    this series.
    """
    shared = {
        (one.by, one.group.name, one.group.metric): one.adjusted
        for one in tests
        if one.by in COMMON and is_common(one, answer.false_share)
    }
    for row, adjusted in zip(answer.rows, own):
        in_groups = [shared.get((by, group_of(row, by), row["metric"]), 1.0) for by in COMMON]
        row["chance_adjusted"] = min(adjusted, *in_groups)
        row["kept"] = row["chance_adjusted"] <= answer.false_share


UsualShare = Callable[[Group], float]
"""The probability that a series of the group has a finding by chance."""


def test_groups(
    answer: FleetAnswer,
    parts: Sequence[UnitAnswer],
    groupings: Sequence[str],
    usual_share: Callable[[str], UsualShare],
) -> list[GroupTest]:
    """Every group with a finding against the usual share, adjusted for the number of all groups."""
    found: list[GroupTest] = []
    tried = 0
    for by in groupings:
        looked = count_looked(parts, by)
        tried += len(looked)
        share_of = usual_share(by)
        for group in group_rows(answer.rows, looked, by, lambda one: one.name):
            tries = max(group.looked_at, group.series)
            share = share_of(group)
            tail = binomial_tail(group.series, tries, share)
            nats = log_likelihood_ratio(group.series, tries, share)
            found.append(GroupTest(by, group, tail, 1.0, nats, tries * share / group.series))
    for one, adjusted in zip(found, adjust_p_values([one.chance for one in found], tried)):
        one.adjusted = adjusted
    return found


def is_common(one: GroupTest, false_share: float) -> bool:
    """Significant, and with few members that are there by chance."""
    return one.adjusted <= false_share and one.expected <= false_share


def rest_share(answer: FleetAnswer, parts: Sequence[UnitAnswer], by: str) -> UsualShare:
    """The share of series outside of the group that have a finding of this metric."""
    looked = count_looked(parts, by)
    groups = group_rows(answer.rows, looked, by, lambda one: one.name)
    hit = {(group.name, group.metric): group.series for group in groups}

    def share(group: Group) -> float:
        hits, tries = (
            sum(
                count
                for (name, metric), count in counts.items()
                if metric == group.metric and name != group.name
            )
            for counts in (hit, looked)
        )
        # Half a finding is added: none so far does not make it impossible.
        return min(0.5, (hits + 0.5) / (tries + 1))

    return share


def judge_figures(answer: FleetAnswer, parts: Sequence[UnitAnswer]) -> None:
    """Figures are not tested: all are kept, what used the most over the span first."""
    for row in answer.rows:
        row["chance_adjusted"], row["kept"] = row["chance"], True

    def rank(group: Group) -> float:
        return -group.over_span()

    answer.groups = group_rows(answer.rows, count_looked(parts, answer.by), answer.by, rank)


def judge_changes(answer: FleetAnswer, parts: Sequence[UnitAnswer], job: Job) -> None:
    """
    What changed together: in more series of a group than usual for this group.

    A cron job changes every five minutes, which is nothing new: a group is
    compared with how often its series change at other times.
    """
    answer.group_tests = test_groups(answer, parts, GROUPINGS, partial(change_share, parts, job))
    answer.group_tests.sort(
        key=lambda one: (not is_common(one, answer.false_share), -one.nats, one.by, one.group.name)
    )
    mark_rows(answer, [1.0] * len(answer.rows), answer.group_tests)
    answer.groups = group_rows(
        answer.kept, count_looked(parts, answer.by), answer.by, lambda group: -group.series
    )


def change_share(parts: Sequence[UnitAnswer], job: Job, by: str) -> UsualShare:
    """The probability that a series of the group changes in a span as long as the one in question."""
    changes: Counter[tuple[str, str]] = Counter()
    seconds: dict[tuple[str, str], float] = {}
    for part in parts:
        for owner, span in part.seconds_elsewhere.items():
            group = owner.group(by), part.unit.metric
            changes[group] += part.elsewhere[owner]
            seconds[group] = seconds.get(group, 0.0) + span
    rates: dict[str, list[float]] = {}
    for group_key, span in seconds.items():
        rates.setdefault(group_key[1], []).append((changes[group_key] + 0.5) / max(1.0, span))
    middle = {metric: median(found) for metric, found in rates.items()}

    def share(group: Group) -> float:
        # A group with little history of its own is taken to be like the others.
        key = group.name, group.metric
        rate = (changes[key] + middle[group.metric] * PRIOR_SECONDS) / (seconds.get(key, 0.0) + PRIOR_SECONDS)
        return min(0.5, 1 - exp(-rate * 2 * job.within_ms / 1000))

    return share
