"""What is there before the first click."""

import httpx
import pytest
from playwright.sync_api import expect
from tests.web.browsing import Running, Watched

pytestmark = pytest.mark.real


def test_an_archive_opens_on_its_worst_incident(view: Watched) -> None:
    """Who, since when and how bad, before the first click; range, containers and panels show it."""
    page = view.open("")
    card = page.locator(".card.chosen")
    expect(card).to_contain_text("cache")
    expect(card).to_contain_text("killed for memory")
    assert 1 <= page.locator(".card").count() <= 5
    assert {"from", "to", "incident", "panels", "containers"} <= set(view.words())
    expect(page.locator(".panel h2").first).to_contain_text("memory")
    expect(page.locator(".panel").first.locator(".line .name")).to_have_text(["cache"])
    view.picture("incident")
    # Whom it is about is seen in the list, however far down it stands; no card is drawn without its frame.
    expect(page.locator(".side .row.chosen")).to_be_in_viewport()
    frames = page.locator(".card").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).borderLeftWidth)"
    )
    assert set(frames) == {"3px"}
    # The next card is one click away, and back is one key.
    before = view.words()["incident"]
    page.locator(".card:not(.chosen)").first.click()
    expect(page.locator(".card.chosen")).not_to_contain_text("killed for memory")
    assert view.words()["incident"] != before
    page.keyboard.press("Backspace")
    expect(page.locator(".card.chosen")).to_contain_text("killed for memory")


def test_the_first_view_answers_who_hurts(view: Watched) -> None:
    """Tiles, the busiest containers, CPU, memory and pressure, the events: with a range and nothing else."""
    page = view.open("range=1h")
    expect(page.locator(".tile")).to_have_count(4)
    expect(page.locator(".tile .figure").first).not_to_be_empty()
    titles = page.locator(".panel h2").all_inner_texts()
    assert [title.split(" (")[0] for title in titles] == ["cpu", "memory", "pressure cpu", "gpu utilization"]
    expect(page.locator(".panel").first.locator(".line")).to_have_count(8)
    assert page.locator(".row").count() >= 8
    expect(page.locator(".mark.oom")).to_have_count(1)
    for sentence in page.locator(".panel .sentence").all_inner_texts():
        assert sentence.endswith("."), sentence
    # Studies come after all else; this machine may be busy.
    expect(page.locator(".findings-opener.has")).to_be_visible(timeout=90_000)
    view.picture("first-view")


def test_the_list_is_sorted_and_says_who_died(view: Watched) -> None:
    page = view.open("sort=memory")
    values = page.locator(".row .value").all_inner_texts()
    measured = [value for value in values if value != "not measured"]
    assert measured == sorted(measured, key=in_bytes, reverse=True)
    expect(page.locator(".row", has=page.get_by_text("cache", exact=True))).to_contain_text(
        "OOM killed, runs again"
    )


def in_bytes(text: str) -> float:
    number, unit = text.split()
    return float(number) * float(1024 ** ["B", "KiB", "MiB", "GiB"].index(unit))


def test_a_policy_is_set_and_nothing_inline_runs(demo: Running, view: Watched) -> None:
    policy = httpx.get(f"{demo.url}/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    page = view.open()
    blocked = page.evaluate(
        """() => new Promise(done => {
            document.addEventListener('securitypolicyviolation', event => done(event.violatedDirective), {once: true});
            const script = document.createElement('script');
            script.textContent = 'window.broken = 1';
            document.body.append(script);
            setTimeout(() => done('it ran'), 2000);
        })"""
    )
    assert blocked.startswith("script-src")
    view.complaints.clear()


def test_every_request_stays_here(view: Watched) -> None:
    """The teardown of every test checks it too; here at least the questions are known."""
    view.open("range=1h")
    assert {"/api/instance", "/api/metrics", "/api/containers", "/api/timeseries"} <= set(view.asked)
    assert not view.foreign


def test_the_first_picture_is_asked_for_alone(view: Watched) -> None:
    """What stands beside it is asked for when it is there."""
    view.open("range=1h")
    asked = [path for path in view.asked if path.startswith("/api/")]
    first = asked.index("/api/timeseries")
    beside = ("/api/containers", "/api/summary", "/api/events")
    assert set(asked[:first]) - {"/api/health"} == {
        "/api/instance",
        "/api/metrics",
        "/api/studies",
        "/api/filters",
    }
    assert all(asked.index(path) > first for path in beside)
