"""The sheet of right-sizing: a table of what to change, the patch, and what is said where there is none yet."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, expect
from tests.integration.agents import free_port
from tests.stories.generate.archive import write_archive
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import StoryNode
from tests.web.archives import END_MS, IMAGE, LONG
from tests.web.browsing import Running, Watched, running_viewer, watching
from tests.web.test_reach import LOW_CONTRAST

pytestmark = pytest.mark.real

SECONDS = 25 * 3600
HARM = f"{IMAGE}\u202e{LONG}"


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A day of workloads with too much, killed for memory, without requests, and with a bad name; two hours of another."""
    node = StoryNode("node-a", 5, SECONDS, END_MS, cores=8)
    node.run(Workload("web", "Deployment", "shop", 4, 4 * GIB, 4, 4 * GIB), 2, cpu=0.4, anon=300 * MIB)
    small = Workload("parser", "StatefulSet", "shop", memory_limit=256 * MIB, memory_request=256 * MIB)
    (first,) = node.run(small, end=SECONDS // 2, cpu=0.1, anon=200 * MIB)
    first.is_killed = True
    node.again(first, SECONDS // 2 + 5, cpu=0.1, anon=200 * MIB)
    node.run(Workload("bare", "DaemonSet", "kube-system"), cpu=0.05, anon=60 * MIB)
    node.run(Workload("young", "Deployment", "shop", 1, GIB, 1, GIB), start=SECONDS - 7200, cpu=0.1)
    node.run(Workload(HARM, "Deployment", "shop", 1, GIB), cpu=0.05, anon=60 * MIB)
    folder = tmp_path_factory.mktemp("sizes") / "node-a"
    write_archive(folder, node, is_short=True)
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


def row_of(page: Page, workload: str) -> Locator:
    return page.locator(".sizes tbody tr", has=page.get_by_text(workload, exact=True))


def cells_of(page: Page, workload: str) -> dict[str, str]:
    """A row by the heads of its columns."""
    heads = page.locator(".sizes thead th").all_inner_texts()
    return dict(zip(heads, row_of(page, workload).locator("th, td").all_inner_texts(), strict=True))


def test_the_table_says_what_to_set_what_it_saves_and_the_risk(browser: Browser, sizes: Running) -> None:
    with watching(browser, sizes.url) as view:
        page = view.open("tz=utc")
        page.get_by_role("button", name="right-sizing").click()
        expect(page.locator(".headline")).to_contain_text(
            "4 of 5 containers should be sized otherwise, which saves"
        )
        expect(page.locator(".sizes tbody tr")).to_have_count(5)
        web = cells_of(page, "shop/web")
        assert "2 replicas" in web["workload, container"]
        assert web["CPU request"].startswith("4 cores →")
        assert web["memory limit"].startswith("4 GiB →")
        assert web["saved cores"].endswith(" cores")
        assert web["saved memory"].endswith(" GiB")
        assert web["risk, or why not"].startswith("Risk: ")
        parser = cells_of(page, "shop/parser")
        assert parser["memory limit"].startswith("256 MiB →")
        assert parser["memory limit"].endswith("384 MiB")
        assert "OOM-killed" in parser["risk, or why not"]
        bare = cells_of(page, "kube-system/bare")
        assert bare["CPU request"].startswith("none →")
        assert bare["saved cores"] == "no request now"
        young = cells_of(page, "shop/young")
        assert young["CPU request"] == "1 cores"
        assert young["saved cores"] == ""
        assert young["risk, or why not"].startswith("not yet: less than a day was seen; from 20")
        # At this width nothing has to be scrolled to: the risk is the last column.
        assert page.locator(".sizes").evaluate("one => one.scrollWidth <= one.clientWidth")
        view.picture("rightsize")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        assert "sheet" not in view.words()


def test_the_patch_is_shown_and_copied(browser: Browser, sizes: Running) -> None:
    with watching(browser, sizes.url, permissions=["clipboard-read", "clipboard-write"]) as view:
        page = view.open()
        # An archive goes to its worst incident first.
        page.wait_for_load_state("networkidle")
        page.keyboard.press("r")
        page.get_by_text("YAML patch").click()
        assert view.words()["sheet"] == "rightsize"
        page.get_by_role("button", name="copy", exact=True).click()
        expect(page.locator(".copy [role=status]")).to_have_text("copied")
        copied = page.evaluate("() => navigator.clipboard.readText()")
        assert copied == page.locator(".patch pre").evaluate("one => one.textContent")
        patches = {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(copied) if one}
        assert patches == {("Deployment", "web"), ("StatefulSet", "parser"), ("DaemonSet", "bare")}
        view.picture("rightsize-patch")


def test_a_link_opens_it_and_it_can_be_read_narrow_and_dark(browser: Browser, sizes: Running) -> None:
    size = {"width": 320, "height": 640}
    with watching(browser, sizes.url, viewport=size, color_scheme="dark") as view:
        page = view.open("panels=cpu&sheet=rightsize")
        expect(row_of(page, "shop/web")).to_be_visible()
        view.no_sideways()
        assert page.locator("dialog").evaluate("one => one.scrollWidth <= one.clientWidth")
        assert page.evaluate(LOW_CONTRAST) == []
        view.picture("rightsize-narrow")


def test_less_than_a_day_is_not_yet(view: Watched) -> None:
    page = view.open("sheet=rightsize")
    expect(page.locator(".headline")).to_contain_text("Not yet: none of")
    expect(page.locator(".sizes tbody tr").first).to_contain_text("not yet: less than a day was seen")
    expect(page.locator(".patch")).to_have_count(0)
    view.picture("rightsize-not-yet")


def test_a_node_without_containers_says_so(browser: Browser, tmp_path: Path) -> None:
    write_archive(tmp_path / "node-b", StoryNode("node-b", 5, 600, END_MS, cores=8), is_short=True)
    with (
        running_viewer(tmp_path / "node-b", tmp_path / "output") as viewer,
        # The panels of this archive have nothing to draw, and are refused.
        watching(browser, viewer.url, calm=False) as view,
    ):
        view.page.goto(f"{view.url}/#sheet=rightsize")
        expect(view.page.locator(".headline")).to_have_text("There is no container to size in this span.")
        expect(view.page.locator("dialog .state")).to_contain_text("No container was recorded")
        expect(view.page.locator(".sizes, .patch, dialog .trouble")).to_have_count(0)
        assert not [one for one in view.complaints if one.startswith("uncaught")]


def test_a_name_made_to_harm_is_text(browser: Browser, sizes: Running) -> None:
    with watching(browser, sizes.url) as view:
        page = view.open("panels=cpu&sheet=rightsize")
        page.get_by_text("YAML patch").click()
        expect(page.locator(".sizes tbody tr", has_text="shop/<img src=x onerror=")).to_have_count(1)
        # Kubernetes would not allow it: the patch has it in a comment only.
        expect(page.locator(".patch pre")).to_contain_text("not a name that Kubernetes allows")
        shown = page.locator("dialog").inner_text()
        assert "\u202e" not in shown
        assert LONG not in shown
        assert page.evaluate("() => window.broken") is None
        assert page.locator("dialog script, dialog img").count() == 0


def test_a_slow_answer_is_waited_for(browser: Browser, demo_folder: Path, tmp_path: Path) -> None:
    with running_viewer(demo_folder, tmp_path / "output") as own, watching(browser, own.url) as view:
        page = view.open("range=all&panels=cpu")
        os.kill(own.process.pid, signal.SIGSTOP)
        try:
            page.keyboard.press("r")
            expect(page.locator("dialog [role=status]")).to_contain_text("Reading the last seven days")
        finally:
            os.kill(own.process.pid, signal.SIGCONT)
        expect(page.locator(".headline")).to_contain_text("Not yet")
        expect(page.locator("dialog .loading")).to_have_count(0)


def test_a_viewer_that_is_gone_is_told_and_asked_again(
    browser: Browser, demo_folder: Path, tmp_path: Path
) -> None:
    port = free_port()
    with (
        running_viewer(demo_folder, tmp_path / "first", port=port) as first,
        watching(browser, first.url, calm=False) as view,
    ):
        page = view.open("range=all&panels=cpu")
        first.process.terminate()
        first.process.wait(30)
        page.keyboard.press("r")
        expect(page.locator("dialog .trouble")).to_contain_text("/api/rightsize could not be reached")
        view.picture("rightsize-trouble")
        with running_viewer(demo_folder, tmp_path / "second", port=port):
            expect(page.locator(".headline")).to_contain_text("Not yet")
            expect(page.locator("dialog .trouble")).to_have_count(0)
