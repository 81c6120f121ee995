"""The buttons above the page, as `tests/image/server.py` presses them on the page of the image."""

import pytest
from playwright.sync_api import Browser
from tests.web.browsing import Running, watching
from tests.web.buttons import FILES, fetch_every_file, press_every_button

pytestmark = pytest.mark.real


def test_every_button_of_the_page_does_something(browser: Browser, demo: Running) -> None:
    with watching(browser, demo.url, accept_downloads=True) as view:
        page = view.open("range=5m&panels=cpu")
        assert len(press_every_button(page)) >= 7
        assert set(fetch_every_file(page)) == set(FILES)
