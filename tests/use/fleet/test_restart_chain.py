"""Containers that follow each other are one story; those side by side are not."""

import numpy as np
import pytest

from nodescope.keep.label_columns import LABELS, Subject
from nodescope.read.query.bucket import Points
from nodescope.use.answers.timeseries import MeasuredSeries
from nodescope.use.fleet.restart_chain import join_series, link_restarts
from nodescope.use.fleet.workload import Owner, owner_of


def line(
    container: str, start: int, count: int, value: float, image: str = "", owner: str = ""
) -> MeasuredSeries:
    known = {
        "l_container_id": container,
        "l_scope": "container",
        "l_namespace": "shop",
        "l_pod_name": f"api-7d9f8b6c5-{container[:5]}",
        "l_container_name": "api",
        "l_node_name": "n1",
    }
    times = (start + np.arange(count)) * 1000
    values = np.full(count, value)
    points = Points(times, values, values, values, np.ones(count, np.int64))
    details = {key: text for key, text in (("image", image), ("owner", owner)) if text}
    subject = Subject(tuple(known.get(name) for name in LABELS), details)
    return MeasuredSeries(container, "api", "n1", "container", subject, points)


def owned(*lines: MeasuredSeries) -> list[tuple[Owner, MeasuredSeries]]:
    return [(owner_of(one), one) for one in lines]


def test_a_rollout_is_one_chain_and_its_step_is_told_in_real_time() -> None:
    old, new = line("bbbbb1", 1000, 100, 5.0, "api:1"), line("ccccc2", 1160, 100, 9.0, "api:2")
    chains = link_restarts(owned(new, old))
    assert [[one.subject.label("l_container_id") for one in chain.lines] for chain in chains] == [
        ["bbbbb1", "ccccc2"]
    ]
    joined = join_series(chains[0], "memory", "bytes")
    assert np.diff(joined.series.times_at).max() == pytest.approx(1.0)
    first_of_new = joined.series.times_at[100]
    assert joined.real_time(float(first_of_new)) == 1160.0
    assert [owner.image for owner in chains[0].owners] == ["api:1", "api:2"]


def test_replicas_side_by_side_stay_apart() -> None:
    chains = link_restarts(owned(line("bbbbb1", 1000, 100, 5.0), line("ccccc2", 1050, 100, 9.0)))
    assert len(chains) == 2


def test_a_container_hours_later_is_something_else() -> None:
    chains = link_restarts(owned(line("bbbbb1", 1000, 100, 5.0), line("ccccc2", 9000, 100, 9.0)))
    assert len(chains) == 2


def test_a_life_of_its_own_is_studied_as_it_is() -> None:
    alone = line("bbbbb1", 1000, 100, 5.0)
    joined = join_series(link_restarts(owned(alone))[0], "memory", "bytes")
    assert (joined.series.times_at == alone.points.time_ms / 1000).all()


def test_what_kubernetes_says_wins_over_the_name() -> None:
    named = owner_of(line("bbbbb1", 0, 1, 1.0, "api:1", "Deployment/storefront"))
    assert (named.workload, named.image) == ("shop/storefront/api", "api:1")
    guessed = owner_of(line("bbbbb1", 0, 1, 1.0))
    assert (guessed.workload, guessed.group("image")) == ("shop/api", "(image not known)")
