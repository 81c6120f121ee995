"""The comparison itself: what counts as agreement."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.peers import gaps
from tests.integration.peers.comparison import is_near, parse_exposition
from tests.integration.peers.mapping import by_cgroup

readings = st.lists(st.floats(0, 1e15), min_size=1, max_size=5)


@given(readings, st.booleans(), st.floats(0, 1))
def test_what_lies_between_our_readings_is_near(ours: list[float], is_counter: bool, share: float) -> None:
    """forall v in [min(ours), max(ours)]: is_near(ours, v)"""
    between = min(ours) + share * (max(ours) - min(ours))
    assert is_near(ours, between, is_counter=is_counter)


@pytest.mark.parametrize("factor", [0.5, 1.1, 1024 / 1000, 1000.0])
def test_a_wrong_unit_is_never_near(factor: float) -> None:
    """The smallest mistake of a unit that people make is 1000 for 1024."""
    assert not is_near([5e9, 5e9, 5e9], 5e9 * factor, is_counter=True)
    assert not is_near([5e9, 5e9, 5e9], 5e9 * factor, is_counter=False)


def test_a_counter_before_our_first_reading_is_not_near() -> None:
    assert not is_near([100.0, 101.0, 102.0], 99.0, is_counter=True)
    assert is_near([100.0, 101.0, 102.0], 99.5, is_counter=False)


def test_unlimited_is_near_to_unlimited_only() -> None:
    assert is_near([math.inf, math.inf], math.inf, is_counter=False)
    assert not is_near([math.inf, math.inf], 0.0, is_counter=False)
    assert not is_near([1.0], math.inf, is_counter=False)


def test_series_are_summed_where_ours_does_not_split_by_a_label() -> None:
    text = (
        "# TYPE container_cpu_usage_seconds_total counter\n"
        'container_cpu_usage_seconds_total{id="/a",image="",part="one"} 5 1700000000000\n'
        'container_cpu_usage_seconds_total{id="/a",image="",part="two"} 7 1700000000000\n'
        "node_load1 1\n"
    )
    mapped = parse_exposition(text).mapped(by_cgroup)
    assert mapped.values == {("container_cpu_usage_seconds_total", frozenset({("id", "/a")})): 12.0}


def test_a_name_nobody_explained_is_named() -> None:
    assert gaps.unexplained("cadvisor", ["container_health_state", "container_new_thing"]) == [
        "container_new_thing"
    ]
