"""Pauses of a real disk: what was sampled meanwhile is written when it is back."""

import pytest
from tests.torture import pauses


@pytest.mark.real
@pytest.mark.skipif(not pauses.can_mount(), reason="needs root, unshare and nsenter: run it with sudo")
def test_a_pause_loses_no_frame() -> None:
    """Full, read-only, unmounted: the short form of the torture."""
    assert [row.render() for row in pauses.run(0.1) if not row.met] == []
