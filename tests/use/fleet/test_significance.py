"""What is kept among very many: against the textbook, and against noise."""

from dataclasses import replace

import numpy as np
import pytest

from nodescope.use.fleet.significance import binomial_tail, log_likelihood_ratio, p_value_of
from nodescope.use.studies import Finding
from nodescope.use.studies.maths.tail_probability import adjust_p_values


def test_the_textbook_example() -> None:
    """Benjamini and Hochberg 1995, section 4: of 15 chances four are kept at 0.05."""
    chances = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000,
    ]  # fmt: skip
    assert sum(one <= 0.05 for one in adjust_p_values(chances, 15)) == 4


def test_series_without_a_finding_count() -> None:
    """The same chance is something among ten series and nothing among a million."""
    assert adjust_p_values([1e-4], 10)[0] <= 0.05
    assert adjust_p_values([1e-4], 1_000_000)[0] > 0.05


def test_noise_gives_nothing() -> None:
    dice = np.random.default_rng(4)
    kept = [
        sum(one <= 0.05 for one in adjust_p_values(list(dice.random(1000)), 1000)) > 0 for _ in range(100)
    ]
    assert sum(kept) <= 12


def test_the_order_stays() -> None:
    assert adjust_p_values([0.5, 0.001, 0.02], 3) == pytest.approx([0.5, 0.003, 0.03])
    assert adjust_p_values([], 0) == []


def test_a_binomial_tail_is_the_sum_of_its_terms() -> None:
    assert binomial_tail(3, 3, 0.1) == pytest.approx(1e-3)
    assert binomial_tail(1, 2, 0.5) == pytest.approx(0.75)
    assert binomial_tail(0, 5, 0.1) == 1.0
    assert binomial_tail(500, 100_000, 0.001) < 1e-100
    assert binomial_tail(50_000, 100_000, 0.5) == pytest.approx(0.5, abs=0.01)


def test_a_pure_group_surprises_more_than_the_one_around_it() -> None:
    assert (
        log_likelihood_ratio(3, 3, 0.01)
        > log_likelihood_ratio(3, 10, 0.01)
        > log_likelihood_ratio(3, 50, 0.01)
        > log_likelihood_ratio(1, 50, 0.02)
    )


def test_a_trend_has_the_chance_of_its_z() -> None:
    finding = Finding("trend", 0.0, 1.0, 0.999, 1.0, "", "x", evidence={"kendall_z": 6.0})
    assert p_value_of("trend", finding) == pytest.approx(1.97e-9, rel=0.01)
    assert p_value_of("changepoint", replace(finding, confidence=0.98)) == pytest.approx(0.02)


def test_a_chance_is_not_rounded_to_none_at_all() -> None:
    """A confidence of 0.99997 is written as 1.0; among a million series its chance of 3e-5 decides."""
    finding = Finding("anomaly", 0.0, 1.0, 0.99997, 1.0, "", "x")
    assert finding.to_json()["confidence"] == 1.0
    assert p_value_of("anomaly", finding) == pytest.approx(3e-5)
