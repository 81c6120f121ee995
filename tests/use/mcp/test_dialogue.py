"""The three questions of the requirement, on archives whose truth is known."""

from pathlib import Path

import pytest
from tests.use.mcp.dialogue import hold_dialogue


@pytest.mark.parametrize("seed", [1])
def test_three_questions_are_answered_as_they_were_planted(tmp_path: Path, seed: int) -> None:
    """Most memory, periodic CPU, changed memory: as truth.json has them, the true No included."""
    assert hold_dialogue(tmp_path, seed) >= 30


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 21))
def test_the_dialogue_holds_over_twenty_seeds(tmp_path: Path, seed: int) -> None:
    """No answer depends on a lucky draw."""
    assert hold_dialogue(tmp_path, seed) >= 30
