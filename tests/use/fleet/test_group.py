"""What a group used over the span: jobs that come and go do not outrank what always runs."""

from typing import Any

import pytest

from nodescope.use.fleet.group import Group

HOUR = 3600.0


def row(node: str, day: str, mean: float, over_span: float | None, unit: str = "cores") -> dict[str, Any]:
    return {
        "node": node,
        "day": day,
        "magnitude": mean,
        "over_span": over_span,
        "span_seconds": HOUR,
        "unit": unit,
    }


def test_short_lives_add_up_to_what_they_used() -> None:
    jobs = Group("etl", "cpu", 60, [row("n1", "d1", 2.0, 2.0 * 10 / HOUR) for _ in range(60)])
    assert jobs.over_span() == pytest.approx(60 * 10 * 2 / HOUR)


def test_days_are_averaged_and_nodes_are_added() -> None:
    always: list[Any] = [row(node, day, 0.5, 0.5) for node in ("n1", "n2") for day in ("d1", "d2", "d3")]
    assert Group("web", "cpu", 2, always).over_span() == pytest.approx(1.0)


def test_shares_of_time_and_rows_of_a_study_are_means() -> None:
    assert Group(
        "web", "pressure_cpu", 2, [row("n1", "d1", share, 0.0, "ratio") for share in (0.2, 0.4)]
    ).over_span() == pytest.approx(0.3)
    assert Group("web", "cpu", 1, [row("n1", "d1", 2.0, None)]).over_span() == 2.0
