"""
What is planted in the demo is found from the first screen with at most two clicks.

The script knows no container: it reads what is on the screen, clicks a card or
a row that it sees, then the findings, and reads again. Only in the end it looks
up what was planted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.web.archives import END_MS
from tests.web.browsing import Watched

from nodescope.keep.demo.plan import plan_node
from nodescope.keep.demo.story import DemoRequest

pytestmark = pytest.mark.real

STUDY_MS = 120_000
# By the kind in truth.json: the words that tell it.
TOLD = {
    "leak": r"grew|rising|rises|growing",
    "oom_kill": r"OOM-killed|killed for memory",
    "throttling": r"throttled|held back",
    "cron_spikes": r"every (5|4\.9\d*|5\.0\d*) min|every 300 s",
    "deploy_step": r"rose|changed|went (up )?from|instead of",
    "crash_loop": r"restarted \d+ times|\d+ restarts",
    "gpu_job": r"rose|changed|went (up )?from",
}


@dataclass(frozen=True)
class ReadText:
    """A sentence, and after how many clicks it was read."""

    clicks: int
    text: str


def read_screen(page: Page) -> list[str]:
    """What a person reads as sentences: cards, rows with their notes, headlines, findings."""
    found = page.locator(".card, .row, .panel .sentence, .finding").all_inner_texts()
    return [re.sub(r"\s+", " ", text) for text in found if text.strip()]


def await_studies(page: Page) -> None:
    """The drawer says while a study is under way, or has not begun."""
    page.wait_for_function(
        """() => {
            const said = document.querySelector('.drawer [role=status]')?.textContent ?? 'studying';
            const isBusy = /studying|come first/.test(said) || document.querySelector('.panel .loading');
            window.calmSince = isBusy ? null : window.calmSince ?? performance.now();
            return window.calmSince !== null && performance.now() - window.calmSince > 1500;
        }"""
    )


def look_around(view: Watched) -> Iterator[ReadText]:
    """The first screen, then each row's page and the findings there."""
    view.page.set_default_timeout(STUDY_MS)
    page = view.open("")
    yield from (ReadText(0, text) for text in read_screen(page))
    for number in range(page.locator(".containers .row").count()):
        page = view.open("")
        row = page.locator(".containers li").nth(number)
        row.hover()
        row.locator(".to-page").click()
        view.await_panels()
        page.evaluate("() => { window.calmSince = null; }")
        page.locator(".findings-opener").click()
        await_studies(page)
        yield from (ReadText(2, text) for text in read_screen(page))


def is_told(kind: str, container: str, read: ReadText) -> bool:
    is_named = re.search(rf"\b{re.escape(container)}\b", read.text) is not None
    return is_named and re.search(TOLD[kind], read.text) is not None


def test_every_story_is_found_within_two_clicks(view: Watched) -> None:
    planted = read_truth()
    missing = dict(planted)
    clicks: dict[str, int] = {}
    for read in look_around(view):
        for name in [kind for kind, container in missing.items() if is_told(kind, container, read)]:
            clicks[name] = read.clicks
            del missing[name]
        if not missing:
            break
    assert not missing, f"not found within two clicks: {missing}; found: {clicks}"
    assert max(clicks.values()) <= 2


def read_truth() -> dict[str, str]:
    """By kind: the container that it was planted in."""
    plan = plan_node(DemoRequest(Path(), 1.0, 10, 7, END_MS, "demo-1"))
    return {str(one["kind"]): str(one["container"]) for one in plan.truth}
