"""Anomalies: alarms where all is as usual, and alarms where it is not."""

from dataclasses import dataclass

from bench.judge.make.alarms import UNUSUAL, USUAL, AlarmCase, busy_weekend
from bench.judge.make.case import Random
from bench.judge.section import Outcomes, Section, balanced, pooled
from bench.judge.table import Pair, Row, confidence_rows, share_row

FALSE, FOUND = 0.01, 0.9
PROMISED = ("+5 sd", "vanished", "stopped")
ENDED = "+8 sd for 40 s, ended 300 s ago"
WEEKEND = "weekend as usual"
# How much later than the truth an end may be told.
SLACK_SECONDS = 60.0


@dataclass(frozen=True)
class Alarm:
    is_told: bool
    is_found: bool
    is_ended: bool
    """Whether what was told ends where the truth ends, and not with the series."""
    pairs: tuple[Pair, ...]


def judge(name: str, random: Random) -> Alarm:
    case = make(name, random)
    findings = case.ask("anomaly").findings
    if case.unusual is None:
        return Alarm(bool(findings), False, False, tuple((one.confidence, False) for one in findings))
    start_at, end_at = case.times_at[case.unusual[0]], case.times_at[case.unusual[1] - 1]
    near = [one for one in findings if one.start_at <= end_at and one.end_at >= start_at]
    return Alarm(
        is_told=bool(findings),
        is_found=bool(near),
        is_ended=any(one.end_at <= end_at + SLACK_SECONDS for one in near),
        pairs=tuple((one.confidence, one in near) for one in findings),
    )


def make(name: str, random: Random) -> AlarmCase:
    if name == WEEKEND:
        return busy_weekend(random, is_busy=False)
    return (UNUSUAL if name.startswith("u:") else USUAL)[name[2:]](random)


def rows(outcomes: Outcomes) -> list[Row]:
    usual = [name for name in outcomes if name.startswith("n:")]
    unusual = [name for name in outcomes if name.startswith("u:")]
    part = "False alarms on stationary noise"
    every = [one.is_told for one in pooled(outcomes, usual)]
    result = [share_row(part, "all classes", every, None, FALSE)]
    result += [
        share_row(part, name[2:], [one.is_told for one in outcomes[name]], None, FALSE) for name in usual
    ]
    for name in unusual:
        wanted = FOUND if name[2:].startswith(PROMISED) else None
        result.append(
            share_row("Anomalies found", name[2:], [one.is_found for one in outcomes[name]], wanted)
        )
    ended = [one.is_ended for one in outcomes.get(f"u:{ENDED}", ()) if one.is_found]
    result.append(share_row("Anomalies found", "the one that ended is told with its end", ended, FOUND))
    weekend = [one.is_told for one in outcomes.get(WEEKEND, ())]
    result.append(share_row("Anomalies found", "alarm on a weekend as usual", weekend))
    pairs = [pair for one in balanced(outcomes, unusual, usual) for pair in one.pairs]
    part = "Confidence of anomaly: the alarm is real (stated as 1 - p, for information)"
    return [*result, *confidence_rows(part, pairs, is_promised=False)]


def counts(size: int) -> dict[str, int]:
    return {
        **{f"n:{name}": 15 * size for name in USUAL},
        **{f"u:{name}": 2 * size for name in UNUSUAL},
        WEEKEND: size,
    }


SECTION = Section("anomaly", counts, judge, rows)
