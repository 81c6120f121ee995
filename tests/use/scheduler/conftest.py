"""What the scheduler's tests share."""

import pytest
from tests.use.scheduler.world import World


@pytest.fixture
def world() -> World:
    return World()
