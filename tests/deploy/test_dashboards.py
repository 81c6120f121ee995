"""The dashboards that we ship are those that the code makes, and can be imported."""

import re
from typing import Any

import pytest
from tests.deploy.boards import FOLDER, boards, lists, queries, substitute
from tools.generate_dashboards import render_boards

PAGES = ("containers", "fpga", "gpus", "node", "nodescope")


def test_the_files_are_what_the_code_makes() -> None:
    """Renewed by make dashboards; nothing else lies in the folder."""
    made = render_boards()
    assert {path.name for path in FOLDER.iterdir()} == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text() == text, f"{name} is old: make dashboards"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_imported(name: str) -> None:
    """Panels have numbers of their own, do not overlap, and ask the source that was chosen."""
    board = boards()[name]
    assert board["uid"].startswith("nodescope-")
    assert [panel["id"] for panel in board["panels"]] == list(range(1, len(board["panels"]) + 1))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        cells = cells_of(panel["gridPos"])
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${source}"
            assert panel["options"] is not None
            letters = [target["refId"] for target in panel["targets"]]
            assert letters
            assert len(set(letters)) == len(letters)


def cells_of(place: dict[str, Any]) -> set[tuple[int, int]]:
    assert place["x"] + place["w"] <= 24
    return {
        (column, line)
        for column in range(place["x"], place["x"] + place["w"])
        for line in range(place["y"], place["y"] + place["h"])
    }


@pytest.mark.parametrize(("place", "expression"), [*queries(), *lists()])
def test_every_query_is_about_our_job(place: str, expression: str) -> None:
    """Except for recorded series, which are made from our job's, and for alerts."""
    filled = substitute(expression, "1m")
    selectors = re.findall(r"\b([a-z]\w*)\{([^}]*)\}", re.sub(r"\w+:[\w:]+\{[^}]*\}", "", filled))
    assert selectors or "ALERTS" in filled or ":" in filled, place
    for name, inside in selectors:
        assert 'job="nodescope"' in inside, (place, name)
