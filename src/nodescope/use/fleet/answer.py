"""
From the parts to the answer: what is kept, in which groups, and what was not looked at.

Findings are kept or not by their chance among all series that were looked
at; those that are not kept stay in the table, marked, and are counted.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp
from statistics import median
from typing import Any

from nodescope.read.files.file_survey import SurveyFault
from nodescope.use.fleet.chance import adjust, binomial_tail, surprise
from nodescope.use.fleet.group import Group, count_looked, group_of, group_rows
from nodescope.use.fleet.part import Job, UnitPart
from nodescope.use.fleet.workload import GROUPINGS, Owner

# Workloads and images are what a team can act on.
COMMON = ("workload", "image")
PRIOR_SECONDS = 1800.0


@dataclass(slots=True)
class Together:
    """Changes at one moment that a group has in common."""

    by: str
    group: Group
    chance: float
    adjusted: float
    nats: float
    expected: float
    """Of its hits, the share that would be there anyhow."""

    @property
    def share(self) -> float:
        return self.group.series / self.group.looked_at if self.group.looked_at else 0.0


@dataclass(slots=True)
class FleetAnswer:
    """What the command prints and writes."""

    question: str
    by: str
    nodes: int
    units: int
    series: int
    """Series with enough samples to say something."""
    short: int
    samples: int
    false_share: float
    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    together: list[Together] = field(default_factory=list)
    faults: list[SurveyFault] = field(default_factory=list)
    not_collected: list[str] = field(default_factory=list)
    at: float | None = None
    fetched_bytes: int = 0

    @property
    def kept(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kept"]]


def build_answer(
    parts: Sequence[UnitPart], faults: Sequence[SurveyFault], job: Job, by: str, false_share: float
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


def missing_metrics(parts: Sequence[UnitPart]) -> list[str]:
    asked = {part.unit.metric for part in parts}
    return sorted(asked - {part.unit.metric for part in parts if part.collected})


def judge_findings(answer: FleetAnswer, parts: Sequence[UnitPart]) -> None:
    """
    Kept: what is too strong for chance alone, or what a workload's or image's series have in common.

    A hundred replicas that all show a little say more than one of them: a
    group has it together when more of it has it than of the rest of the fleet.
    """
    own = adjust([row["chance"] for row in answer.rows], answer.series)
    shared = {
        (one.by, one.group.name, one.group.metric): one.adjusted
        for one in test_groups(answer, parts, COMMON, rest_share)
        if is_together(one, answer.false_share)
    }
    for row, adjusted in zip(answer.rows, own):
        in_groups = [shared.get((by, group_of(row, by), row["metric"]), 1.0) for by in COMMON]
        row["chance_adjusted"] = min(adjusted, *in_groups)
        row["kept"] = row["chance_adjusted"] <= answer.false_share

    def rank(group: Group) -> Any:
        soonest = group.spread("time_to_limit_seconds")
        return (
            -group.series,
            soonest.low if soonest else float("inf"),
            -max(abs(row["magnitude"] or 0.0) for row in group.rows),
        )

    answer.groups = group_rows(answer.kept, count_looked(parts, answer.by), answer.by, rank)


Usual = Callable[[str, Group], float]


def test_groups(
    answer: FleetAnswer,
    parts: Sequence[UnitPart],
    groupings: Sequence[str],
    usual: "Callable[[FleetAnswer, Sequence[UnitPart], str], Usual]",
) -> list[Together]:
    """Every group with a finding against the share that is usual, over all groups that there are."""
    found: list[Together] = []
    tried = 0
    for by in groupings:
        looked = count_looked(parts, by)
        tried += len(looked)
        share_of = usual(answer, parts, by)
        for group in group_rows(answer.rows, looked, by, lambda one: one.name):
            tries = max(group.looked_at, group.series)
            share = share_of(by, group)
            tail = binomial_tail(group.series, tries, share)
            expected = tries * share / group.series
            found.append(Together(by, group, tail, 1.0, surprise(group.series, tries, share), expected))
    for one, adjusted in zip(found, adjust([one.chance for one in found], tried)):
        one.adjusted = adjusted
    return found


def is_together(one: Together, false_share: float) -> bool:
    """More than chance, and so much more that few of its members are there by chance."""
    return one.adjusted <= false_share and one.expected <= false_share


def rest_share(answer: FleetAnswer, parts: Sequence[UnitPart], by: str) -> Usual:
    """How many series outside of the group have a finding of this metric."""
    looked = count_looked(parts, by)
    hit: Counter[tuple[str, str]] = Counter()
    for group in group_rows(answer.rows, looked, by, lambda one: one.name):
        hit[group.name, group.metric] = group.series

    def share(_: str, group: Group) -> float:
        tries = sum(
            count for (name, metric), count in looked.items() if metric == group.metric and name != group.name
        )
        hits = sum(
            count for (name, metric), count in hit.items() if metric == group.metric and name != group.name
        )
        # Half a finding more than were seen: none so far does not make it impossible.
        return min(0.5, (hits + 0.5) / (tries + 1))

    return share


def judge_figures(answer: FleetAnswer, parts: Sequence[UnitPart]) -> None:
    """Figures are no tests: all are kept, the greatest first."""
    for row in answer.rows:
        row["chance_adjusted"], row["kept"] = row["chance"], True

    def rank(group: Group) -> float:
        return -sum(row["magnitude"] or 0.0 for row in group.rows) / len(group.rows)

    answer.groups = group_rows(answer.rows, count_looked(parts, answer.by), answer.by, rank)


def judge_changes(answer: FleetAnswer, parts: Sequence[UnitPart], job: Job) -> None:
    """
    What changed together: more of a group than its own habit would have.

    A cron job changes every five minutes, and that is no news: a group is
    measured by how often its series change elsewhere in the same stretch.
    """

    def usual(_: FleetAnswer, parts: Sequence[UnitPart], by: str) -> Usual:
        return usual_share(parts, job, by)

    answer.together = test_groups(answer, parts, GROUPINGS, usual)
    answer.together.sort(
        key=lambda one: (not is_together(one, answer.false_share), -one.nats, one.by, one.group.name)
    )
    # A row is kept with its workload or image: a node's or namespace's share
    # says that something is there, not that it is this series.
    shared = {
        (one.by, one.group.name, one.group.metric): one.adjusted
        for one in answer.together
        if one.by in COMMON and is_together(one, answer.false_share)
    }
    for row in answer.rows:
        in_groups = [shared.get((by, group_of(row, by), row["metric"]), 1.0) for by in COMMON]
        row["chance_adjusted"] = min(in_groups)
        row["kept"] = row["chance_adjusted"] <= answer.false_share
    answer.groups = group_rows(
        answer.kept, count_looked(parts, answer.by), answer.by, lambda group: -group.series
    )


def usual_share(parts: Sequence[UnitPart], job: Job, by: str) -> Usual:
    """The chance that a series of the group changes in a stretch as long as the one asked for."""
    changes: Counter[tuple[str, str]] = Counter()
    seconds: dict[tuple[str, str], float] = {}
    for part in parts:
        for key, span in part.seconds_elsewhere.items():
            group = Owner(part.unit.node, *key).group(by), part.unit.metric
            changes[group] += part.elsewhere[key]
            seconds[group] = seconds.get(group, 0.0) + span

    rates: dict[str, list[float]] = {}
    for group_key, span in seconds.items():
        rates.setdefault(group_key[1], []).append((changes[group_key] + 0.5) / max(1.0, span))
    middle = {metric: median(found) for metric, found in rates.items()}

    def share(_: str, group: Group) -> float:
        # The middle group's rate weighs as much as half an hour of one series:
        # a group with little history of its own is taken to be like the others.
        key = group.name, group.metric
        rate = (changes[key] + middle[group.metric] * PRIOR_SECONDS) / (seconds.get(key, 0.0) + PRIOR_SECONDS)
        return min(0.5, 1 - exp(-rate * 2 * job.within_ms / 1000))

    return share
