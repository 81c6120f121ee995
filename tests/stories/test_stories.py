"""The exam in short: every story once, on small nodes, asked through the official client."""

from functools import cache

import pytest
from tests.stories import failing_today
from tests.stories.catalogue import STORIES
from tests.stories.exam import CALLS_ALLOWED, Outcome, run_story

SEED = 1
RULES = ("small", "possible", "going on")
# These write most of a day or many nodes, or are close to another one; `python -m tools.exam` has them.
LONG = frozenset(
    {"victim-asks-disk", "neighbour-cpu-job", "which-node", "quiet-hour-quiet", "most-memory"}
    | {"scale-out-is-the-cause", "decoy-before", "no-pressure-counted"}
    | {"harmless-deploy-too", "small-squeeze", "brief-neighbour", "host-takes-cpu"}
    | {
        "disk-full",
        "quiet-hour-full",
        "cron-is-no-news",
        "neighbour-ramps",
        "two-incidents",
        "deploy-in-a-node",
        "most-disk",
    }
    | {
        "rightsize-after-a-day",
        "late-leak",
        "slow-leak",
        "no-leak",
        "period-25-minutes",
        "crest-reaches-limit",
    }
)
SHORT = tuple(name for name in STORIES if name not in LONG)


@cache
def outcomes_of(name: str) -> tuple[Outcome, ...]:
    return tuple(run_story(STORIES[name], SEED, is_small=True))


def listed(names: tuple[str, ...], failing: frozenset[str]) -> list[object]:
    reason = "listed in failing_today"
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True)) if name in failing else name
        for name in names
    ]


@pytest.mark.parametrize("name", listed(SHORT, failing_today.STORIES))
def test_a_story_is_answered_rightly(name: str) -> None:
    for outcome in outcomes_of(name):
        assert outcome.verdict.grade == "right", f"{outcome.words} {outcome.verdict.why}"
        assert len(outcome.answers) <= CALLS_ALLOWED


@pytest.mark.parametrize("rule", listed(RULES, failing_today.RULES))
def test_a_rule_of_all_answers_holds(rule: str) -> None:
    broken = [
        f"{outcome.story}: {breach.what}"
        for name in SHORT
        for outcome in outcomes_of(name)
        for breach in outcome.breaches
        if breach.rule == rule
    ]
    assert not broken, "\n".join(broken)


def test_the_list_of_failures_has_only_names_that_exist() -> None:
    assert set(SHORT) >= failing_today.STORIES
    assert set(RULES) >= failing_today.RULES
