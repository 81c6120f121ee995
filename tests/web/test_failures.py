"""A viewer that fails, hangs or goes: said in words, with a way back."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.integration.agents import free_port
from tests.web.browsing import Running, running_viewer, watching

pytestmark = pytest.mark.real


@pytest.fixture
def own(demo_folder: Path, tmp_path: Path) -> Iterator[Running]:
    """A viewer that may be stopped."""
    with running_viewer(demo_folder, tmp_path / "output") as viewer:
        yield viewer


def test_a_server_that_is_busy_is_waited_for_and_not_asked_twice(browser: Browser, own: Running) -> None:
    with watching(browser, own.url, calm=False) as view:
        view.page.clock.install()
        page = view.open("range=all&panels=cpu")
        os.kill(own.process.pid, signal.SIGSTOP)
        try:
            page.keyboard.press("+")
            page.clock.run_for(1000)
            asked = view.asked.count("/api/timeseries")
            page.clock.run_for(40_000)
            expect(page.locator(".plot .corner")).to_contain_text("on their way, 4")
            expect(page.locator(".plot .trouble")).to_have_count(0)
            expect(page.locator(".chart canvas")).to_be_visible()
            assert view.asked.count("/api/timeseries") == asked, "the same was asked for again"
            view.picture("hangs")
            page.clock.run_for(100_000)
            expect(page.locator(".plot .trouble")).to_contain_text("no answer within 120 s")
            expect(page.locator(".plot .trouble")).to_contain_text(
                re.compile("tried again in|trying again now")
            )
        finally:
            os.kill(own.process.pid, signal.SIGCONT)
        page.locator(".plot .retry").click()
        expect(page.locator(".plot .trouble")).to_have_count(0)


def test_a_server_that_is_gone_comes_back(browser: Browser, demo_folder: Path, tmp_path: Path) -> None:
    port = free_port()
    with (
        running_viewer(demo_folder, tmp_path / "first", port=port) as first,
        watching(browser, first.url, calm=False) as view,
    ):
        page = view.open("range=all&panels=cpu")
        first.process.terminate()
        first.process.wait(30)
        page.keyboard.press("+")
        expect(page.locator(".plot .trouble")).to_contain_text("could not be reached")
        with running_viewer(demo_folder, tmp_path / "second", port=port):
            # Nobody presses anything: it tries again by itself.
            expect(page.locator(".plot .trouble")).to_have_count(0)


def test_a_wrong_metric_is_refused_with_the_nearest(browser: Browser, demo: Running) -> None:
    with watching(browser, demo.url, calm=False) as view:
        view.page.goto(f"{view.url}/#panels=memori")
        expect(view.page.locator(".plot .trouble")).to_contain_text("memory")
        expect(view.page.locator(".plot .retry")).to_be_visible()


@pytest.mark.parametrize(
    ("metric", "said"),
    [("nosuch", 'no metric "nosuch"'), ("processes", '"processes" was not collected here')],
)
def test_a_link_to_a_metric_that_is_none_leads_on(
    browser: Browser, demo: Running, metric: str, said: str
) -> None:
    """What is wrong on the node is told all the same, in words for people."""
    with watching(browser, demo.url, calm=False) as view:
        view.page.goto(f"{view.url}/#panels={metric}&range=all&containers=cache")
        expect(view.page.locator(".plot .trouble")).to_contain_text(said)
        assert "/api/" not in view.page.locator(".plot .trouble").inner_text()
        view.page.locator(".card").first.wait_for()
        view.page.get_by_role("button", name="show the usual panels").click()
        view.await_panels(3)
        expect(view.page.locator(".plot .trouble")).to_have_count(0)


def test_an_empty_range_says_so(browser: Browser, demo: Running) -> None:
    with watching(browser, demo.url) as view:
        view.page.goto(f"{view.url}/#panels=cpu&from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z")
        expect(view.page.locator(".plot .state")).to_contain_text("No sample of cpu in this range")
        view.page.get_by_role("button", name="show all there is").click()
        view.await_panels()
        expect(view.page.locator(".plot .state")).to_have_count(0)
