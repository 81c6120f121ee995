"""A list of pods that is larger than the extender's memory."""

import pytest
from bench.pod_list import LIMIT_BYTES, measure

pytestmark = pytest.mark.real


def test_a_long_list_of_pods_is_reduced_page_by_page() -> None:
    """6,000 pods of 13 KB were 410 MiB when the whole list was kept; `python -m bench pod_list` has 50,000."""
    peak_bytes, settled = measure(6000)
    assert settled == 600
    assert peak_bytes < LIMIT_BYTES
