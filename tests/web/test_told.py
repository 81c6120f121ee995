"""What the watcher of a real agent finds is a card on a page that is open: it comes, it goes, and a lost viewer moves nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.integration.agents import Agent, free_port, running_agent, wait_for
from tests.nodes.pods import WEB
from tests.support import copy_node
from tests.web.browsing import running_viewer, watching
from tests.web.test_axe import find_violations, read_axe
from tests.web.test_reach import LOW_CONTRAST

pytestmark = pytest.mark.real

# The watcher looks every ten seconds, the viewer every five; a slow machine does both late.
TOLD_MS = 120_000
PANELS = "panels=memory"


@dataclass
class WatchedNode:
    """An agent on a node whose files a test may change, and its data folder."""

    agent: Agent
    root: Path
    data: Path

    def kill(self) -> str:
        """One more process of a container was killed for memory; the id of what the watcher makes of it."""
        (path,) = self.root.glob(f"sys/fs/cgroup/**/*{WEB.container('app')}*/memory.events")
        text = path.read_text()
        path.write_text(text.replace("oom_kill 0", "oom_kill 1"))
        assert text != path.read_text()
        (found,) = wait_for(lambda: self.agent.get("/findings").json()["findings"], "the finding", 120)
        return str(found["id"])

    def say_no_problem(self, finding: str) -> None:
        said = {"id": finding, "verdict": "not_a_problem"}
        self.agent.client.post("/findings", json=said).raise_for_status()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[WatchedNode]:
    root, data = copy_node("cgroup2-systemd", tmp_path / "root"), tmp_path / "data"
    with running_agent("--root", str(root), "--data", str(data), "--no-kubernetes") as agent:
        wait_for(lambda: agent.get("/status").json()["watcher"]["looks"] > 0, "the first look", 120)
        yield WatchedNode(agent, root, data)


def positions(page: Page) -> list[list[float]]:
    """Where everything large is on the screen."""
    found: list[list[float]] = page.eval_on_selector_all(
        ".tiles, .incidents, .incidents .now, .card, .side, .main, .panel",
        "all => all.map(one => { const box = one.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })",
    )
    return found


def test_a_finding_comes_to_an_open_page_and_goes(
    browser: Browser, node: WatchedNode, tmp_path: Path
) -> None:
    """Without a reload, over a viewer that goes away and comes back meanwhile; one line says how the node is."""
    port = free_port()
    flags = ("--agent", node.agent.address)
    with watching(browser, f"http://127.0.0.1:{port}", calm=False) as view:
        page, line = view.page, view.page.locator(".incidents .now")
        with running_viewer(node.data, tmp_path / "first", *flags, port=port):
            page.goto(f"{view.url}/#{PANELS}")
            expect(line).to_contain_text("Nothing is wrong on", timeout=TOLD_MS)
            assert line.get_attribute("role") == "status"
            view.await_panels()
            page.evaluate("() => { window.sameDocument = true; }")
            expect(page.locator(".card.finding")).to_have_count(0)
            view.picture("told-healthy")

            finding = node.kill()
            card = page.locator(".card.finding.kill")
            expect(card).to_contain_text("killed for memory", timeout=TOLD_MS)
            expect(line).to_contain_text("1 thing is wrong on")
            page.evaluate(read_axe())
            assert find_violations(page) == []
            assert page.evaluate(LOW_CONTRAST) == []
            view.picture("told")
            before = positions(page)

        expect(line).to_contain_text("the viewer does not answer; trying again", timeout=TOLD_MS)
        expect(line).to_contain_text("Before: 1 thing is wrong")
        expect(card).to_have_count(1)
        view.picture("told-lost")
        assert positions(page) == before, "a lost connection moves nothing"

        with running_viewer(node.data, tmp_path / "second", *flags, port=port):
            expect(line).not_to_contain_text("does not answer", timeout=TOLD_MS)
            # By the keyboard alone: the card shows its container around the kill.
            card.focus()
            page.keyboard.press("Enter")
            page.wait_for_function("id => location.hash.includes(id)", arg=finding)
            assert "containers" in view.words()
            node.say_no_problem(finding)
            expect(page.locator(".card.finding")).to_have_count(0, timeout=TOLD_MS)
            expect(line).to_contain_text("Nothing is wrong on")
        assert page.evaluate("() => window.sameDocument") is True, "nothing was loaded again"


def test_320_pixels_have_room_for_a_finding(browser: Browser, node: WatchedNode, tmp_path: Path) -> None:
    size = {"width": 320, "height": 640}
    node.kill()
    with running_viewer(node.data, tmp_path / "viewer", "--agent", node.agent.address) as viewer:
        for scheme in ("light", "dark"):
            options: dict[str, Any] = {
                "viewport": size,
                "has_touch": True,
                "is_mobile": True,
                "color_scheme": scheme,
            }
            with watching(browser, viewer.url, **options) as view:
                page = view.page
                page.goto(f"{viewer.url}/#{PANELS}")
                expect(page.locator(".card.finding.kill")).to_be_visible(timeout=TOLD_MS)
                view.no_sideways()
                page.evaluate(read_axe())
                assert find_violations(page) == []
                assert page.evaluate(LOW_CONTRAST) == []
                view.picture(f"told-phone-{scheme}")
