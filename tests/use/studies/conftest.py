"""What the tests of the studies share: a series from values, and the folder of sample data."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nodescope.use.studies import Series
from nodescope.use.studies.series import FloatArray, Kind

START_AT = 1_700_000_000.0
MakeSeries = Callable[..., Series]


@pytest.fixture
def series() -> MakeSeries:
    def make(
        values: FloatArray,
        *,
        step: float = 1.0,
        kind: Kind = "gauge",
        unit: str = "",
        limit: float | None = None,
    ) -> Series:
        times_at = START_AT + step * np.arange(len(values), dtype=np.float64)
        return Series(times_at, np.asarray(values, dtype=np.float64), kind, unit, limit, metric="load")

    return make


@pytest.fixture
def samples() -> Path:
    """Other people's labelled data: skipped where nobody names it, missing is a failure."""
    folder = os.environ.get("NODESCOPE_SAMPLES")
    if not folder:
        pytest.skip("NODESCOPE_SAMPLES is not set: it names the folder of labelled sample data")
    assert Path(folder).is_dir(), f"NODESCOPE_SAMPLES={folder} is no folder"
    return Path(folder)
