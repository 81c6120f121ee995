"""
What is there to say about this series at one glance: its figures, its trend class, and how close it is to full?

The one implementation behind viewer, command line and MCP.
"""

from collections.abc import Callable, Mapping

import numpy as np

from nodescope.base.quantity import render_quantity
from nodescope.base.text import capitalise
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.glance.picture import Picture, picture_of
from nodescope.use.studies.maths.stretch import split_stretches
from nodescope.use.studies.series import FloatArray, Series

NAME = "summary"
# The same without its picture, for who needs figures only: a twentieth of the work.
FIGURES = "figures"

# A value over nine tenths of its limit is near it; of throttled periods and
# stalled time a tenth already hurts (the kernel's own PSI monitors use 5-15 %).
NEAR_LIMIT_SHARE = 0.9
STALLED_SHARE = 0.1

# In names and units of shares of time that were spent waiting.
STALL_WORDS = ("pressure", "throttled", "stalled")


def study(series: Series) -> StudyAnswer:
    return summarize(NAME, series, picture_of)


def study_figures(series: Series) -> StudyAnswer:
    return summarize(FIGURES, series, lambda _: None)


def summarize(name: str, series: Series, look: Callable[[Series], Picture | None]) -> StudyAnswer:
    stretches = split_stretches(series)
    if not stretches:
        return not_enough(name, series, "no sample was measured.")
    values = np.concatenate([stretch.values[np.isfinite(stretch.values)] for stretch in stretches])
    figures = figures_of(values)
    saturation = saturation_of(series, values)
    finding = build_finding(series, stretches[0].unit, figures, look(series), saturation, len(values))
    return found(name, series, [finding], "")


def figures_of(values: FloatArray) -> dict[str, float]:
    return {
        "average": float(values.mean()),
        "min": float(values.min()),
        "max": float(values.max()),
        "p95": float(np.quantile(values, 0.95)),
        "stddev": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
    }


def saturation_of(series: Series, values: FloatArray) -> str | None:
    """One clause about being full, or None."""
    if series.limit is not None and series.limit > 0:
        share = float(np.mean(values >= NEAR_LIMIT_SHARE * series.limit))
        if share > 0:
            return f"at {100 * NEAR_LIMIT_SHARE:.0f} % of its limit or above for {share_words(share)} of the time"
    if any(word in series.metric or word in series.unit for word in STALL_WORDS):
        share = float(np.mean(values >= STALLED_SHARE))
        if share > 0:
            return f"above {100 * STALLED_SHARE:.0f} % for {share_words(share)} of the time"
    return None


def share_words(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def build_finding(
    series: Series,
    unit: str,
    figures: Mapping[str, float],
    picture: Picture | None,
    saturation: str | None,
    samples: int,
) -> Finding:
    average, least, most, p95 = (
        render_quantity(figures[name], unit) for name in ("average", "min", "max", "p95")
    )
    text = (
        f"{capitalise(series.name)} is {average} on average ({least} to {most}, 95 % below {p95})"
        f"{f', {picture.clause}' if picture else ''}"
    )
    word = {"trend": picture.word} if picture else {}
    times_at = series.times_at[np.isfinite(series.times_at)]
    return Finding(
        kind=NAME,
        start_at=float(times_at.min()),
        end_at=float(times_at.max()),
        confidence=1.0,
        magnitude=figures["average"],
        unit=unit,
        sentence=f"{text}; {saturation}." if saturation else f"{text}.",
        measures={**figures, **word, "saturation": saturation, "limit": series.limit},
        evidence={"samples": samples},
    )
