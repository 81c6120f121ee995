"""Sections of the node, many panels, typed ranges and saved views."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.web.browsing import Watched

pytestmark = pytest.mark.real

TWELVE = (
    "cpu,memory,pressure_cpu,pressure_memory,disk_write,cpu_throttled,memory_anon,memory_working_set,"
    "threads,cpu_user,cpu_system,memory_limit"
)


def test_a_section_shows_the_whole_node_without_picking(view: Watched) -> None:
    page = view.open("range=all&panels=cpu")
    sections = page.locator(".section").all_inner_texts()
    assert sections[:2] == ["containers", "heat map"]
    page.get_by_role("button", name="node", exact=True).click()
    expect(page.locator(".panel h2").first).to_contain_text("node memory")
    page.get_by_role("button", name="containers, as panels").click()
    expect(page.locator(".panel h2").first).to_contain_text("cpu")


def test_twelve_panels_stand_side_by_side_on_a_large_screen(view: Watched) -> None:
    page = view.page
    page.set_viewport_size({"width": 2560, "height": 1440})
    view.open(f"range=all&panels={TWELVE}")
    boxes = [one.bounding_box() for one in page.locator(".panel").all()]
    lefts = {round(box["x"]) for box in boxes if box}
    assert len(boxes) == 12
    assert len(lefts) >= 2, "all twelve stand under each other"
    assert all(box and box["height"] >= 150 for box in boxes)
    view.no_sideways()
    view.picture("twelve-panels")
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator(".panel")).to_have_count(12)
    assert len({round(box["x"]) for one in page.locator(".panel").all() if (box := one.bounding_box())}) == 1


def test_a_range_is_typed(view: Watched) -> None:
    page = view.open("panels=cpu&range=all&tz=utc")
    page.keyboard.press("d")
    page.get_by_label("from", exact=True).fill("2026-02-02T02:00:00")
    page.get_by_label("to", exact=True).fill("2026-02-02T01:00:00")
    expect(page.locator(".time-form [role=status]")).to_have_text("The range ends before it begins.")
    expect(page.get_by_role("button", name="show this range")).to_be_disabled()
    page.get_by_label("to", exact=True).fill("2026-02-02T02:10:00")
    page.get_by_role("button", name="show this range").click()
    view.await_window("Math.abs(to - from - 600) < 1")
    assert view.words()["from"] == "2026-02-02T02:00:00Z"


def test_a_view_is_saved_exported_and_read_again(view: Watched, tmp_path: Path) -> None:
    page = view.open("range=all&panels=memory&namespace=shop")
    page.keyboard.press("v")
    page.get_by_label("save this view as").fill("the shop's memory")
    page.keyboard.press("Enter")
    expect(page.locator(".views [role=status]")).to_contain_text("Saved as")
    with page.expect_download() as coming:
        page.get_by_role("button", name="export as a file").click()
    path = tmp_path / "views.json"
    coming.value.save_as(path)
    (kept,) = json.loads(path.read_text())["views"]
    assert kept["name"] == "the shop's memory"
    assert "namespace=shop" in kept["view"]
    page.get_by_role("button", name="delete the view").click()
    expect(page.locator(".views li")).to_have_count(0)
    page.locator(".views input[type=file]").set_input_files(path)
    expect(page.locator(".views [role=status]")).to_contain_text("1 view read")
    # Elsewhere meanwhile; the saved view leads back.
    page.keyboard.press("Escape")
    page.evaluate("() => { location.hash = '#panels=cpu'; }")
    expect(page.locator(".panel h2").first).to_contain_text("cpu")
    page.keyboard.press("v")
    page.get_by_role("link", name="the shop's memory").click()
    expect(page.locator(".panel h2").first).to_contain_text("memory")
    assert view.words()["namespace"] == "shop"
    path.write_text("not a view")
    page.keyboard.press("v")
    page.locator(".views input[type=file]").set_input_files(path)
    expect(page.locator(".views [role=status]")).to_have_text("This file is not JSON.")
