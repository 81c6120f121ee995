"""The long forms: a minute at a thousand events a second, a minute without the API server."""

from pathlib import Path

import pytest
from tests.cluster.control_plane import ControlPlane
from tests.cluster.trials import check_flood, check_outage
from tests.support import copy_node

pytestmark = pytest.mark.soak


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with containers, in a folder of the test's own."""
    return copy_node("cgroup2-systemd", tmp_path / "root")


def test_a_thousand_events_a_second_for_a_minute(plane: ControlPlane, root: Path) -> None:
    """60,000 events: every one counted, at most 7 writes of at most 1 KiB."""
    took, written = check_flood(plane, root, "torrent", 60_000, 60)
    print(f"60,000 events in {took:.1f} s, {written} writes")


def test_a_minute_without_the_api_server(plane: ControlPlane, root: Path) -> None:
    """Sixty ticks and not one less, the name kept, the event written afterwards."""
    check_outage(plane, root, "minute", 60)
