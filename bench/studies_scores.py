"""
The published scores of change points against several people's marks (TCPDBench), and their data.

F1: margin 5; 0 counts as a mark for everybody; precision is against all marks together,
recall is the mean over people. Covering: how well each person's pieces are covered by the
best overlapping found piece, by length.
"""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
MARGIN = 5


@dataclass(frozen=True)
class Labelled:
    """A series and, for each person who looked at it, the marks that person made."""

    name: str
    values: FloatArray
    marks: tuple[tuple[int, ...], ...]


def read_labelled(folder: Path) -> list[Labelled]:
    """Every one-dimensional series of a folder laid out as TCPD is."""
    annotations = json.loads((folder / "annotations.json").read_text())
    labelled = []
    for path in sorted((folder / "series").glob("*.json")):
        content = json.loads(path.read_text())
        if content["n_dim"] == 1 and content["name"] in annotations:
            raw = [np.nan if value is None else float(value) for value in content["series"][0]["raw"]]
            people = tuple(tuple(marks) for marks in annotations[content["name"]].values())
            labelled.append(Labelled(content["name"], np.array(raw), people))
    return labelled


def f1(marks: tuple[tuple[int, ...], ...], found: list[int]) -> float:
    predicted = {0, *found}
    people = [{0, *person} for person in marks]
    precision = hits(set().union(*people), predicted) / len(predicted)
    recall = float(np.mean([hits(person, predicted) / len(person) for person in people]))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def hits(marks: set[int], predicted: set[int]) -> int:
    """Marks that get a prediction of their own within the margin, the nearest first."""
    free = set(predicted)
    count = 0
    for mark in sorted(marks):
        near = [(abs(mark - one), one) for one in free if abs(mark - one) <= MARGIN]
        if near:
            free.remove(min(near)[1])
            count += 1
    return count


def covering(marks: tuple[tuple[int, ...], ...], found: list[int], count: int) -> float:
    pieces = pieces_of(found, count)
    shares = [
        sum(
            (end - start) * max(overlap((start, end), piece) for piece in pieces)
            for start, end in pieces_of(person, count)
        )
        for person in marks
    ]
    return float(np.mean(shares)) / count


def pieces_of(cuts: list[int] | tuple[int, ...], count: int) -> list[tuple[int, int]]:
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < count}), count]
    return list(itertools.pairwise(bounds))


def overlap(left: tuple[int, int], right: tuple[int, int]) -> float:
    """Shared length over joint length."""
    shared = min(left[1], right[1]) - max(left[0], right[0])
    return max(0, shared) / (max(left[1], right[1]) - min(left[0], right[0]))
