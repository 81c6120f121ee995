"""axe-core finds nothing on any screen, in both themes; nothing is wider than the window from 320 to 2560 pixels."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.web.browsing import Running, Watched, refuse, watching

pytestmark = pytest.mark.real

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
WHY = "drawer=why&why=2026-02-02T01:55:00Z/2026-02-02T02:10:00Z"
# Hash, and what must be there before it is looked at.
SCREENS = {
    "first view": ("range=all", ".row"),
    "what changed": (f"range=all&panels=cpu,memory&{WHY}", ".change"),
    "heat map": ("range=all&panels=heat:memory,heat:cpu", ".heat-names .line"),
    "sums": ("range=all&panels=cpu,memory&by=namespace", ".line"),
    "a container": (
        "range=all&who=cache&containers=cache&panels=memory,cpu&threshold=:memory=4e8",
        ".threshold",
    ),
    "findings": ("range=all&panels=cpu&drawer=findings", ".finding"),
}
SHEETS = {"help": "?", "picker": "a", "export": "e", "views": "v", "range": "d", "right-sizing": "r"}


def read_axe() -> str:
    if not AXE.exists():
        refuse("axe-core is not installed; remedy: tools/web check (needs Node)")
    return AXE.read_text()


def find_violations(page: Page) -> list[str]:
    found: Any = page.evaluate(
        """async () => {
            const found = await window.axe.run(document, {resultTypes: ['violations']});
            return found.violations.map(one => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
        }"""
    )
    return list(found)


def open_with_axe(view: Watched, hash_: str, selector: str) -> Page:
    page = view.page
    page.goto(f"{view.url}/#{hash_}")
    # Studies come last, and this machine may be busy.
    page.locator(selector).first.wait_for(timeout=90_000)
    expect(page.locator(".tile .figure").first).not_to_be_empty()
    page.evaluate(read_axe())
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_screen(browser: Browser, demo: Running, scheme: str) -> None:
    found = {}
    for name, (hash_, selector) in SCREENS.items():
        with watching(browser, demo.url, color_scheme=scheme, reduced_motion="reduce") as view:
            page = open_with_axe(view, hash_, selector)
            if violations := find_violations(page):
                found[name] = violations
            view.picture(f"axe-{name.replace(' ', '-')}-{scheme}")
    assert not found


def test_axe_finds_nothing_in_the_sheets(view: Watched) -> None:
    found = {}
    page = open_with_axe(view, "range=all&panels=cpu", ".row")
    for name, key in SHEETS.items():
        page.keyboard.press(key)
        page.locator("dialog[open]").wait_for()
        expect(page.locator("dialog")).not_to_contain_text("loading ...")
        if violations := find_violations(page):
            found[name] = violations
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
    assert not found


@pytest.mark.parametrize("width", [320, 768, 1440, 2560])
def test_no_screen_is_wider_than_the_window(browser: Browser, demo: Running, width: int) -> None:
    with watching(browser, demo.url, viewport={"width": width, "height": 900}) as view:
        for name, (hash_, selector) in SCREENS.items():
            view.page.goto("about:blank")
            view.page.goto(f"{demo.url}/#{hash_}")
            view.page.locator(".panel canvas").first.wait_for()
            # The list is a sheet on a narrow screen.
            if selector != ".row":
                view.page.locator(selector).first.wait_for()
            wide, room = view.page.evaluate(
                "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert wide <= room, f"{name} is {wide} px wide in a window of {room} px"
