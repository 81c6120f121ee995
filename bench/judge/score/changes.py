"""Change points: false ones by kind of noise and length, and real ones found."""

from dataclasses import dataclass

from bench.judge.make.case import START_AT, Random
from bench.judge.make.changes import CHANGES, QUIET, ChangeCase
from bench.judge.section import Outcomes, Section, balanced
from bench.judge.table import Pair, Row, confidence_rows, rate_row, share_row

LENGTHS = (1200, 14_400)
FALSE_PER_1000 = 0.3
SURE = 0.5
FOUND = 0.8
PROMISED = ("slope", "spikes begin", "cron stops", "cron 60 to 30 s", "cron 30 to 60 s")


@dataclass(frozen=True)
class Told:
    pairs: tuple[Pair, ...]
    """Of each finding: its confidence, and whether it is near the change."""


def judge(name: str, random: Random) -> Told:
    """A class of noise has its length behind a sign: `GC @1200`."""
    kind, _, length = name.partition(" @")
    case = QUIET[kind](random, int(length)) if length else CHANGES[kind](random, LENGTHS[0])
    return Told(
        tuple(
            (finding.confidence, is_near(case, finding.at if finding.at is not None else finding.start_at))
            for finding in case.ask("changepoint").findings
        )
    )


def is_near(case: ChangeCase, told_at: float) -> bool:
    if case.change_at is None:
        return False
    return abs(told_at - START_AT - case.change_at * case.step_seconds) <= case.margin_seconds


def false_ones(one: Told) -> int:
    return sum(confidence >= SURE and not is_real for confidence, is_real in one.pairs)


def is_found(one: Told) -> bool:
    return any(confidence >= SURE and is_real for confidence, is_real in one.pairs)


def rows(outcomes: Outcomes) -> list[Row]:
    result = []
    for length in LENGTHS:
        part = f"False change points per 1,000 samples, confidence >= {SURE}, n={length:,}"
        for kind in QUIET:
            counts = [false_ones(one) for one in outcomes.get(f"{kind} @{length}", ())]
            result += [rate_row(part, kind, counts, length, FALSE_PER_1000)] if counts else []
    for name in CHANGES:
        found = [is_found(one) for one in outcomes.get(name, ())]
        wanted = FOUND if name.startswith(PROMISED) else None
        result += [share_row(f"Changes found at confidence >= {SURE}, n=1,200", name, found, wanted)]
    return [*result, *confidence(outcomes)]


def confidence(outcomes: Outcomes) -> list[Row]:
    """In equal numbers of series with a change and series of the same length without one."""
    real = [name for name in outcomes if name in CHANGES]
    without = [name for name in outcomes if name.endswith(f"@{LENGTHS[0]}")]
    pairs = [pair for one in balanced(outcomes, real, without) for pair in one.pairs]
    return confidence_rows("Confidence of changepoint: what was told is a change, n=1,200", pairs)


def counts(size: int) -> dict[str, int]:
    """Long series are some ten times as much evidence about false ones."""
    short = {f"{kind} @{LENGTHS[0]}": size for kind in QUIET}
    long = {f"{kind} @{LENGTHS[1]}": max(4, size // 4) for kind in QUIET}
    return {**short, **long, **dict.fromkeys(CHANGES, size)}


SECTION = Section("changes", counts, judge, rows)
