"""Who is drawn in a short span is chosen by whole minutes, without a look at samples."""

from pathlib import Path

import pytest
from tests.use.viewer.archives import END_MS, write_demo

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.keep.demo.archive import add_minutes
from nodescope.keep.folder import DataFolder
from nodescope.use.answers.over_lives.join import choose_busiest_wholes
from nodescope.use.answers.ranked.ranking import Order, rank, rank_roughly
from nodescope.use.answers.snapshots import NodeFolders, View

MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    folder: Path = tmp_path_factory.mktemp("rough") / "demo"
    write_demo(folder, hours=2)
    add_minutes(DataFolder(folder))
    return NodeFolders([folder], SystemClock()).view()


def by_use(order: Order) -> list[str]:
    return sorted(order.figures, key=lambda one: -order.figures[one].over_span)


@pytest.mark.parametrize("minutes", [1, 5, 15])
def test_no_samples_are_read_to_choose_who_is_drawn(view: View, minutes: int) -> None:
    to_ms = END_MS - 70 * MINUTE_MS + 17_000
    span = TimeRange(to_ms - minutes * MINUTE_MS, to_ms)
    reader = view.engine.reader
    before = reader.rows_read
    chosen = choose_busiest_wholes(view, view.lives(span), "cpu", span, 3)
    assert len({life.name for life in chosen}) == 3
    assert reader.rows_read == before
    rank(view, view.lives(span), "cpu", span)
    assert reader.rows_read > before, "the samples of these minutes are in files that can be read"


def test_over_many_minutes_both_say_the_same(view: View) -> None:
    to_ms = END_MS - 62 * MINUTE_MS + 17_000
    span = TimeRange(to_ms - 30 * MINUTE_MS, to_ms)
    lives = view.lives(span)
    exact, rough = (by_use(one(view, lives, "cpu", span)) for one in (rank, rank_roughly))
    assert rough[:3] == exact[:3]
    assert set(rough) == set(exact)


def test_each_of_several_nodes_is_ranked(tmp_path: Path) -> None:
    for name in ("demo-1", "demo-2"):
        write_demo(tmp_path / name, name)
    view = NodeFolders([tmp_path], SystemClock()).view()
    span = TimeRange(END_MS - 10 * MINUTE_MS, END_MS)
    lives = view.lives(span)
    ranked = rank_roughly(view, lives, "cpu", span).figures
    assert {life.node for life in lives if life.id in ranked} == {"demo-1", "demo-2"}
