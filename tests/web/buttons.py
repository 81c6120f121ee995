"""Every button above the page pressed, and every file that it offers fetched: on a viewer, and on that of the image."""

from pathlib import Path

from playwright.sync_api import Page, expect

FILES = ("CSV of what is drawn", "PNG of all panels", "CSV, every sample", "Parquet", "HTML, opens offline")
# The least that each kind of file has at its begin.
BEGINS = {"csv": b"", "png": b"\x89PNG", "parquet": b"PAR1", "html": b"<!"}
# Of the buttons that open something, a word of each: a page without them is not the one that is meant.
OPENS = ("right-sizing", "views", "export", "? keys")


def press_every_button(page: Page) -> list[str]:
    """The names of what was pressed; each sheet that opens is closed again."""
    buttons = page.locator("header.top .top-tools button")
    pressed = []
    for index in range(buttons.count()):
        button = buttons.nth(index)
        name = button.get_attribute("aria-label") or button.inner_text()
        button.click()
        if name in OPENS:
            expect(page.locator("dialog, .sheet").first).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open], .sheet")).to_have_count(0)
        pressed.append(name)
    assert set(OPENS) <= set(pressed), pressed
    return pressed


def fetch_every_file(page: Page) -> dict[str, int]:
    """The size of each file of the export sheet."""
    page.keyboard.press("e")
    sizes = {}
    for name in FILES:
        button = page.get_by_role("button", name=name, exact=True).or_(
            page.get_by_role("link", name=name, exact=True)
        )
        with page.expect_download() as coming:
            button.click()
        content = Path(coming.value.path()).read_bytes()
        kind = coming.value.suggested_filename.rpartition(".")[2]
        assert content.startswith(BEGINS[kind]), (name, kind, content[:80])
        assert len(content) > 100, (name, len(content))
        sizes[name] = len(content)
    return sizes
