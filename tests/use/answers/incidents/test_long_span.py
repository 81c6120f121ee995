"""A night of ten hours: what happened in a few minutes of it is found, with the seconds of its onset."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.use.answers.lives import make_named
from tests.use.mcp.asking import asking
from tools.incidents.archive import write_archive
from tools.incidents.direct import make_table
from tools.incidents.long_nodes import coarsen, explain_night
from tools.incidents.stories import Generated, generate

from nodescope.use.answers.incidents.follow import follow
from nodescope.use.answers.incidents.happened import Kill
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.long_span import confirm, cut_table, glimpse
from nodescope.use.answers.incidents.sentence import render_incident
from nodescope.use.answers.incidents.table import NodeTable, WorkloadRow

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


def make_wall(levels: Sequence[tuple[int, float]], restarts: Sequence[int] = ()) -> NodeTable:
    """Ten hours in minutes of one workload: its CPU from each minute on; its container restarts at these minutes."""
    cpu = np.zeros(600)
    for minute, level in levels:
        cpu[minute:] = level
    begins, ends = [0, *restarts], [*restarts, 600]
    lives = [
        make_named(f"{place:064x}", "n1", "shop", "job-0", "job", first * 60_000, last * 60_000 - 1000)
        for place, (first, last) in enumerate(zip(begins, ends, strict=True))
    ]
    return NodeTable("n1", [WorkloadRow("job", lives)], 0, 60_000, 30, {"cpu": cpu[None, :]}, 8.0)


def make_found(kind: str, from_minute: int, to_minute: int, after: float) -> Incident:
    cause = Change("job", "job-0/job", "cpu", "cores", 0.1, after, from_minute * 60_000, to_minute * 60_000)
    return Incident(
        kind,
        "n1",
        "cpu",
        (cause,),
        (),
        0,
        from_minute * 60_000,
        to_minute * 60_000,
        is_over=False,
        confidence=None,
        weight=0.5,
    )


@pytest.mark.parametrize("last", [200, 340])
def test_what_goes_on_beyond_three_hours_is_followed_to_its_end(last: int) -> None:
    """A pause of a minute is no end."""
    table = make_wall([(0, 0.1), (100, 2.0), (190, 0.1), (191, 2.0), (last, 0.1)])
    found = follow(table, (), make_found("throttled", 100, 180, 2.0))
    assert (found.to_ms, found.is_over) == (last * 60_000, True)
    assert found.causes[0].to_ms == found.to_ms


def test_what_lasts_to_the_end_of_the_span_is_not_over() -> None:
    found = follow(make_wall([(0, 0.1), (100, 2.0)]), (), make_found("change", 100, 180, 2.0))
    assert (found.to_ms, found.is_over) == (600 * 60_000, False)


def test_a_loop_is_counted_to_its_end() -> None:
    """Three restarts in the part that was looked at, nine in all; then it runs for hours."""
    restarts = range(150, 240, 10)
    found = follow(make_wall([(0, 0.1)], restarts), (), make_found("crash_loop", 150, 180, 3.0))
    assert found.causes[0].after == 9
    assert (found.to_ms, found.is_over) == (230 * 60_000, True)
    assert "restarted 9 times from" in render_incident(found)
    assert "until" in render_incident(found)


def test_a_leak_begins_where_it_began_not_where_a_part_does() -> None:
    """Ten hours of growth that ended with a kill in the last hour."""
    table = make_wall([(0, 0.1)])
    table.signals["memory_anon"] = np.linspace(100.0, 700.0, 600)[None, :] * 2.0**20
    kill = Kill(0, 560 * 60_000, table.rows[0].lives[0], 660 * 2.0**20)
    one = replace(make_found("oom_kill", 510, 560, 660.0), killed_ms=kill.at_ms)
    found = follow(table, [kill], one)
    assert found.from_ms <= 60_000
    assert found.causes[0].before == pytest.approx(102 * 2**20, rel=0.02)
