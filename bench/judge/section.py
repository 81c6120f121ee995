"""What a part of the table consists of, and the shape of its outcomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.judge.make.case import Random
from bench.judge.table import Row

Outcomes = Mapping[str, Sequence[Any]]
"""Class name to what came of each of its cases."""


@dataclass(frozen=True)
class Section:
    name: str
    counts: Callable[[int], dict[str, int]]
    """From the size asked for: class name to number of cases."""
    judge: Callable[[str, Random], Any]
    """Makes one case of a class, asks the study, and says what came of it."""
    rows: Callable[[Outcomes], list[Row]]


def balanced(outcomes: Outcomes, real: Sequence[str], without: Sequence[str]) -> list[Any]:
    """
    As many cases with something to find as without: confidence is judged on these.

    What share of findings is real depends on how much there is to find. Of each class
    without the first cases are taken.
    """
    wanted = sum(len(outcomes[name]) for name in real)
    each = -(-wanted // max(1, len(without)))
    rest = [one for name in without for one in outcomes[name][:each]]
    return [*pooled(outcomes, real), *rest[:wanted]]


def pooled(outcomes: Outcomes, names: Sequence[str]) -> list[Any]:
    return [one for name in names for one in outcomes.get(name, ())]
