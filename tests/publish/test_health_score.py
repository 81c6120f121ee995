"""node_health_score: in [0, 10], never better when an input worsens, missing inputs re-weight."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.publish.health_score import HealthInputs, derive_health_score

RATIO = st.none() | st.floats(-0.5, 3.0)
PERCENT = st.none() | st.floats(-10, 200)
INPUTS = st.builds(
    HealthInputs,
    cpu_utilization_ratio=RATIO,
    load_per_core=RATIO,
    cpu_pressure_percent=PERCENT,
    memory_available_ratio=RATIO,
    memory_pressure_percent=PERCENT,
    gpu_utilization_ratio=RATIO,
)
NAMES = [field.name for field in fields(HealthInputs)]
IDLE = HealthInputs(0.0, 0.0, 0.0, 1.0, 0.0)
FULL = HealthInputs(1.0, 4.0, 100.0, 0.0, 100.0)


@given(INPUTS)
@examples(1000)
def test_the_score_lies_between_0_and_10(inputs: HealthInputs) -> None:
    """None exactly when nothing was measured."""
    score = derive_health_score(inputs)
    if all(getattr(inputs, name) is None for name in NAMES):
        assert score is None
    else:
        assert score is not None
        assert 0 <= score <= 10


@given(INPUTS, st.sampled_from(NAMES), st.floats(0, 200))
@examples(600)
def test_the_score_never_rises_when_an_input_worsens(inputs: HealthInputs, name: str, by: float) -> None:
    """forall inputs, names, d >= 0: score(worse by d) <= score; availability worsens downwards."""
    value = getattr(inputs, name)
    if value is None:
        return
    worse = value - by if name == "memory_available_ratio" else value + by
    before, after = derive_health_score(inputs), derive_health_score(replace(inputs, **{name: worse}))
    assert before is not None
    assert after is not None
    assert after <= before + 1e-12


@given(st.lists(st.sampled_from(NAMES[:5]), min_size=1, unique=True))
def test_missing_inputs_re_weight_the_others(known: list[str]) -> None:
    """What is left of an idle node is 10, of a saturated one 0, whatever is missing."""
    for whole, score in ((IDLE, 10.0), (FULL, 0.0)):
        part = HealthInputs(**{name: getattr(whole, name) for name in known})
        assert derive_health_score(part) == pytest.approx(score)


def test_cpu_weighs_more_than_memory() -> None:
    no_cpu = derive_health_score(
        replace(IDLE, cpu_utilization_ratio=1.0, load_per_core=1.0, cpu_pressure_percent=100.0)
    )
    no_memory = derive_health_score(replace(IDLE, memory_available_ratio=0.0, memory_pressure_percent=100.0))
    assert no_cpu is not None
    assert no_memory is not None
    assert no_cpu < no_memory


def test_a_gpu_counts_only_where_there_is_one() -> None:
    assert derive_health_score(IDLE) == pytest.approx(10.0)
    assert derive_health_score(replace(IDLE, gpu_utilization_ratio=1.0)) == pytest.approx(10 / 1.15)
