"""Windows of a comparison of several nodes: one pair for all of them, around the newest deploy of any."""

from dataclasses import dataclass
from functools import partial
from typing import cast

import anyio
import pytest

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import LABELS, Subject
from nodescope.use.answers.containers import Life, make_life
from nodescope.use.answers.overview import About
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet, NodeEntry, StaticDirectory
from nodescope.use.mcp.protocol.argument import Values
from nodescope.use.mcp.tools.compare_windows import NAMES, choose_windows
from nodescope.use.mcp.tools.shared.time_text import render_iso

HOUR_MS = 3_600_000
END_MS = 1_772_366_400_000
START_MS = END_MS - 6 * HOUR_MS


@dataclass
class OneNode:
    """A backend that knows its extent and its containers."""

    name: str
    lives: list[Life]

    def read_about(self) -> About:
        return About(self.name, "0", START_MS, END_MS, len(self.lives))

    def read_lives(self, span: TimeRange | None) -> list[Life]:
        assert span is None
        return self.lives


def live(node: str, number: int, image: str, from_ms: int, to_ms: int) -> Life:
    names = {
        "l_container_id": f"{number:064x}",
        "l_scope": "container",
        "l_pod_name": f"web-7d9f8c6b5-x{number}b2c",
        "l_container_name": "web",
        "l_namespace": "shop",
    }
    labels = tuple(names.get(name) for name in LABELS)
    return make_life(Subject(labels, {"image": image, "owner": "Deployment/web"}, from_ms, to_ms), node)


def deployed(node: str, at_ms: int | None, new_image: str = "web:2") -> OneNode:
    if at_ms is None:
        return OneNode(node, [live(node, 1, "web:1", START_MS, END_MS)])
    before, after = live(node, 1, "web:1", START_MS, at_ms), live(node, 2, new_image, at_ms + 1000, END_MS)
    return OneNode(node, [before, after])


def choose(*nodes: OneNode, **given: str) -> Values:
    entries = {one.name: NodeEntry(one.name, cast("Backend", one), "here") for one in nodes}
    fleet = Fleet(StaticDirectory(entries), SystemClock(), 60.0)
    values = {"node": None, **dict.fromkeys(NAMES, None), **given}
    return anyio.run(partial(choose_windows, fleet, values))


def around(at_ms: int) -> list[str]:
    return [render_iso(one) for one in (at_ms - HOUR_MS, at_ms, at_ms, at_ms + HOUR_MS)]


@pytest.mark.parametrize(
    ("first", "second", "at_ms"),
    [
        (None, END_MS - 3 * HOUR_MS, END_MS - 3 * HOUR_MS + 1000),
        (END_MS - 2 * HOUR_MS, END_MS - 3 * HOUR_MS, END_MS - 2 * HOUR_MS + 1000),
        (None, None, END_MS - HOUR_MS),
    ],
)
def test_all_nodes_have_the_same_windows(first: int | None, second: int | None, at_ms: int) -> None:
    """Each by its own deploy would be other hours, of which the answer can name one pair only."""
    values = choose(deployed("a", first), deployed("b", second))
    assert [values[name] for name in NAMES] == around(at_ms)


def test_a_new_image_goes_before_new_pods_that_came_later() -> None:
    old, late = END_MS - 3 * HOUR_MS, END_MS - 2 * HOUR_MS
    values = choose(deployed("a", old), deployed("b", late, new_image="web:1"))
    assert [values[name] for name in NAMES] == around(old + 1000)


def test_windows_that_were_given_and_those_of_one_node_are_left_alone() -> None:
    given = choose(deployed("a", None), deployed("b", None), b_from="-1h")
    assert given["b_from"] == "-1h"
    assert given["a_from"] is None
    assert choose(deployed("a", END_MS - HOUR_MS))["a_from"] is None
