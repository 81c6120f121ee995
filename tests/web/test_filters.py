"""Filters and choices reach everything that is shown; what cannot be shown says why, with a way on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.web.archives import END_MS, write_demo
from tests.web.browsing import Running, Watched, running_viewer, watching

pytestmark = pytest.mark.real


def test_a_filter_in_the_address_reaches_panels_tiles_and_events(view: Watched) -> None:
    page = view.open("namespace=media&panels=cpu,memory&range=all")
    for index in range(2):
        expect(page.locator(".panel").nth(index).locator(".line .name")).to_have_text(["encoder"])
    expect(page.locator(".tile.cpu .title")).to_contain_text("1 container")
    expect(page.locator(".tile.containers .figure")).to_have_text("1")
    expect(page.locator(".mark.oom")).to_have_count(0)
    expect(page.locator(".row .name")).to_have_text(["encoder"])


def test_a_filter_that_admits_nobody_is_not_taken_for_a_range_without_samples(view: Watched) -> None:
    page = view.page
    page.goto(f"{view.url}/#search=zzzz&range=all&panels=cpu,memory")
    expect(page.locator(".plot .state")).to_have_count(2)
    expect(page.locator(".plot .state").first).to_contain_text(
        "No container of this filter is in this range."
    )
    none = "No container of this filter is in this range."
    expect(page.locator(".panel .sentence")).to_have_text([none, none])
    page.locator(".plot .state").first.get_by_role("button", name="clear the filters").click()
    view.await_panels(2)
    expect(page.locator(".plot .state")).to_have_count(0)


def test_a_dashboard_of_a_team_shows_the_team(view: Watched) -> None:
    board = (
        '{"schema_version":1,"name":"x","panels":[{"metric":"memory","title":"what ${TEAM} holds"}],'
        '"time_range":{"range":"all"},"containers":{"namespace":"${TEAM}"}}'
    )
    page = view.open(f"dashboard={board}&team=media")
    expect(page.locator(".line .name")).to_have_text(["encoder"])


def test_one_shown_alone_is_fetched_by_every_panel_and_is_in_the_address(view: Watched) -> None:
    """The largest of one panel may not be among the largest of another."""
    page = view.open("panels=memory,disk_write&range=all")
    name = page.locator(".panel").first.locator(".line .name").last.inner_text()
    page.locator(".panel").first.locator(".line").last.click()
    for index in range(2):
        shown = page.locator(".panel").nth(index).locator(".line:not(.off) .name")
        expect(shown).to_have_text([name])
    assert len(view.words()["only"]) == 12
    page.reload()
    view.await_panels(2)
    expect(page.locator(".panel").first.locator(".line:not(.off) .name")).to_have_text([name])
    page.keyboard.press("Escape")
    expect(page.locator(".line.off")).to_have_count(0)
    assert "only" not in view.words()


def test_the_same_metric_twice_is_one_panel(view: Watched) -> None:
    view.page.goto(f"{view.url}/#panels=cpu,memory,cpu&range=all")
    view.await_panels(2)
    expect(view.page.locator(".panel")).to_have_count(2)


def test_a_range_that_is_none_is_refused_by_name(view: Watched) -> None:
    view.page.goto(f"{view.url}/#range=99y&panels=cpu")
    expect(view.page.locator(".notice")).to_contain_text("range=99y is not a range; accepted: 15m")


def test_a_link_to_a_container_that_is_gone_leads_on(browser: Browser, demo: Running) -> None:
    with watching(browser, demo.url, calm=False) as view:
        page = view.page
        page.goto(f"{view.url}/#panels=cpu&range=all&containers=ffffffffffff")
        expect(page.locator(".plot .trouble")).to_contain_text('no container "ffffffffffff"')
        page.get_by_role("button", name="show the busiest").click()
        view.await_panels()
        expect(page.locator(".line")).to_have_count(8)


def test_a_crash_loop_says_its_restarts(view: Watched) -> None:
    page = view.open("panels=cpu&range=all")
    row = page.locator(".row", has=page.get_by_text("migrator", exact=True))
    expect(row).to_have_count(1)
    expect(row).to_contain_text(re.compile(r"\d+ restarts"))


def test_a_sentence_is_about_a_time_that_is_shown(view: Watched) -> None:
    """The leak of the cache ends at its kill; before the archive's last minutes nothing of it is said."""
    page = view.open("range=all&panels=memory&sort=memory")
    page.locator(".row", has=page.get_by_text("cache", exact=True)).click()
    expect(page.locator(".panel .sentence")).to_contain_text("up to its limit")
    page.evaluate(
        "([from, to]) => { const words = new URLSearchParams(location.hash.slice(1)); words.delete('range'); words.set('from', from); words.set('to', to); location.hash = words; }",
        [str(END_MS / 1000 - 60), str(END_MS / 1000)],
    )
    view.await_window("to - from < 100")
    assert "up to its limit" not in page.locator(".panel .sentence").inner_text()


def test_two_browsers_show_a_container_in_one_colour(browser: Browser, demo: Running) -> None:
    """Whatever each of them has shown before, in every panel, and whoever is drawn beside it."""
    colour = "one => getComputedStyle(one.querySelector('.key')).borderTopColor"
    found: list[set[tuple[str, str]]] = []
    for hashes in (
        ["panels=memory,cpu&range=all"],
        ["panels=disk_write&range=5m", "panels=memory&range=15m"],
        ["panels=memory&range=all&namespace=platform"],
    ):
        with watching(browser, demo.url) as view:
            for hash_ in hashes:
                view.page.goto("about:blank")
                page = view.open(hash_)
            lines = page.locator(".line").all()
            found.append({(one.locator(".name").inner_text(), one.evaluate(colour)) for one in lines})
    assert min(len(one) for one in found) > 2
    given = set.union(*found)
    assert len(given) == len({name for name, _ in given}), f"one name, two colours: {sorted(given)}"


def test_titles_are_in_the_zone_that_was_chosen(demo_page_in_kolkata: Watched) -> None:
    view = demo_page_in_kolkata
    page = view.open("range=all&panels=memory")
    mark = page.locator(".mark.oom")
    expect(mark).to_have_attribute("title", re.compile("GMT\\+5:30"))
    page.keyboard.press("u")
    expect(mark).to_have_attribute("title", re.compile(r"\d\d:\d\d:\d\d UTC"))


def test_what_is_seen_is_in_the_name_of_every_control(view: Watched) -> None:
    """Who speaks to the page says what is written (WCAG 2.5.3)."""
    page = view.open("range=all&drawer=findings")
    page.locator(".card").first.wait_for()
    wrong = page.evaluate(
        """() => [...document.querySelectorAll('button[aria-label], a[aria-label]')].filter(one => {
            const words = text => text.replace(/[^\\p{L}\\p{N}]+/gu, ' ').trim().toLowerCase();
            const seen = words(one.innerText);
            const said = words(one.getAttribute('aria-label'));
            return seen.length > 1 && !said.includes(seen);
        }).map(one => one.outerHTML.slice(0, 200))"""
    )
    assert wrong == []


def test_an_empty_folder_names_no_time(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with (
        running_viewer(tmp_path / "empty", tmp_path / "output") as viewer,
        watching(browser, viewer.url, calm=False) as view,
    ):
        view.page.goto(view.url)
        expect(view.page.locator("main")).to_contain_text("There are no samples")
        assert "1970" not in view.page.locator("body").inner_text()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("nodes")
    for name in ("demo-1", "demo-2"):
        write_demo(folder / name, hours=1 / 6, containers=4, node=name)
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


def test_names_have_their_node_where_there_are_several(browser: Browser, nodes: Running) -> None:
    with watching(browser, nodes.url) as view:
        page = view.open("panels=cpu&range=all")
        names = page.locator(".line .name").all_inner_texts()
        assert all("demo-1" in name or "demo-2" in name for name in names), names
        assert len(set(names)) == len(names)
        expect(page.locator(".panel .sentence")).to_contain_text(re.compile("on demo-[12]"))
        assert all("demo-" in name for name in page.locator(".row .name").all_inner_texts())


def test_a_damaged_file_is_said_although_the_panel_is_not_empty(browser: Browser, tmp_path: Path) -> None:
    folder = write_demo(tmp_path / "demo", hours=1 / 3, containers=4)
    files = sorted(folder.glob("dt=*/identifier=*/*.parquet"))
    broken = files[len(files) // 2]
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    with running_viewer(folder, tmp_path / "output") as viewer, watching(browser, viewer.url) as view:
        page = view.open("panels=memory&range=all")
        expect(page.locator(".plot .damaged")).to_contain_text("cannot be read")
        expect(page.locator(".chart canvas")).to_be_visible()
        view.picture("damaged")


def test_tile_curves_have_one_height(view: Watched) -> None:
    page = view.open("range=all&panels=cpu")
    page.locator(".tile .spark").first.wait_for()
    sizes = page.eval_on_selector_all(
        ".tile .spark",
        "all => all.map(one => [one.getBoundingClientRect().width, one.getBoundingClientRect().height])",
    )
    assert len(sizes) == 3
    assert len({tuple(size) for size in sizes}) == 1


def test_a_phone_has_the_answer_first(browser: Browser, demo: Running) -> None:
    """The worst incident begins in the first eighth of the screen, and the tiles are on it."""
    size = {"width": 390, "height": 844}
    with watching(browser, demo.url, viewport=size, has_touch=True, is_mobile=True) as view:
        page = view.open("")
        tiles = page.locator(".tiles").bounding_box()
        card = page.locator(".card").first.bounding_box()
        assert card
        assert card["y"] < 844 / 8
        assert tiles
        assert tiles["y"] + tiles["height"] < 844
        view.no_sideways()
        view.picture("phone")
