"""Studies as findings: run each, click one, see it on the chart."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.web.browsing import Watched

pytestmark = pytest.mark.real

# Of the demo's stories: who, in which metric, is found by which study.
STORIES = [
    ("changepoint", "memory", "api", "rose from"),
    ("periodicity", "cpu", "report-cron", "repeats every"),
    ("trend", "memory", "cache", "up to its limit"),
]


def choose(page: Page, name: str) -> None:
    """The first life of a container: the one that was there from the start."""
    page.locator(".row", has=page.get_by_text(name, exact=True)).last.click()
    expect(page.locator(".line")).to_have_count(1)


@pytest.mark.parametrize(("study", "metric", "name", "words"), STORIES)
def test_a_finding_is_told_zoomed_to_and_drawn(
    view: Watched, study: str, metric: str, name: str, words: str
) -> None:
    page = view.open(f"range=all&panels={metric}&sort=memory")
    choose(page, name)
    page.keyboard.press("s")
    page.locator(f".study[data-study={study}]").click()
    finding = page.locator(f".finding.{study}").first
    expect(finding).to_contain_text(words)
    expect(finding).to_contain_text(" %")
    finding.click()
    expect(finding).to_have_attribute("aria-pressed", "true")
    assert study in view.words()["finding"]
    assert {"from", "to"} <= set(view.words())
    page.wait_for_load_state("networkidle")
    view.picture(f"study-{study}")
    marked = view.pixels()
    page.keyboard.press("Escape")
    page.wait_for_function(
        "before => document.querySelector('.chart canvas').toDataURL() !== before", arg=marked
    )


def test_every_study_runs_and_says_what_came_of_it(view: Watched) -> None:
    page = view.open("range=all&panels=memory&drawer=studies")
    # The drawer is a file of its own, fetched when it is opened.
    expect(page.locator(".study").first).to_be_visible()
    names = page.eval_on_selector_all(".study", "all => all.map(one => one.dataset.study)")
    words = page.locator(".study").all_inner_texts()
    assert "changepoint" not in words, "a person reads words"
    assert {"all", "periodicity", "changepoint", "trend", "summary", "anomaly", "correlation"} <= set(names)
    for name in names:
        with page.expect_response(re.compile(rf"/api/study/{name}\b")) as answer:
            page.locator(f".study[data-study={name}]").click()
            # The view may have it already: then it is asked again.
            if name == names[0]:
                page.locator(f".study[data-study={names[1]}]").click()
                page.locator(f".study[data-study={name}]").click()
        assert answer.value.ok
        expect(page.locator(".study[aria-pressed=true]")).to_have_attribute("data-study", name)
        said = page.locator(".finding, .silent, .drawer p[role=status]:not(:empty)")
        expect(said.first).to_be_visible()


def test_the_panel_says_the_finding_that_matters(view: Watched) -> None:
    page = view.open("range=all&panels=memory&sort=memory")
    choose(page, "cache")
    expect(page.locator(".panel .sentence")).to_contain_text("up to its limit")
    expect(page.locator(".panel .sentence")).to_have_attribute("aria-live", "polite")


def test_events_are_on_the_axis_and_zoom(view: Watched) -> None:
    page = view.open("range=all&panels=memory")
    mark = page.locator(".mark.oom")
    expect(mark).to_have_attribute("title", re.compile("memory"))
    mark.click()
    killed = view.await_window("to - from < 600")
    # The killed life and the one after it, alone, and the limit that was reached.
    expect(page.locator(".line .name")).to_have_text(["cache"])
    answer = page.evaluate("""async () => {
        const words = new URLSearchParams(location.hash.slice(1));
        const asked = new URLSearchParams({metric: 'memory', lives: 'joined', containers: words.get('containers'), from: words.get('from'), to: words.get('to')});
        return (await fetch(`/api/timeseries?${asked}`)).json();
    }""")
    (series,) = answer["series"]
    assert len(series["lives"]) == 2
    assert max(value for value in series["max"] if value) >= 0.9 * series["limit"]
    event = page.evaluate(
        "async () => (await (await fetch('/api/events?range=all')).json()).events.find(one => one.kind === 'oom').at"
    )
    assert killed[0] < event < killed[1]


def test_the_page_compares_and_counts_in_the_words_of_its_api(view: Watched) -> None:
    """The same sentences as the command line and agents have."""
    page = view.open("range=10m&panels=cpu")
    span = page.locator(".chart").first
    expect(span).to_have_attribute("data-to", re.compile(r"\d"))
    page.keyboard.press("s")
    with page.expect_response(lambda answer: "/api/compare" in answer.url) as asked:
        page.get_by_role("button", name="compare with the same time before").click()
    told = page.locator(".compared [role=status]")
    expect(told).to_have_text(asked.value.json()["sentence"])
    expect(told).to_contain_text("figures of the workloads of")
    listed = page.request.get(f"{page.url.split('#')[0]}api/containers?metric=none&range=10m").json()
    expect(page.get_by_text(listed["sentence"])).to_be_visible()
