"""
Stories of generated nodes are found from the first screen with at most two clicks.

The script knows nobody: it reads what is on the screen, clicks each card, then
the page of each container in the list and its findings, and reads again. Who was
meant is looked up only in what was read. One story of each kind runs with the
real tests, all of them with `make soak`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.stories.catalogue import STORIES
from tests.stories.story import build_scene
from tests.web.browsing import Watched, running_viewer, watching

SEED = 4001
# Studies of a busy machine.
STUDY_MS = 180_000
READ = ".card, .row, .tile, .panel .sentence, .finding"


@dataclass(frozen=True)
class Told:
    """Who must be named, and the words that tell it, in one text on the screen."""

    who: str
    words: str


TOOK = r"took|takes|taken"
KILLED = r"OOM-killed|killed for memory"
HELD_BACK = r"throttled|held back"
GREW = r"grew|rising|rises|growing|grows|rose"
TOLD = {
    "neighbour-cpu": Told("etl", TOOK),
    "neighbour-cpu-job": Told("retrain", TOOK),
    "neighbour-cpu-churn": Told("etl", TOOK),
    "neighbour-disk": Told("compactor", TOOK + "|wrote|writes"),
    "neighbour-memory": Told("importer", TOOK),
    "neighbour-network": Told("mirrord", TOOK + "|sent|sends"),
    "crash-loop-is-old": Told("etl", TOOK),
    "cron-is-no-news": Told("etl", TOOK),
    "neighbour-ramps": Told("etl", TOOK),
    "victim-restarts": Told("etl", TOOK),
    "harmless-deploy-too": Told("etl", TOOK),
    "small-squeeze": Told("etl", TOOK),
    "brief-neighbour": Told("etl", TOOK),
    "decoy-before": Told("etl", TOOK),
    "no-pressure-counted": Told("etl", TOOK),
    "two-incidents": Told("compactor", TOOK + "|wrote|writes"),
    "noisy-neighbour-in-words": Told("etl", TOOK),
    "deploy-is-the-cause": Told("pricer", TOOK + "|deploy"),
    "scale-out-is-the-cause": Told("webfront", TOOK),
    "host-takes-cpu": Told("", r"nobody was seen|no container|outside"),
    "own-limit-incident": Told("encoder", HELD_BACK),
    "throttled-by-own-limit": Told("encoder", HELD_BACK),
    "who-is-throttled": Told("encoder", HELD_BACK),
    "limit-was-lowered": Told("encoder", HELD_BACK + "|limit"),
    "what-crash-loops": Told("migrator", r"restarts? |restarted \d+ times|again and again"),
    "oom-after-leak": Told("tokencache", KILLED),
    "who-was-oom-killed": Told("renderer", KILLED),
    "was-anything-evicted": Told("importer", TOOK + f"|{GREW}"),
    "anon-is-critical": Told("filesrv", r"limit"),
    "node-full": Told("", r"memory.* (8[89]|9[0-3])(\.\d+)? %"),
    "who-leaks": Told("mailer", GREW),
    "late-leak": Told("apigw", GREW),
    "slow-leak": Told("apigw", GREW),
    "crest-reaches-limit": Told("jvm", GREW + "|limit"),
    "period-7-minutes": Told("poller", r"every (7|6\.9\d*|7\.0\d*) min|every 4[12]\d(\.\d+)? s"),
    "what-spikes": Told("indexer", r"every \d|spike|burst|peak"),
}
# One for each thing that can be lacked, and for each way in which a container harms itself.
SELECTION = (
    "neighbour-cpu",
    "neighbour-disk",
    "neighbour-memory",
    "neighbour-network",
    "own-limit-incident",
    "oom-after-leak",
    "what-crash-loops",
)


def read_screen(page: Page) -> list[str]:
    return [re.sub(r"\s+", " ", text) for text in page.locator(READ).all_inner_texts() if text.strip()]


def open_first(view: Watched) -> Page:
    """An address without a choice; until panels are drawn and incidents were looked for."""
    view.page.goto("about:blank")
    view.page.goto(f"{view.url}/")
    view.page.wait_for_function(
        "() => document.querySelector('.incidents') && !/Looking for/.test(document.querySelector('.incidents').textContent)"
    )
    view.await_panels()
    return view.page


def await_studies(page: Page) -> None:
    """Until panels are drawn, and the drawer has said for a while that no study is under way."""
    page.evaluate("() => { window.calmSince = null; }")
    page.wait_for_function(
        """() => {
            const said = document.querySelector('.drawer [role=status]')?.textContent ?? 'studying';
            const isBusy = /studying|come first/.test(said) || document.querySelector('.panel .loading');
            window.calmSince = isBusy ? null : window.calmSince ?? performance.now();
            return window.calmSince !== null && performance.now() - window.calmSince > 1500;
        }"""
    )


def look_around(view: Watched) -> Iterator[tuple[int, list[str]]]:
    """How many clicks, and what was read then."""
    page = open_first(view)
    yield 0, read_screen(page)
    for number in range(page.locator(".incidents .card").count()):
        page.locator(".incidents .card").nth(number).click()
        view.await_panels()
        yield 1, read_screen(page)
    page = open_first(view)
    for number in range(page.locator(".containers .row").count()):
        page = open_first(view)
        row = page.locator(".containers li").nth(number)
        row.hover()
        row.locator(".to-page").click()
        view.await_panels()
        yield 1, read_screen(page)
        page.locator(".findings-opener").click()
        await_studies(page)
        yield 2, read_screen(page)


def is_told(story: str, texts: list[str]) -> bool:
    told = TOLD[story]
    name = rf"\b{re.escape(told.who)}(\b|-)" if told.who else ""
    return any(re.search(name, text) and re.search(told.words, text) for text in texts)


def find_story(browser: Browser, story: str, folder: Path) -> int | None:
    """After how many clicks it was read; None where it was not."""
    scene, _ = build_scene(STORIES[story], SEED, folder, is_small=True)
    with (
        running_viewer(folder / scene.node.name, folder / "output") as viewer,
        watching(browser, viewer.url) as view,
    ):
        view.page.set_default_timeout(STUDY_MS)
        return next((clicks for clicks, texts in look_around(view) if is_told(story, texts)), None)


@pytest.mark.real
@pytest.mark.parametrize("story", SELECTION)
def test_a_story_of_each_kind_is_found_within_two_clicks(
    browser: Browser, story: str, tmp_path: Path
) -> None:
    assert find_story(browser, story, tmp_path) is not None


@pytest.mark.soak
@pytest.mark.parametrize("story", [one for one in TOLD if one not in SELECTION])
def test_every_story_is_found_within_two_clicks(browser: Browser, story: str, tmp_path: Path) -> None:
    assert find_story(browser, story, tmp_path) is not None
