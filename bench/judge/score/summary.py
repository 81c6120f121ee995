"""The summary never says "stable" of what is not: over all generators of the judge."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from bench.judge.make.alarms import UNUSUAL, USUAL
from bench.judge.make.calm import CALM
from bench.judge.make.case import Case, Random
from bench.judge.make.changes import CHANGES, QUIET
from bench.judge.make.leaks import LEAKS
from bench.judge.make.pairs import PAIRS
from bench.judge.make.periods import APERIODIC, PERIODIC, stochastic_cycle
from bench.judge.make.pictures import PICTURES, STABLE
from bench.judge.section import Outcomes, Section, pooled
from bench.judge.table import Row, share_row

STABLE_WORD = re.compile(r"\bstable\b", re.IGNORECASE)
OTHERS = ("changepoint", "trend", "periodicity", "anomaly")
SURE = 0.5


def short(make: Callable[[Random, int], Case]) -> Callable[[Random], Case]:
    return lambda random: make(random, 1200)


GROUPS: dict[str, dict[str, Callable[[Random], Case]]] = {
    "pictures": dict(PICTURES),
    "leaks": dict(LEAKS),
    "no leaks": dict(CALM),
    "changes": {name: short(make) for name, make in CHANGES.items()},
    "no changes": {name: short(make) for name, make in QUIET.items()},
    "periods": {name: make for name, make in PERIODIC.items() if name != "job in one hour of a day"},
    "no periods": {**APERIODIC, "stochastic cycle": stochastic_cycle},
    "pairs": dict(PAIRS),
    "as usual": dict(USUAL),
    "unusual": dict(UNUSUAL),
    "stable": dict(STABLE),
}


@dataclass(frozen=True)
class Words:
    says_stable: bool
    moves: bool
    found: tuple[str, ...]
    """Other studies that found something; asked only where the summary says stable."""


def judge(name: str, random: Random) -> Words:
    group, _, kind = name.partition(": ")
    case = GROUPS[group][kind](random)
    answer = case.ask("summary")
    said = [answer.sentence, *(str(one.measures.get("trend")) for one in answer.findings)]
    says_stable = any(STABLE_WORD.search(text) for text in said)
    found = tuple(study for study in OTHERS if finds(case, study)) if says_stable and not case.moves else ()
    return Words(says_stable, case.moves, found)


def finds(case: Case, study: str) -> bool:
    return any(one.confidence >= SURE for one in case.ask(study).findings)


def rows(outcomes: Outcomes) -> list[Row]:
    result = []
    part = 'Summary says "stable"'
    for group in GROUPS:
        every = [one for name, told in outcomes.items() if name.startswith(f"{group}: ") for one in told]
        moving = [one.says_stable for one in every if one.moves]
        if moving:
            result.append(share_row(part, f"{group}: where it moves in truth", moving, None, 0.0))
        still = [one for one in every if not one.moves]
        if still:
            denied = [bool(one.found) for one in still]
            result.append(share_row(part, f"{group}: where another study found something", denied, None, 0.0))
    flat = pooled(outcomes, [name for name in outcomes if name.startswith("stable: ")])
    result.append(share_row(part, "of a flat line (for information)", [one.says_stable for one in flat]))
    for name, told in outcomes.items():
        wrong = [one.says_stable and (one.moves or bool(one.found)) for one in told]
        if any(wrong):
            result.append(share_row('"Stable" said wrongly, by class (for information)', name, wrong))
    return result


def counts(size: int) -> dict[str, int]:
    few = max(3, size // 4)
    return {
        f"{group}: {name}": size if group in {"pictures", "stable"} else few
        for group, makers in GROUPS.items()
        for name in makers
    }


SECTION = Section("summary", counts, judge, rows)
