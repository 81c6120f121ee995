"""Periods found, told wrongly, and told where there are none."""

from dataclasses import dataclass

from bench.judge.make.case import Random
from bench.judge.make.periods import APERIODIC, PERIODIC, PeriodCase, stochastic_cycle
from bench.judge.section import Outcomes, Section, balanced, pooled
from bench.judge.table import Pair, Row, confidence_rows, share_row
from nodescope.use.studies import Finding

RECALL, PRECISION, FALSE, LEAST_RECALL = 0.93, 0.97, 0.01, 0.75
CYCLE = "stochastic cycle, AR(2)"
MULTIPLES = (2, 3, 4, 5)
ROUGHLY = ("roughly", "about every", "irregular")


@dataclass(frozen=True)
class Repeats:
    seen: tuple[bool, ...]
    """Of each true period, whether it was told."""
    wrong: tuple[float, ...]
    """Periods told that are not there."""
    pairs: tuple[Pair, ...]
    is_told_as_period: bool
    is_told: bool


def judge(name: str, random: Random) -> Repeats:
    case = make(name, random)
    findings = [one for one in case.ask("periodicity").findings if period_of(one)]
    told = [period_of(one) for one in findings]
    seen = tuple(any(is_same(period, true) for period in told) for true in case.periods)
    marks = [(one, is_right(case, period_of(one), seen)) for one in findings]
    return Repeats(
        seen=seen,
        wrong=tuple(period_of(one) for one, right in marks if right is False),
        pairs=tuple((one.confidence, right) for one, right in marks if right is not None),
        is_told_as_period=any(not is_rough(one) for one in findings),
        is_told=bool(findings),
    )


def make(name: str, random: Random) -> PeriodCase:
    if name == CYCLE:
        return stochastic_cycle(random)
    return (PERIODIC if name.startswith("p:") else APERIODIC)[name[2:]](random)


def period_of(finding: Finding) -> float:
    value = finding.measures.get("period_seconds")
    return float(value) if isinstance(value, (int, float)) else 0.0


def is_rough(finding: Finding) -> bool:
    """Told as a cycle without a fixed length, not as a period."""
    return any(word in finding.sentence.lower() for word in ROUGHLY)


def is_same(told: float, true: float) -> bool:
    return abs(told - true) <= max(0.5, 0.02 * true)


def is_right(case: PeriodCase, told: float, seen: tuple[bool, ...]) -> bool | None:
    """None: a multiple of a true period that was told as well; it does repeat then."""
    if any(is_same(told, true) for true in case.periods):
        return True
    known = [true for true, was_seen in zip(case.periods, seen) if was_seen]
    is_multiple = any(is_same(told, true * times) for true in known for times in MULTIPLES)
    return None if is_multiple else False


def rows(outcomes: Outcomes) -> list[Row]:
    periodic = [name for name in outcomes if name.startswith("p:")]
    without = [name for name in outcomes if name.startswith("a:")]
    seen = [hit for one in pooled(outcomes, periodic) for hit in one.seen]
    wrong = sum(len(one.wrong) for one in pooled(outcomes, periodic + without))
    told = [one.is_told for one in pooled(outcomes, without)]
    part = "Periods"
    result = [
        share_row(part, "recall", seen, RECALL),
        share_row(part, "precision", [True] * sum(seen) + [False] * wrong, PRECISION),
        share_row(part, "told where there is none", told, None, FALSE),
    ]
    for name in periodic:
        hits = [hit for one in outcomes[name] for hit in one.seen]
        result.append(share_row("Recall of periods", name.removeprefix("p:"), hits, LEAST_RECALL))
    nested = [all(one.seen) for one in outcomes.get("p:nested 60 + 600 s", ())]
    result.append(share_row("Recall of periods", "nested: both told", nested, LEAST_RECALL))
    for name in periodic:
        false = [bool(one.wrong) for one in outcomes[name]]
        result.append(share_row("A wrong period beside (for information)", name.removeprefix("p:"), false))
    for name in without:
        part = "Told where there is none, by class (for information)"
        result.append(share_row(part, name.removeprefix("a:"), [one.is_told for one in outcomes[name]]))
    cycles = [one.is_told_as_period for one in outcomes.get(CYCLE, ())]
    result.append(share_row("Cycles without a period", f"{CYCLE}: told as a period", cycles, None, 0.05))
    pairs = [pair for one in balanced(outcomes, periodic, without) for pair in one.pairs]
    return [*result, *confidence_rows("Confidence of periodicity: the period told is there", pairs)]


def counts(size: int) -> dict[str, int]:
    return {
        **{
            f"p:{name}": size if name != "job in one hour of a day" else max(4, size // 2)
            for name in PERIODIC
        },
        **{f"a:{name}": 2 * size for name in APERIODIC},
        CYCLE: size,
    }


SECTION = Section("periods", counts, judge, rows)
