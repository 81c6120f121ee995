"""One time axis: drag, wheel, pan, reset, back, the overview, and the address that holds it."""

import pytest
from playwright.sync_api import expect
from tests.web.archives import END_MS
from tests.web.browsing import Watched

pytestmark = pytest.mark.real

END = END_MS / 1000


def test_drag_zooms_all_panels_and_back_returns(view: Watched) -> None:
    page = view.open("range=all&panels=cpu,memory,pressure_cpu")
    first = view.window()
    box = view.plot(1)
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=4)
    page.mouse.up()
    start, end = view.await_window("to - from < given", (first[1] - first[0]) / 2)
    width = first[1] - first[0]
    assert start == pytest.approx(first[0] + 0.25 * width, abs=width * 0.01)
    assert end == pytest.approx(first[0] + 0.5 * width, abs=width * 0.01)
    assert {"from", "to"} <= set(view.words())
    page.keyboard.press("Backspace")
    assert view.await_window("to - from > given", width * 0.9) == pytest.approx(first)


def test_the_wheel_zooms_at_the_cursor_and_shift_drag_pans(view: Watched) -> None:
    page = view.open("range=all&panels=cpu,memory")
    start, end = view.window()
    box = view.plot(0)
    at = start + (end - start) * 0.7
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 30)
    for _ in range(4):
        page.mouse.wheel(0, -100)
    zoomed = view.await_window("to - from < given", (end - start) * 0.5)
    assert (at - zoomed[0]) / (zoomed[1] - zoomed[0]) == pytest.approx(0.7, abs=0.02)

    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30, steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")
    panned = view.await_window("from < given", zoomed[0] - 60)
    width = zoomed[1] - zoomed[0]
    assert panned[1] - panned[0] == pytest.approx(width, rel=1e-3)
    assert zoomed[0] - panned[0] == pytest.approx(width * 0.2, rel=0.05)

    page.mouse.dblclick(box["x"] + box["width"] * 0.5, box["y"] + 30)
    view.await_window("Math.abs(to - given) < 5 && Math.abs(to - from - 3600) < 5", END)


@pytest.mark.parametrize("width", [320, 900, 1440, 2560])
def test_events_plots_and_overview_share_one_axis(view: Watched, width: int) -> None:
    """A mark stands above its moment: all begin and end at the same pixel."""
    view.page.set_viewport_size({"width": width, "height": 900})
    page = view.open("range=all&panels=cpu,memory")
    boxes = [page.locator(name).first.bounding_box() for name in (".u-over", ".lane-marks", ".track")]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box]
    assert len(ends) == 3
    assert ends[1] == pytest.approx(ends[0], abs=1.5)
    assert ends[2] == pytest.approx(ends[0], abs=1.5)


def test_the_overview_says_where_you_are_and_moves_you(view: Watched) -> None:
    page = view.open("range=5m&panels=cpu")
    start, end = view.window()
    window = page.locator(".overview .window").bounding_box()
    track = page.locator(".overview .track").bounding_box()
    assert window
    assert track
    assert window["x"] + window["width"] == pytest.approx(track["x"] + track["width"], abs=4)
    page.mouse.move(window["x"] + window["width"] / 2, window["y"] + 20)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * 0.5, window["y"] + 20, steps=5)
    page.mouse.up()
    moved = view.await_window("to < given", end - 600)
    assert moved[1] - moved[0] == pytest.approx(end - start, rel=1e-3)
    page.locator(".overview .window").focus()
    page.keyboard.press("PageUp")
    view.await_window("from < given", moved[0] - 200)


def test_a_reload_from_the_address_is_the_same_picture(view: Watched) -> None:
    page = view.open("range=all&panels=memory,cpu&tz=utc&sort=memory")
    box = view.plot(0)
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 40, steps=4)
    page.mouse.up()
    view.await_window("to - from < 3000")
    page.mouse.move(5, 5)
    settle(view)
    window, picture = view.window(), view.pixels(0)
    rows = page.locator(".row .name").all_inner_texts()
    page.reload()
    view.await_panels(2)
    settle(view)
    assert view.window() == window
    assert page.locator(".row .name").all_inner_texts() == rows
    assert view.pixels(0) == picture


def settle(view: Watched) -> None:
    """Until nothing is asked any more: studies come after the panels and leave their marks."""
    view.page.wait_for_load_state("networkidle")
    expect(view.page.locator(".findings-opener")).not_to_have_text("studying ...")


def test_utc_and_local_time_are_one_key_apart(demo_page_in_kolkata: Watched) -> None:
    view = demo_page_in_kolkata
    page = view.open("panels=cpu")
    chosen = page.get_by_role("button", name="times:")
    expect(chosen).to_contain_text("GMT+5:30")
    page.keyboard.press("u")
    expect(chosen).to_contain_text("UTC")
    assert view.words()["tz"] == "utc"
