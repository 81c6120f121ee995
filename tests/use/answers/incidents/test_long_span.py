"""A night of ten hours: what happened in a few minutes of it is found, with the seconds of its onset."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.use.mcp.asking import asking
from tools.incidents.archive import write_archive
from tools.incidents.direct import make_table
from tools.incidents.long_nodes import coarsen, explain_night
from tools.incidents.stories import Generated, generate

from nodescope.use.answers.incidents.long_span import confirm, cut_table, glimpse

SEED = 8_100
HOURS = 10.0


def make_night(cause: str, kind: str = "busy") -> Generated:
    return generate(SEED, kind, cause, hours=HOURS, containers=30)


@pytest.mark.parametrize("cause", ["cpu", "disk", "leak", "deploy"])
def test_the_cause_of_some_minutes_is_found_in_a_night(cause: str) -> None:
    node = make_night(cause)
    first = explain_night(node)[0]
    assert first.cause is not None
    assert first.cause.workload == f"shop/{node.truth.workload}"
    planted_ms = make_table(node)[0].time_of(node.truth.onset)
    if cause != "leak":
        assert abs(first.from_ms - planted_ms) <= 60_000


@pytest.mark.parametrize("kind", ["quiet", "busy"])
def test_a_night_without_a_cause_has_no_incident(kind: str) -> None:
    assert explain_night(make_night("", kind)) == []


def test_a_night_can_be_asked_about_over_mcp(tmp_path: Path) -> None:
    """What happened last night? The answer says what minutes cannot show."""
    node = generate(SEED, "quiet", "cpu", step_seconds=1.0, hours=4.0, containers=6, lead_hours=0.5)
    write_archive(node, tmp_path)
    with asking(tmp_path) as agent:
        answer = agent.ask("explain_incident", at="-2h", minutes=120)
        longer = agent.ask("explain_incident", at="-2h", minutes=720)
    for one in (answer, longer):
        assert one["findings"][0]["evidence"]["cause"] == node.truth.workload
        assert any("less than 2 min" in line for line in one["not_looked_at"])
    planted_at = make_table(node)[0].time_of(node.truth.onset) / 1000
    assert abs(answer["findings"][0]["from"] - planted_at) <= 60


def test_what_the_seconds_do_not_show_is_not_told() -> None:
    """Events are told as they are; everything else needs the closer look."""
    table, kills = make_table(make_night("cpu"))
    glimpsed, _ = glimpse(coarsen(table, 12), kills, None, lambda: None)
    assert any(one.kind == "taken" for one in glimpsed)
    assert [one.kind for one in confirm(glimpsed, lambda span: ())] == []
    killed = [replace(glimpsed[0], kind="oom_kill")]
    assert confirm(killed, lambda span: ()) == killed


def test_a_part_knows_what_came_before_it_and_nothing_later() -> None:
    table, _ = make_table(make_night("deploy"))
    coarse = coarsen(table, 12)
    part = cut_table(coarse, coarse.begin + 180)
    assert part.time_of(part.begin) == coarse.time_of(coarse.begin + 180)
    assert part.steps == 30 + 180
    end_ms = part.time_of(part.steps)
    assert all(life.first_ms <= end_ms for row in part.rows for life in row.lives[1:])
    name = next(iter(part.signals))
    where = slice(coarse.begin + 150, coarse.begin + 360)
    np.testing.assert_array_equal(part.signals[name], coarse.signals[name][:, where])


def test_a_call_that_is_stopped_ends_between_two_parts() -> None:
    table, kills = make_table(make_night(""))
    calls: list[int] = []

    def check() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        glimpse(coarsen(table, 12), kills, None, check)
