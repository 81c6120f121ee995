"""One chromium and one viewer for all tests of the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.web.archives import write_demo, write_hostile
from tests.web.browsing import Running, Watched, running_chromium, running_viewer, watching


# Not for longer than one file of tests: Playwright leaves a loop running in its thread, beside which
# no other test of the same worker could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of ten containers, with the stories of the demo."""
    return write_demo(tmp_path_factory.mktemp("web") / "demo")


@pytest.fixture(scope="session")
def demo(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_viewer(demo_folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = write_hostile(tmp_path_factory.mktemp("hostile") / "demo")
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


@pytest.fixture
def view(browser: Browser, demo: Running) -> Iterator[Watched]:
    with watching(browser, demo.url) as watched:
        yield watched


@pytest.fixture
def demo_page_in_kolkata(browser: Browser, demo: Running) -> Iterator[Watched]:
    with watching(browser, demo.url, timezone_id="Asia/Kolkata") as watched:
        yield watched
