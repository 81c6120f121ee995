"""The live tail of a real agent: it advances, pauses, goes on, and says when it is lost."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.integration.agents import Agent, running_agent, wait_for
from tests.web.browsing import watching

pytestmark = pytest.mark.real

# Every Linux machine has these; the machine of the test may have no container.
PANELS = "panels=node:cpu.load_1m,node:memory.MemAvailable"


@pytest.fixture(scope="module")
def everything() -> Iterator[tuple[Agent, str]]:
    with running_agent("--no-kubernetes", command="up") as agent:
        words = wait_for(
            lambda: [word for word in agent.printed().split() if word.startswith("http://")],
            "up prints its addresses",
        )
        yield agent, words[0].rstrip("/")


def test_the_tail_advances_pauses_and_goes_on(browser: Browser, everything: tuple[Agent, str]) -> None:
    with watching(browser, everything[1]) as view:
        page = view.open(PANELS)
        expect(page.locator(".live.on")).to_contain_text("behind")
        first = view.window()
        assert first[1] - first[0] < 600, "a young agent is not one pixel of fifteen minutes"
        second = view.await_window("to > given", first[1] + 2)
        assert second[1] - second[0] >= first[1] - first[0]
        view.picture("live")

        page.keyboard.press("l")
        expect(page.locator(".live.paused")).to_have_text("paused")
        held = view.window()
        assert {"from", "to"} <= set(view.words())
        page.keyboard.press("l")
        view.await_window("to > given", held[1] + 1)
        expect(page.locator(".live.on")).to_be_visible()


def test_a_page_of_the_node_alone_is_live(browser: Browser, everything: tuple[Agent, str]) -> None:
    """Plain names that containers have, too, of the node; and more panels than once fitted into a stream."""
    more = ",".join(
        f"node:memory.{name}"
        for name in ("MemFree", "Buffers", "Cached", "Active", "Inactive", "Dirty", "Slab")
    )
    with watching(browser, everything[1]) as view:
        page = view.open(f"panels=node:cpu,node:memory,{more}")
        expect(page.locator(".live.on")).to_contain_text("behind")
        first = view.window()
        view.await_window("to > given", first[1] + 4)
        expect(page.locator(".live.on")).to_contain_text("behind")


def test_a_lost_tail_says_how_old_the_newest_sample_is(browser: Browser) -> None:
    with running_agent("--no-kubernetes", command="up") as agent:
        words = wait_for(
            lambda: [word for word in agent.printed().split() if word.startswith("http://")],
            "up prints its addresses",
        )
        with watching(browser, words[0].rstrip("/"), calm=False) as view:
            page = view.open(PANELS)
            expect(page.locator(".live.on")).to_be_visible()
            agent.process.terminate()
            agent.process.wait(30)
            expect(page.locator(".live.lost")).to_contain_text("newest sample is")
            view.picture("live-lost")
