"""Multiplying every value changes no finding but its size."""

import numpy as np
import pytest
from bench import studies_sets as sets
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.use.studies import STUDIES, Series, StudyAnswer
from nodescope.use.studies.series import FloatArray

ALONE = [name for name in STUDIES if name != "correlation"]


def cases() -> dict[str, FloatArray]:
    random = np.random.default_rng(1)
    index = np.arange(600)
    noise = random.standard_normal(600)
    return {
        "step": np.where(index < 250, 10.0, 14.0) + noise,
        "sine": 5 + np.sin(2 * np.pi * index / 30) + 0.3 * noise,
        "leak": 10 + index / 30 + noise,
        "walk": sets.random_walk(random, 600),
        "odd end": np.where(index < 570, 0.0, 6.0) + noise,
    }


CASES = cases()


def shape_of(answer: StudyAnswer, scale: float) -> list[tuple[object, ...]]:
    """Everything a finding says, with what is in the metric's unit divided by the scale."""
    return [
        (
            finding.kind,
            pytest.approx(finding.start_at),
            pytest.approx(finding.end_at),
            pytest.approx(finding.confidence, abs=1e-6),
            pytest.approx((finding.magnitude or 0.0) / scale, rel=1e-6),
            pytest.approx(finding.measures.get("period_seconds")),
            finding.measures.get("verdict"),
            finding.measures.get("trend"),
        )
        for finding in answer.findings
    ]


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=4, deadline=None)
@given(power=st.integers(-9, 9))
def test_no_finding_depends_on_the_unit(name: str, case: str, power: int) -> None:
    """forall k in -9..9: study(x * 10^k) == study(x), magnitudes times 10^k."""
    values = CASES[case]
    times_at = 1_700_000_000 + np.arange(len(values), dtype=np.float64)
    plain = STUDIES[name].run(Series(times_at, values, limit=100.0))
    scaled = STUDIES[name].run(Series(times_at, values * 10.0**power, limit=100.0 * 10.0**power))
    assert len(plain.findings) == len(scaled.findings)
    assert scaled.status == plain.status
    for left, right in zip(shape_of(plain, 1.0), shape_of(scaled, 10.0**power)):
        assert left == right
