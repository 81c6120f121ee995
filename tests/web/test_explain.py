"""A bump is selected and explained; sums, heat map and the page of a container, each from a click or a key."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.web.browsing import Running, Watched, watching

pytestmark = pytest.mark.real

# In the demo's hour the encoder is held back by its CPU limit from minute 15 to 30.
FROM, TO = 900 / 3600, 1800 / 3600


def test_alt_drag_over_a_bump_ranks_what_changed(view: Watched) -> None:
    page = view.open("range=all&panels=cpu")
    before = view.window()
    box = view.plot(0)
    page.keyboard.down("Alt")
    page.mouse.move(box["x"] + box["width"] * FROM, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * TO, box["y"] + 40, steps=8)
    page.mouse.up()
    page.keyboard.up("Alt")
    expect(page.locator(".why .headline")).to_contain_text("encoder changed most")
    assert view.window() == before, "Alt-drag selects, it does not zoom"
    assert view.words()["drawer"] == "why"
    rows = page.locator(".change")
    expect(rows.first).to_contain_text("encoder")
    expect(rows.first.locator("svg.two path")).to_have_count(2)
    view.picture("explain")
    # A click draws it: the metric as a panel, the container in it.
    throttled = page.locator(".change", has_text="cpu throttled").first
    throttled.click()
    expect(page.locator(".panel h2").first).to_contain_text("cpu throttled")
    expect(page.locator(".panel").first.locator(".line .name")).to_have_text(["encoder"])
    # The address has it all, and Escape closes the drawer.
    page.reload()
    expect(page.locator(".why .headline")).to_contain_text("encoder")
    page.keyboard.press("Escape")
    expect(page.locator(".drawer")).to_have_count(0)


def test_what_is_drawn_is_explained_by_a_key_and_by_a_button(view: Watched) -> None:
    """Without a mouse: zoom, then w; on a phone the button."""
    page = view.open("from=2026-02-02T02:00:00Z&to=2026-02-02T02:10:00Z&panels=cpu")
    page.keyboard.press("w")
    expect(page.locator(".why")).to_contain_text("against as long before")
    expect(page.locator(".change").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="what changed?").click()
    expect(page.locator(".change").first).to_be_visible()


def test_containers_are_added_up_by_namespace(view: Watched, demo: Running) -> None:
    """The legend's figure is the server's sum; the stack's top is the sum of all."""
    page = view.open("range=all&panels=cpu,memory")
    alone = view.pixels(1)
    page.get_by_label("add up by").select_option("namespace")
    memory = page.locator(".panel").nth(1)
    expect(memory.locator(".line .name", has_text="shop")).to_be_visible()
    expect(memory.locator("h2")).to_contain_text("added up")
    assert view.words()["by"] == "namespace"
    assert view.pixels(1) != alone
    answer: Any = page.request.get(
        f"{demo.url}/api/groups?metric=memory&group=namespace&range=all&max_points=240"
    ).json()
    shop = next(one for one in answer["groups"] if one["name"] == "shop")
    newest = next(value for value in reversed(shop["mean"]) if value is not None)
    told = memory.locator(".line", has_text="shop").locator(".value").inner_text()
    number, unit = told.split()
    assert float(number) * {"MiB": 2**20, "GiB": 2**30}[unit] == pytest.approx(newest, rel=0.01)
    expect(memory.locator(".sentence")).to_contain_text("together")
    view.picture("namespaces")
    page.keyboard.press("g")
    expect(page.get_by_label("add up by")).to_have_value("workload")
    # Who clicks a container wants that one.
    page.locator(".row").first.click()
    expect(page.get_by_label("add up by")).to_have_value("")


def test_the_heat_map_shows_who_is_at_the_limit(view: Watched) -> None:
    page = view.open("range=all&panels=cpu")
    page.get_by_role("button", name="heat map").click()
    names = page.locator(".panel.heat").first.locator(".heat-names .name")
    expect(names.first).to_have_text("cache")
    expect(page.locator(".panel.heat .sentence").first).to_contain_text("worst is cache")
    assert view.words()["panels"] == "heat:memory,heat:cpu"
    canvas = page.locator(".panel.heat canvas").first
    colours = canvas.evaluate(
        """canvas => {
            const row = canvas.getContext('2d').getImageData(0, 4, canvas.width, 1).data;
            const at = share => [...row.slice(Math.floor(canvas.width * share) * 4)].slice(0, 3);
            return {killed: at(0.69), after: at(0.9)};
        }"""
    )
    assert colours["killed"][0] > 150 > colours["killed"][2], f"not red before the kill: {colours}"
    assert colours["after"] != colours["killed"]
    view.picture("heat-map")
    # A row leads to the container's page.
    names.first.click()
    expect(page.locator(".who h2")).to_contain_text("cache")


def test_the_page_of_a_container_has_its_lives_limits_and_end(view: Watched) -> None:
    page = view.open("range=all&panels=cpu&sort=memory")
    row = page.locator(".containers li", has=page.get_by_text("cache", exact=True))
    row.hover()
    row.get_by_role("button", name="page of cache").click()
    who = page.locator(".who")
    expect(who).to_contain_text("memory")
    expect(who).to_contain_text("limit 512 MiB")
    expect(who).to_contain_text("1 restart")
    expect(who.locator(".obituary .harm")).to_contain_text("was killed for memory at 02:2")
    titles = [text.split(" (")[0] for text in page.locator(".panel h2").all_inner_texts()]
    assert titles[:2] == ["memory", "cpu"]
    assert any(title.startswith("pressure") for title in titles)
    expect(page.locator(".panel").first.locator(".line .name")).to_have_text(["cache"])
    view.picture("container-page")
    who.locator(".obituary button").first.click()
    view.await_window("to - from < 700")
    page.keyboard.press("Backspace")
    page.get_by_role("button", name="all containers").click()
    expect(page.locator(".who")).to_have_count(0)


def test_a_threshold_is_dragged_and_copied_as_an_alert(browser: Any, demo: Running) -> None:
    with watching(browser, demo.url, permissions=["clipboard-read", "clipboard-write"]) as view:
        page = view.open("range=all&panels=memory&containers=cache")
        page.get_by_role("button", name="threshold in panel 1").click()
        handle = page.get_by_role("slider", name="threshold of memory")
        expect(handle).to_be_visible()
        first = float(handle.get_attribute("aria-valuenow") or 0)
        box = handle.bounding_box()
        assert box
        page.mouse.move(box["x"] + 6, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + 6, box["y"] + 60, steps=6)
        page.mouse.up()
        page.wait_for_function("() => location.hash.includes('threshold=')")
        dragged = float(handle.get_attribute("aria-valuenow") or 0)
        assert dragged < first
        handle.press("ArrowUp")
        assert float(handle.get_attribute("aria-valuenow") or 0) > dragged
        view.picture("threshold")
        page.get_by_role("button", name="copy as alert").click()
        expect(page.locator(".notice")).to_contain_text("The alert is in the clipboard")
        rule = page.evaluate("() => navigator.clipboard.readText()")
        assert re.search(
            r"expr: 'container_memory_usage_bytes\{pod=~\"cache-\S+\", container=~\"cache\"\} > \d+'", rule
        )
        handle.press("Delete")
        expect(handle).to_have_count(0)
