"""The replay of pods that slow each other down, in its short form: what its figures rest on."""

import numpy as np
import pytest
from bench import interference_replay
from bench.interference import CORES, PEAK_GBPS, make_trace, strain
from bench.interference_replay import ORACLE, PROFILES, STOCK, replay


def test_a_node_with_room_slows_nobody_down_and_a_full_one_everybody() -> None:
    state = strain(np.array([1.0, 2 * CORES]), np.array([1.0, 2 * PEAK_GBPS]))
    assert state.waiting[0] < 1e-9 < state.waiting[1]
    assert (state.stretch[0], state.stretch[1]) == (1.0, 2.0)
    assert state.bus_cost[0] < 0.01
    assert state.bus_cost[1] > 1


def test_the_same_seed_is_the_same_trace() -> None:
    assert make_trace("mixed", 7, 1.0) == make_trace("mixed", 7, 1.0)
    assert make_trace("mixed", 7, 1.0) != make_trace("mixed", 8, 1.0)


@pytest.mark.parametrize("policy", [STOCK, PROFILES])
def test_who_knows_all_is_not_beaten(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an hour, the second half of it measured; profiles go through the agent's tracker and the real extender."""
    monkeypatch.setattr(interference_replay, "HOURS_BEFORE", 0.25)
    monkeypatch.setattr(interference_replay, "HOURS_MEASURED", 0.25)
    trace = make_trace("mixed", 7, 0.5)
    found, best = replay(policy, trace), replay(ORACLE, trace)
    assert 1.0 <= best.mean <= found.mean
    assert found == replay(policy, trace)
