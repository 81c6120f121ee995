"""For everybody: keys alone, dark, narrow, wide, names made to harm."""

import re

import pytest
from playwright.sync_api import Browser, expect
from tests.web.archives import LONG
from tests.web.browsing import Running, Watched, watching

pytestmark = pytest.mark.real

# The contrast of every text against what is behind it; returns those below 4.5.
LOW_CONTRAST = """() => {
    const parse = text => { const found = text.match(/[\\d.]+/g).map(Number); return {rgb: found.slice(0, 3), alpha: found[3] ?? 1}; };
    const light = rgb => { const [r, g, b] = rgb.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = node => { for (let one = node; one; one = one.parentElement) { const ground = parse(getComputedStyle(one).backgroundColor); if (ground.alpha > 0.9) return ground.rgb; } return [255, 255, 255]; };
    const low = [];
    for (const node of document.querySelectorAll('body *')) {
        const text = [...node.childNodes].filter(one => one.nodeType === 3 && one.textContent.trim()).map(one => one.textContent.trim()).join(' ');
        if (!text || !node.checkVisibility({opacityProperty: true}) || node.closest('.off')) continue;
        const [a, b] = [light(parse(getComputedStyle(node).color).rgb), light(behind(node))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${((a + 0.05) / (b + 0.05)).toFixed(2)} ${node.className} ${text.slice(0, 40)}`);
    }
    return low;
}"""


def test_everything_by_keyboard_alone(view: Watched) -> None:
    page = view.open("panels=cpu,memory&range=all")
    press = page.keyboard.press
    start, end = view.window()
    press("ArrowRight")
    press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text(":")
    press("+")
    zoomed = view.await_window("to - from < given", (end - start) * 0.7)
    press("Shift+ArrowLeft")
    view.await_window("from < given", zoomed[0] - 60)
    press("0")
    view.await_window("Math.abs(to - given) < 5", end)
    press("2")
    expect(page.locator(".panel.focused h2")).to_contain_text("memory")
    press("a")
    page.keyboard.type("threads")
    press("Enter")
    view.await_panels(3)
    press("[")
    expect(page.locator(".panel h2").nth(1)).to_contain_text("threads")
    press("x")
    expect(page.locator(".panel")).to_have_count(2)
    press("c")
    page.keyboard.type("encoder")
    expect(page.locator(".row .name").first).to_have_text("encoder")
    press("Enter")
    press("Space")
    expect(page.locator(".panel").first.locator(".line")).to_have_count(1)
    press("Escape")
    press("f")
    expect(page.locator(".drawer")).to_be_visible()
    page.locator(".finding").first.wait_for()
    press("n")
    expect(page.locator(".finding.chosen")).to_have_count(1)
    press("Escape")
    press("Escape")
    expect(page.locator(".drawer")).to_have_count(0)
    press("e")
    expect(page.locator("dialog")).to_contain_text("PromQL")
    press("Escape")
    press("?")
    expect(page.locator("dialog .keys")).to_contain_text("go to a panel")
    view.picture("keys")
    press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_a_key_before_the_sheet_is_drawn_opens_no_other(view: Watched) -> None:
    page = view.open("panels=cpu")
    page.evaluate(
        "() => ['a', 'r', 'e'].forEach(key => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})))"
    )
    expect(page.locator("dialog")).to_contain_text("add a panel")
    assert "sheet" not in view.words()


def test_tab_reaches_real_controls_in_order(view: Watched) -> None:
    page = view.open("panels=cpu")
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "() => { const one = document.activeElement; return one.id || one.className || one.tagName; }"
            )
        )
    assert reached[0] == "skip"
    assert "search" in reached
    assert reached.index("search") < reached.index("filter")
    names = page.eval_on_selector_all(
        "button, select, input, [role=slider]",
        "all => all.filter(one => !(one.getAttribute('aria-label') || one.innerText || one.labels?.length || one.title)).map(one => one.outerHTML)",
    )
    assert names == [], "a control without a name"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light_can_be_read(browser: Browser, demo: Running, scheme: str) -> None:
    with watching(browser, demo.url, color_scheme=scheme) as view:
        page = view.open("range=all&drawer=findings")
        page.locator(".finding").first.wait_for()
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(251, 251, 253)", "dark": "rgb(15, 18, 22)"}[scheme]
        assert page.evaluate(LOW_CONTRAST) == []
        view.picture(scheme)
        page.keyboard.press("t")
        page.keyboard.press("t")
        assert view.words()["theme"] == "dark"
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_320_pixels_are_enough(browser: Browser, demo: Running) -> None:
    size = {"width": 320, "height": 640}
    with watching(browser, demo.url, viewport=size, has_touch=True, is_mobile=True) as view:
        page = view.open("panels=cpu,memory")
        view.no_sideways()
        view.picture("narrow", full_page=True)
        page.get_by_role("button", name="containers", exact=True).tap()
        page.locator("dialog #filter").fill("encoder")
        page.locator("dialog .row").first.tap()
        page.get_by_role("button", name="close (Esc)").tap()
        expect(page.locator(".panel").first.locator(".line")).to_have_count(1)
        page.get_by_role("button", name="menu").tap()
        page.locator(".findings-opener").tap()
        expect(page.locator(".drawer")).to_be_visible()
        view.no_sideways()


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_no_figure_of_a_tile_lies_over_its_curve(
    browser: Browser, demo: Running, width: int
) -> None:
    with watching(browser, demo.url, viewport={"width": width, "height": 844}) as view:
        page = view.open("range=all&panels=memory")
        page.locator(".tile .spark").first.wait_for()
        covered = page.eval_on_selector_all(
            ".tile",
            """tiles => tiles.flatMap(tile => {
                const figure = document.createRange();
                figure.selectNodeContents(tile.querySelector('.figure'));
                const curve = tile.querySelector('.spark')?.getBoundingClientRect();
                const text = figure.getBoundingClientRect();
                const isOver = curve && text.right > curve.left && text.left < curve.right && text.bottom > curve.top + 1 && text.top < curve.bottom - 1;
                return isOver ? [tile.textContent] : [];
            })""",
        )
        assert covered == []


def test_on_a_phone_cards_and_tiles_are_read_whole(browser: Browser, demo: Running) -> None:
    with watching(browser, demo.url, viewport={"width": 320, "height": 700}) as view:
        page = view.open()
        page.locator(".tile .spark").first.wait_for()
        cut = page.eval_on_selector_all(
            ".card-head, .card-said, .tile .title, .tile .what",
            "all => all.filter(one => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1).map(one => one.textContent)",
        )
        assert cut == []


@pytest.mark.parametrize("width", [1366, 1440, 1920])
def test_the_top_bar_is_one_line_in_every_time_zone(browser: Browser, demo: Running, width: int) -> None:
    """India's is the longest name; the times of the range give way."""
    size = {"width": width, "height": 900}
    with watching(browser, demo.url, viewport=size, timezone_id="Asia/Kolkata") as view:
        page = view.open("panels=cpu&from=2026-02-02T01:50:00Z&to=2026-02-02T02:39:00Z")
        expect(page.locator(".top button", has_text="GMT+5:30")).to_be_visible()
        middles = page.eval_on_selector_all(
            ".top button, .top select, .top input",
            "all => all.filter(one => one.offsetParent).map(one => one.getBoundingClientRect()).map(box => (box.top + box.bottom) / 2)",
        )
        assert max(middles) - min(middles) < 10
        view.no_sideways()


def test_what_happened_to_a_container_is_read_whole_in_its_row(view: Watched) -> None:
    page = view.open("range=all&panels=cpu")
    note = page.locator(".row em.harm", has_text="restarts")
    expect(note).to_contain_text(re.compile(r"\d+ restarts, ended \d\d:\d\d"))
    room = page.eval_on_selector_all(
        ".row .under.noted", "all => all.map(one => one.scrollHeight - one.clientHeight)"
    )
    assert room
    assert max(room) <= 1, "a note is cut"


def test_4k_shows_more_and_not_larger(browser: Browser, demo: Running) -> None:
    with watching(browser, demo.url, viewport={"width": 3840, "height": 2160}) as view:
        page = view.open("panels=cpu,memory,pressure_cpu,threads,cpu_throttled&range=all")
        view.no_sideways()
        bottoms = page.eval_on_selector_all(
            ".panel", "all => all.map(one => one.getBoundingClientRect().bottom)"
        )
        assert len(bottoms) == 5
        assert max(bottoms) <= 2160, "all five fit on the screen"
        assert page.evaluate("() => getComputedStyle(document.body).fontSize") == "13px"
        view.picture("4k")


def test_cards_lead_to_containers_whatever_they_are_called(browser: Browser, hostile: Running) -> None:
    """A name of 253 letters is told cut; the page that opens on its incident must find it all the same."""
    with watching(browser, hostile.url) as view:
        page = view.open()
        count = page.locator(".card").count()
        assert count >= 2
        for number in range(count):
            page.locator(".card").nth(number).click()
            expect(page.locator(".card").nth(number)).to_have_class(re.compile("chosen"))
            view.await_panels(2)
            expect(page.locator(".plot .trouble")).to_have_count(0)


def test_hostile_names_are_text(browser: Browser, hostile: Running) -> None:
    with watching(browser, hostile.url) as view:
        page = view.open("panels=cpu,memory&range=all&drawer=findings")
        page.wait_for_load_state("networkidle")
        shown = page.locator("body").inner_text()
        assert "<script>" in shown
        assert "<img src=x" in shown
        assert "\u202e" not in shown, "a name must not turn its neighbours around"
        assert LONG not in shown, "a name of a kilobyte is cut"
        assert page.evaluate("() => window.broken") is None
        assert page.locator("main script, aside script, main img, aside img").count() == 0
        view.no_sideways()
        view.picture("hostile")
        page.locator("#filter").fill("<script>")
        page.locator(".row").first.click()
        view.await_panels()
        page.keyboard.press("e")
        expect(page.locator("dialog")).to_contain_text("PromQL")
        assert page.evaluate("() => window.broken") is None
