"""A series as a few lines of text: highest and lowest value under each column, and where findings are."""

import numpy as np

from nodescope.base.quantity import render_quantity
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding
from nodescope.use.studies.series import FloatArray, Series

HEIGHT = 8
LEAST_WIDTH, MOST_WIDTH = 30, 120

# A column is a bar from its lowest to its highest sample, so that a spike of
# one second survives a day; two steps per row.
FULL, UPPER, LOWER = "█", "▀", "▄"
MARK, SPAN = "^", "-"


def render_plot(series: Series, findings: tuple[Finding, ...], width: int) -> list[str]:
    """Empty where there is nothing to draw."""
    held = np.isfinite(series.times_at) & np.isfinite(series.values)
    if int(held.sum()) < 2:
        return []
    times_at, values = series.times_at[held], series.values[held]
    low, high = float(values.min()), float(values.max())
    labels = [render_quantity(high, series.unit), render_quantity(low, series.unit)]
    margin = max(len(label) for label in labels)
    columns = max(LEAST_WIDTH, min(MOST_WIDTH, width)) - margin - 2
    start_at, end_at = float(times_at.min()), float(times_at.max())
    bars = bars_of(times_at, values, columns, (start_at, end_at), (low, high))
    rows = [render_row(bars, row) for row in range(HEIGHT - 1, -1, -1)]
    left = [labels[0], *[""] * (HEIGHT - 2), labels[1]]
    lines = [f"{label:>{margin}} |{row}".rstrip() for label, row in zip(left, rows)]
    marks = render_marks(findings, columns, start_at, end_at)
    lines += [f"{'':>{margin}} +{marks}"]
    between = f"{render_time(start_at)} to {render_time(end_at)}"
    return [*lines, " " * max(0, min(margin + 2, width - len(between))) + between]


def bars_of(
    times_at: FloatArray,
    values: FloatArray,
    columns: int,
    time_range: tuple[float, float],
    range_: tuple[float, float],
) -> list[tuple[int, int] | None]:
    """Lowest and highest half-row of every column; None where there is no sample."""
    start_at, end_at = time_range
    low, high = range_
    place = np.minimum(
        ((times_at - start_at) / max(end_at - start_at, 1e-9) * columns).astype(int), columns - 1
    )
    lowest, highest = np.full(columns, np.inf), np.full(columns, -np.inf)
    np.minimum.at(lowest, place, values)
    np.maximum.at(highest, place, values)
    scale = (2 * HEIGHT - 1) / (high - low) if high > low else 0.0
    return [
        (int((down - low) * scale), int((up - low) * scale)) if np.isfinite(down) else None
        for down, up in zip(lowest, highest)
    ]


def render_row(bars: list[tuple[int, int] | None], row: int) -> str:
    return "".join(render_cell(bar, 2 * row) for bar in bars)


def render_cell(bar: tuple[int, int] | None, bottom: int) -> str:
    if bar is None:
        return " "
    lower, upper = (bar[0] <= step <= bar[1] for step in (bottom, bottom + 1))
    return FULL if lower and upper else UPPER if upper else LOWER if lower else " "


def render_marks(findings: tuple[Finding, ...], columns: int, start_at: float, end_at: float) -> str:
    """A caret under each moment; the axis elsewhere."""
    marks = [SPAN] * columns
    for finding in findings:
        if finding.at is not None:
            share = (finding.at - start_at) / max(end_at - start_at, 1e-9)
            marks[min(max(int(share * columns), 0), columns - 1)] = MARK
    return "".join(marks)
