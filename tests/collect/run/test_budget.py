"""The CPU budget: kept whenever it can be, and given back when there is room."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.collect.run.budget import COMFORT_RATIO, DECIDE_TICKS, SETTLE_TICKS, Budget, count_per_second
from nodescope.collect.run.source import TIERS

COSTS = st.dictionaries(
    st.sampled_from(("container", "cpu", "memory", "process.all", "container.limits", "pod", "disk.disk")),
    st.tuples(st.sampled_from(TIERS), st.floats(0, 0.2)),
    min_size=1,
)
# Every table may have to go through all tiers, one move a decision, each
# followed by a time to settle.
LONG = 40 * (SETTLE_TICKS + DECIDE_TICKS)


def run(budget: Budget, costs: dict[str, float], first: int, ticks: int) -> None:
    """Ticks with known costs; the costs are noted whenever a table is due."""
    for tick in range(first, first + ticks):
        for table, cost in costs.items():
            if budget.is_due(table, tick):
                budget.note(table, cost)
        budget.adjust(tick)


def make(tables: dict[str, tuple[int, float]]) -> tuple[Budget, dict[str, float]]:
    budget = Budget(0.05)
    for table, (tier, _) in tables.items():
        budget.register(table, tier)
    return budget, {table: cost for table, (_, cost) in tables.items()}


@given(COSTS)
@examples(120)
@example({"container": (1, 0.2), "cpu": (1, 0.2), "memory": (1, 0.2), "pod": (1, 0.2)})
def test_the_sum_of_loads_ends_below_the_budget_when_that_is_possible(
    tables: dict[str, tuple[int, float]],
) -> None:
    """forall costs: sum(cost) / slowest tier <= budget implies load <= budget in the end."""
    budget, costs = make(tables)
    run(budget, costs, 0, LONG)
    if sum(costs.values()) / TIERS[-1] <= budget.budget_seconds:
        assert budget.load_seconds <= budget.budget_seconds * (1 + 1e-9)
    else:
        assert all(pace.tier == TIERS[-1] for pace in budget.paces.values())


@given(COSTS)
@examples(120)
def test_tables_come_back_when_there_is_room(tables: dict[str, tuple[int, float]]) -> None:
    """forall costs that fall to nothing: every table is read again as often as it asked for."""
    budget, costs = make(tables)
    run(budget, costs, 0, LONG)
    run(budget, dict.fromkeys(costs, 0.0), LONG, LONG)
    assert not budget.slowed()
    assert all(pace.tier == tables[name][0] for name, pace in budget.paces.items())


@given(COSTS)
@examples(120)
@example({"container.limits": (1, 0.9), "cpu": (1, 0.018), "disk.disk": (1, 0.0), "pod": (1, 0.06)})
@example(
    {
        "container": (1, 0.1875),
        "cpu": (1, 0.0390625),
        "memory": (1, 0.04296875),
        "process.all": (1, 0.009765625),
        "container.limits": (1, 0.0546875),
    }
)
def test_no_table_stays_slow_that_would_fit_comfortably(tables: dict[str, tuple[int, float]]) -> None:
    """At rest, one step faster for any slowed table would take more than the comfortable share."""
    budget, costs = make(tables)
    run(budget, costs, 0, LONG)
    for name in budget.slowed():
        pace = budget.paces[name]
        faster = max(tier for tier in TIERS if tier < pace.tier)
        after = budget.load_seconds - pace.load + pace.cost_seconds / faster
        assert after > COMFORT_RATIO * budget.budget_seconds * (1 - 1e-9)


def test_one_slow_reading_is_no_trend() -> None:
    """Decisions are taken every fifth tick, on what recent readings cost together."""
    budget, _ = make({"cpu": (1, 0.0)})
    run(budget, {"cpu": 0.001}, 0, 7)
    budget.note("cpu", 0.1)
    assert budget.adjust(8) is None
    run(budget, {"cpu": 0.001}, 9, 12)
    assert not budget.slowed()


def test_a_costly_table_is_slowed_within_thirty_ticks_and_the_others_are_left_alone() -> None:
    budget = Budget(0.01)
    budget.register("cpu", 1)
    budget.register("burner", 1)
    run(budget, {"cpu": 0.0005, "burner": 0.05}, 0, 30)
    assert set(budget.slowed()) == {"burner"}
    assert budget.paces["cpu"].tier == 1


def test_what_people_came_for_is_slowed_last() -> None:
    budget = Budget(0.05)
    budget.register("container", 1)
    budget.register("process.all", 1)
    run(budget, {"container": 0.045, "process.all": 0.04}, 0, 30)
    assert set(budget.slowed()) == {"process.all"}


def test_every_table_is_due_at_the_first_tick() -> None:
    budget, _ = make({"cpu": (1, 0.0), "container.limits": (5, 0.0), "pod": (30, 0.0)})
    assert all(budget.is_due(table, 0) for table in budget.paces)


def test_of_ticks_below_a_second_slow_tables_keep_their_seconds() -> None:
    """The limits of containers change no faster because CPU is read ten times a second."""
    budget = Budget(0.05, count_per_second(0.1))
    for table, tier in (("container", 1), ("container.limits", 5), ("filesystem", 30)):
        budget.register(table, tier)
    due = {table: [tick for tick in range(601) if budget.is_due(table, tick)] for table in budget.paces}
    assert due["container"] == list(range(601))
    assert due["container.limits"] == list(range(0, 601, 50))
    assert due["filesystem"] == [0, 300, 600]


def test_of_ticks_below_a_second_the_first_step_is_a_second() -> None:
    """From ten times a second to every fifth second would be a long way."""
    budget = Budget(0.005, count_per_second(0.1))
    budget.register("process.all", 1)
    run(budget, {"process.all": 0.01}, 0, 51)
    assert budget.slowed() == {"process.all": 10}


@pytest.mark.parametrize(("seconds", "ticks"), [(0.1, 10), (0.5, 2), (1.0, 1), (10.0, 1), (60.0, 1)])
def test_a_tick_of_a_second_or_more_counts_as_one(seconds: float, ticks: int) -> None:
    assert count_per_second(seconds) == ticks
