"""A table that lost most of its entries has the size of those that are left."""

from sys import getsizeof
from typing import Any

import pytest

from nodescope.collect.files.fit import LEAST_BYTES, fit


def make(kind: type, count: int) -> Any:
    return kind((number, None) for number in range(count)) if kind is dict else kind(range(count))


@pytest.mark.parametrize("kind", [dict, set])
def test_what_is_left_is_the_same_in_less_room(kind: type) -> None:
    table = make(kind, 5000)
    full = getsizeof(table)
    for number in range(4900):
        table.pop(number) if kind is dict else table.discard(number)
    assert getsizeof(table) == full
    fitted = fit(table)
    assert fitted == table
    assert list(fitted) == list(table) or kind is set
    assert getsizeof(fitted) <= LEAST_BYTES


@pytest.mark.parametrize("kind", [dict, set])
@pytest.mark.parametrize("count", [0, 1, 100, 341, 342, 1000, 1366, 5000, 5462, 20_000])
def test_a_table_that_only_grew_is_left_as_it_is(kind: type, count: int) -> None:
    table = make(kind, 0)
    for number in range(count):
        table.update({number: None} if kind is dict else {number})
    assert fit(table) is table


@pytest.mark.parametrize("kind", [dict, set])
def test_removing_all_one_by_one_copies_a_few_times(kind: type) -> None:
    table, copies = make(kind, 20_000), 0
    for number in range(20_000):
        table.pop(number) if kind is dict else table.discard(number)
        fitted = fit(table)
        copies += fitted is not table
        table = fitted
    assert 1 <= copies <= 10
