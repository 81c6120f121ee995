"""Samples that are put into the table block by block: nothing is lost or doubled where a block ends."""

import numpy as np
import pytest

from nodescope.read.query.file_sweep import Thinned
from nodescope.use.answers.incidents.table import (
    BLOCK_SAMPLES,
    NodeTable,
    cut_blocks,
    derive_rates,
    make_curves,
)
from nodescope.use.answers.swept.sheet import BY_NAME


@pytest.mark.parametrize("count", [0, 1, BLOCK_SAMPLES, BLOCK_SAMPLES + 1, 3 * BLOCK_SAMPLES - 1])
def test_rates_of_blocks_are_those_of_the_whole(count: int) -> None:
    random = np.random.default_rng(count)
    series = np.sort(random.integers(0, 40, count))
    samples = Thinned(series, np.arange(count) * 1000, np.cumsum(random.random(count)))
    blocks = [derive_rates(block, 5.0) for block in cut_blocks(samples, is_rate=True)]
    whole = derive_rates(samples, 5.0)
    for place, column in enumerate(whole):
        assert np.array_equal(np.concatenate([column[:0], *(block[place] for block in blocks)]), column)
    assert all(len(block.value) <= BLOCK_SAMPLES for block in blocks)


def test_values_of_blocks_are_those_of_the_whole() -> None:
    count = 2 * BLOCK_SAMPLES + 5
    samples = Thinned(np.zeros(count, np.int64), np.arange(count), np.arange(count) / 2)
    blocks = list(cut_blocks(samples, is_rate=False))
    assert [len(block.value) for block in blocks] == [BLOCK_SAMPLES, BLOCK_SAMPLES, 5]
    assert np.array_equal(np.concatenate([block.value for block in blocks]), samples.value)


@pytest.mark.parametrize(("name", "expected"), [("memory", [7.0, 7.0]), ("cpu", [0.0, 0.1])])
def test_a_minute_that_ends_behind_the_last_step_is_not_added_to_it(name: str, expected: list[float]) -> None:
    """Steps of two minutes that begin at :40; the minutes of a rollup have their times at their ends."""
    ends = np.array([59_999, 119_999, 179_999, 239_999, 299_999], np.int64)
    table = NodeTable("n", [], 40_000, 120_000, 0, {})
    # The last of each step, as a sweep leaves them, and the one behind the end.
    kept = ends[[1, 3, 4]]
    values = np.full(3, 7.0) if name == "memory" else (kept - kept[0]) / 10_000
    samples = Thinned(np.zeros(3, np.int64), kept, values)
    curves = make_curves(table, BY_NAME[name], samples, np.zeros(1, np.int64), (1, 2), 1.0)
    assert np.nan_to_num(curves[0]) == pytest.approx(expected)
