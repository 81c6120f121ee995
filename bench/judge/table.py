"""Rows of the one table: the figure wanted, the figure measured, and what chance alone would allow."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

# Of a normal distribution's 95 %: how far a share of so few cases may be off.
DEVIATIONS = 1.96
# Confidence is compared with the measured share in these bins.
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
# In fewer findings than this a share says nothing.
ENOUGH = 10
WITHIN = 0.1
WIDTH = 62

Pair = tuple[float, bool]
"""Stated confidence, and whether the finding is real."""


@dataclass(frozen=True)
class Row:
    part: str
    what: str
    measured: str
    wanted: str = ""
    """Empty: for information, nothing is promised."""
    is_met: bool | None = None
    cases: int = 0
    chance: tuple[float, float] | None = None
    """95 % interval of a share from so many cases."""
    is_close: bool = False
    """Not met, but chance alone explains it with so few cases."""

    def plain(self) -> dict[str, object]:
        return asdict(self)


def interval(hits: float, cases: int) -> tuple[float, float]:
    """Wilson's, which is right at 0 and 1 as well."""
    if not cases:
        return 0.0, 1.0
    share, square = hits / cases, DEVIATIONS**2
    middle = (share + square / (2 * cases)) / (1 + square / cases)
    half = DEVIATIONS * np.sqrt(share * (1 - share) / cases + square / (4 * cases**2)) / (1 + square / cases)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def share_row(
    part: str, what: str, hits: Iterable[bool], low: float | None = None, high: float | None = None
) -> Row:
    """A share that has to lie between low and high; without both it is for information."""
    told = list(hits)
    if not told:
        wanted = render_wanted(low, high)
        return Row(part, what, "none to judge", wanted, False if wanted else None)
    share, chance = sum(told) / len(told), interval(sum(told), len(told))
    if low is None and high is None:
        return Row(part, what, f"{share:.1%}", cases=len(told), chance=chance)
    floor, ceiling = low or 0.0, 1.0 if high is None else high
    is_met = floor <= share <= ceiling
    is_close = not is_met and chance[0] <= ceiling and chance[1] >= floor
    return Row(
        part, what, f"{share:.1%}", render_wanted(low, high), is_met, len(told), chance, is_close=is_close
    )


def render_wanted(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f"<= {100 * high:.3g} %"
    return f">= {100 * low:.3g} %" if high is None else f"{100 * low:.3g} to {100 * high:.3g} %"


def number_row(part: str, what: str, value: float, most: float | None, cases: int, unit: str = "") -> Row:
    """A figure that may be so high at most; without a bound it is for information."""
    measured = f"{value:.3g}{unit}"
    if most is None:
        return Row(part, what, measured, cases=cases)
    return Row(part, what, measured, f"<= {most:g}{unit}", bool(value <= most), cases)


def rate_row(part: str, what: str, counts: Sequence[int], samples: int, most: float) -> Row:
    """Events per 1,000 samples; whether chance explains it comes from the spread between cases."""
    rates = 1000 * np.array(counts, dtype=np.float64) / samples
    rate = float(rates.mean()) if len(rates) else 0.0
    error = DEVIATIONS * float(rates.std()) / np.sqrt(max(1, len(rates)))
    is_met = rate <= most
    return Row(
        part,
        what,
        f"{rate:.2f}",
        f"<= {most:g}",
        is_met,
        len(rates),
        is_close=not is_met and rate - error <= most,
    )


def confidence_rows(part: str, pairs: Iterable[Pair], *, is_promised: bool = True) -> list[Row]:
    """Bin by bin: the mean of what was stated beside the share that is real."""
    told = np.array(list(pairs), dtype=np.float64).reshape(-1, 2)
    rows = []
    for low, high in pairwise(BINS):
        inside = told[(told[:, 0] >= low) & ((told[:, 0] < high) | (high == BINS[-1]))]
        if len(inside):
            rows.append(confidence_row(part, f"confidence {low:.2f} to {high:.2f}", inside, is_promised))
    return rows


def confidence_row(part: str, what: str, inside: np.ndarray, is_promised: bool) -> Row:
    stated, real = float(inside[:, 0].mean()), float(inside[:, 1].mean())
    measured = f"stated {stated:.2f}, real {real:.2f}"
    chance = interval(float(inside[:, 1].sum()), len(inside))
    if not is_promised or len(inside) < ENOUGH:
        return Row(part, what, measured, cases=len(inside), chance=chance)
    is_met = abs(stated - real) <= WITHIN
    is_close = not is_met and chance[0] - WITHIN <= stated <= chance[1] + WITHIN
    return Row(part, what, measured, f"within {WITHIN}", is_met, len(inside), chance, is_close=is_close)


def render(rows: Sequence[Row]) -> str:
    lines = []
    part = None
    for row in rows:
        if row.part != part:
            part = row.part
            lines += ["", f"{part:<{WIDTH}} {'wanted':>14} {'measured':>24}  met  cases  95 % by chance"]
        lines.append(render_row(row))
    promised = [row for row in rows if row.is_met is not None]
    met = sum(bool(row.is_met) for row in promised)
    close = sum(row.is_close for row in promised)
    lines += ["", f"{met} of {len(promised)} met; of the others {close} are within chance (not~)."]
    return "\n".join(lines[1:])


def render_row(row: Row) -> str:
    met = {None: "", True: "ok", False: "not~" if row.is_close else "not"}[row.is_met]
    chance = f"{row.chance[0]:.0%} to {row.chance[1]:.0%}" if row.chance else ""
    cells = f"  {row.what:<{WIDTH - 2}} {row.wanted:>14} {row.measured:>24}  {met:<4} {row.cases or '':>5}  {chance}"
    return cells.rstrip()
