"""How near a kill is: by what cannot be reclaimed."""

import pytest

from nodescope.use.answers.memory_limit import split_memory

MIB = 2.0**20


@pytest.mark.parametrize(
    ("used", "file", "shared", "level"),
    [
        (490, 430, None, "cache"),
        (490, 430, 400, "critical"),
        (490, 20, None, "critical"),
        (430, 20, None, "warning"),
        (490, None, None, "critical"),
        (300, 0, None, ""),
        (490, 600, None, "cache"),
    ],
)
def test_shared_memory_and_what_was_not_measured_are_not_taken_for_cache(
    used: float, file: float | None, shared: float | None, level: str
) -> None:
    """tmpfs is counted as page cache and cannot be dropped; without a figure nothing is assumed to be cache."""
    sizes = (None if size is None else size * MIB for size in (file, shared))
    found = split_memory(used * MIB, 500 * MIB, *sizes)
    assert found is not None
    assert found.level == level
    assert ("not measured" in found.render()) == (file is None)


@pytest.mark.parametrize("limit", [0.0, float("inf"), float("nan")])
def test_without_a_limit_nothing_is_near_it(limit: float) -> None:
    assert split_memory(1.0, limit, 0.0) is None
