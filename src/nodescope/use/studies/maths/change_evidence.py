"""
What speaks for a change after everything that is no change had its say.

The search (change_search.py) assumes independent noise without outliers. Here
each of its changes is weighed again, on blocks whose outliers are drawn in,
against noise with memory (noise_rival.py), as a change of level or slope and as
a change of the noise; and the same moves elsewhere are counted (recurrence.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.maths.noise_rival import MOST_WEIGHED, rival_gains
from nodescope.use.studies.maths.recurrence import recurrences
from nodescope.use.studies.maths.robust import NORMAL_MAD, block_means, mad_deviation, without_line
from nodescope.use.studies.series import FloatArray

# Outliers end at four deviations from the running median of so many blocks.
OUTLIER_WINDOW = 31
OUTLIER_DEVIATIONS = 4.0

# The logarithm of a residual near 0 is far below the others; a tenth of the
# deviation, added before, keeps it among them.
RESIDUAL_FLOOR = 0.1

# Blocks whose distances are averaged first: the logarithm of four together
# varies half as much as four logarithms.
LOUD_GROUP = 4

# The noise of a shorter piece is not known.
LOUD_BLOCKS = 20


@dataclass(frozen=True)
class ChangeEvidence:
    """
    What is left of one change, in nats beyond the choice of its place.

    moved       that level or slope changed, against the best noise with memory
    louder      that the noise changed, against noise whose loudness wanders
    recurrences sharp moves between the same two levels elsewhere
    """

    moved: float
    louder: float
    recurrences: int

    @property
    def excess(self) -> float:
        return max(self.moved, self.louder)


def weigh_changes(
    blocks: FloatArray, changes: list[int], strengths: list[float], earlier: FloatArray
) -> list[ChangeEvidence]:
    """
    One for each change; only the strongest are weighed, and the others have nothing left.

    earlier are blocks of the time before: moves that were made there recur.
    """
    if not changes:
        return []
    order = sorted(range(len(changes)), key=lambda place: -strengths[place])[:MOST_WEIGHED]
    weighed = sorted(order)
    kept = [changes[place] for place in weighed]
    choice = float(np.log(len(blocks)))
    calm = drawn_in(blocks)
    moved = rival_gains(calm, kept) - choice
    louder = loud_gains(loudness(calm, changes), kept)
    bounds = [0, *changes, len(blocks)]
    everything, first = np.concatenate((earlier, blocks)), len(earlier)
    found = {}
    for rank, place in enumerate(weighed):
        start, change, end = bounds[place : place + 3]
        is_known = min(change - start, end - change) >= LOUD_BLOCKS
        heard = float(louder[rank]) if is_known else -choice
        same = recurrences(everything, first + start, first + change, first + end)
        # What is louder does not move.
        found[place] = ChangeEvidence(float(moved[rank]), heard, same if moved[rank] >= heard else 0)
    nothing = ChangeEvidence(-choice, -choice, len(changes))
    return [found.get(place, nothing) for place in range(len(changes))]


def loud_gains(loud: FloatArray, changes: list[int]) -> FloatArray:
    """What is left of each change as one of the noise, whose places are four blocks apart."""
    places = [min(max(change // LOUD_GROUP, 1), len(loud) - 1) for change in changes]
    return np.asarray(rival_gains(loud, places) - np.log(len(loud)))


def drawn_in(blocks: FloatArray) -> FloatArray:
    """Outliers moved to four deviations from their surroundings, above and below by each side's own."""
    half = min(OUTLIER_WINDOW, len(blocks) // 4 * 2 + 1) // 2
    local = np.median(sliding_window_view(np.pad(blocks, half, mode="reflect"), 2 * half + 1), axis=1)
    away = blocks - local
    above, below = away[away > 0], -away[away < 0]
    high = OUTLIER_DEVIATIONS * NORMAL_MAD * float(np.median(above)) if len(above) else 0.0
    low = OUTLIER_DEVIATIONS * NORMAL_MAD * float(np.median(below)) if len(below) else 0.0
    return np.asarray(local + np.clip(away, -low, high))


def loudness(blocks: FloatArray, changes: list[int]) -> FloatArray:
    """The logarithm of the blocks' mean distance from the line of their piece, four by four."""
    rest = np.concatenate([without_line(piece) for piece in np.split(blocks, changes)])
    floor = RESIDUAL_FLOOR * (mad_deviation(rest) or float(np.mean(np.abs(rest))) or 1.0)
    return np.asarray(np.log(block_means(np.abs(rest), LOUD_GROUP) + floor))
