"""A series as the studies see it: times, values, and what the values are."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodescope.base.text import render_metric

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Kind = Literal["counter", "gauge"]


@dataclass(frozen=True)
class Series:
    """
    One metric of one container, process, device or node over time.

    times_at are epoch seconds and need be neither sorted nor evenly spaced; a
    value that is NaN was due and is missing. restarts_at are the container restarts
    that the caller knows: no study looks across one.
    """

    times_at: FloatArray
    values: FloatArray
    kind: Kind = "gauge"
    unit: str = ""
    limit: float | None = None
    metric: str = ""
    container: str | None = None
    node: str | None = None
    file: str | None = None
    restarts_at: tuple[float, ...] = ()
    not_collected: str | None = None
    """Why there are no values at all, in one sentence; None when they were collected."""

    def __post_init__(self) -> None:
        if self.times_at.shape != self.values.shape or self.times_at.ndim != 1:
            message = (
                f"times and values must be one column each, got {self.times_at.shape} and {self.values.shape}"
            )
            raise ValueError(message)

    @property
    def name(self) -> str:
        """What a sentence calls it: its metric, and whose it is where that is known."""
        return render_metric(self.metric) if self.metric else "the value"

    def labels(self) -> dict[str, str | None]:
        named: dict[str, str | None] = {"metric": self.metric, "container": self.container, "node": self.node}
        if self.file is not None:
            named["file"] = self.file
        return named


def ordered(series: Series) -> Series:
    """Sorted by time, moments without a time dropped, the last of equal times kept."""
    times_at = series.times_at
    usable = np.isfinite(times_at)
    order = np.argsort(times_at[usable], kind="stable")
    times_at, values = times_at[usable][order], series.values[usable][order]
    if len(times_at) > 1:
        last_of_equal = np.append(np.diff(times_at) > 0, [True])
        times_at, values = times_at[last_of_equal], values[last_of_equal]
    values = np.where(np.isfinite(values), values, np.nan)
    return replace(series, times_at=times_at, values=values)
