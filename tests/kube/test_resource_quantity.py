"""Kubernetes quantities in cores and bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.kube.resource_quantity import parse_resource


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", 0.25),
        ("1.5", 1.5),
        (2, 2.0),
        (".5", 0.5),
        ("128Mi", 128 * 2**20),
        ("1Gi", 2**30),
        ("129M", 129e6),
        ("129e6", 129e6),
        ("100n", 1e-7),
        ("0", 0.0),
        ("-1", None),
        ("", None),
        ("1mi", None),
        ("lots", None),
        ("1e999", None),
        ("inf", None),
    ],
)
def test_a_quantity_is_a_number_in_the_resource_s_unit(text: object, value: float | None) -> None:
    assert parse_resource(text) == (None if value is None else pytest.approx(value))


@given(st.text(max_size=40))
def test_any_text_is_a_quantity_or_none(text: str) -> None:
    value = parse_resource(text)
    assert value is None or value >= 0
