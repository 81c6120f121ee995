"""Samples that are put into the table block by block: nothing is lost or doubled where a block ends."""

import numpy as np
import pytest

from nodescope.read.query.file_sweep import Thinned
from nodescope.use.answers.incidents.table import BLOCK_SAMPLES, cut_blocks, derive_rates


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
