"""The page of a hundred nodes, one of which hangs and one of which goes away, in a real chromium."""

import contextlib
import re
import socket
from collections.abc import Iterator

import httpx
import pytest
from bench.cluster_nodes import NodePlan, name_node, write_cluster, write_node
from playwright.sync_api import Browser, Page, expect
from tests.integration.agents import stop
from tests.web.archives import write_hostile
from tests.web.browsing import Running, Watched, running_viewer, watching
from tests.web.test_axe import find_violations, read_axe
from tests.web.test_reach import LOW_CONTRAST

pytestmark = pytest.mark.real

END_MS = 1_772_366_400_000
NODES = 100
# The two of them that have viewers of their own.
HUNG, LEAVING = "hung-node", "leaving-node"
BOLD = "<b>bold</b>"
FACED = NODES - 3


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One viewer in front of the folders of all nodes that are well: it answers for each by its name."""
    folder = tmp_path_factory.mktemp("nodes")
    write_cluster(folder, FACED, 4, 1.0, END_MS)
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        # A hundred nodes on one machine, and others beside them: it has read its files once.
        for number in range(FACED):
            httpx.get(f"{viewer.url}/api/minutes?range=1h&node={name_node(number)}", timeout=60)
        yield viewer


@pytest.fixture(scope="module")
def leaving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("leaving") / "node"
    write_node(NodePlan(folder, 1, 4, END_MS - 3_600_000, END_MS, name=LEAVING))
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


@pytest.fixture(scope="module")
def hostile_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = write_hostile(tmp_path_factory.mktemp("hostile") / "demo")
    with running_viewer(folder, tmp_path_factory.mktemp("viewer") / "output") as viewer:
        yield viewer


@contextlib.contextmanager
def hanging() -> Iterator[str]:
    """A listener that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(scope="module")
def cluster(
    nodes: Running, leaving: Running, hostile_node: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    flags = [word for number in range(FACED) for word in ("--viewer", f"{name_node(number)}={nodes.url}")]
    with hanging() as hung:
        flags += ["--viewer", f"{HUNG}={hung}", "--viewer", f"{LEAVING}={leaving.url}"]
        flags += ["--viewer", f"{BOLD}={hostile_node.url}"]
        output = tmp_path_factory.mktemp("viewer") / "output"
        with running_viewer(None, output, "--deadline", "5s", *flags) as viewer:
            yield viewer


@pytest.fixture
def wall(browser: Browser, cluster: Running) -> Iterator[Watched]:
    with watching(browser, cluster.url) as view:
        open_wall(view)
        yield view


def open_wall(view: Watched, hash_: str = "range=1h") -> Page:
    """All nodes but the one that hangs have answered."""
    view.page.goto(f"{view.url}/cluster#{hash_}")
    view.page.wait_for_function(
        "most => document.querySelectorAll('.wnode.hurt, .wnode.calm').length >= most",
        arg=NODES - 2,
        timeout=180_000,
    )
    return view.page


def list_violations(page: Page) -> list[str]:
    page.evaluate(read_axe())
    return find_violations(page)


def test_a_hundred_nodes_worst_first_and_a_hung_one_costs_only_itself(wall: Watched) -> None:
    page = wall.page
    expect(page.locator(".wnode")).to_have_count(NODES)
    expect(page.locator(".cluster-head .sentence")).to_contain_text(
        "of 100 nodes are hurt. Worst is worker-000: OOM kill"
    )
    first = page.locator(".wnode").first
    expect(first).to_contain_text("worker-000")
    expect(first).to_contain_text("OOM kill of web at 11:58")
    kinds = page.eval_on_selector_all(".wnode", "all => all.map(one => one.className.split(' ')[1])")
    assert "hurt" not in kinds[kinds.index("calm") :]
    hung = page.locator(f'.wnode[data-node="{HUNG}"]')
    expect(hung).to_contain_text("no answer", timeout=30_000)
    expect(hung).to_contain_text("its viewer did not answer in time")
    wall.picture("cluster")


def test_the_cells_are_drawn_in_the_colour_of_their_value(wall: Watched) -> None:
    """A node that was throttled is red from then on, and not before."""
    page = open_wall(wall, "range=1h&measure=throttled")
    strip = page.locator('.wnode[data-node="worker-006"] canvas')
    expect(strip).to_have_attribute("aria-label", re.compile("throttling: mean"))
    reds = strip.evaluate(
        """canvas => {
            const data = canvas.getContext('2d').getImageData(0, 5, canvas.width, 1).data;
            return [0.1, 0.9].map(share => { const at = 4 * Math.floor(canvas.width * share); return data[at] - data[at + 2]; });
        }"""
    )
    assert reds[0] < 0, "blue before"
    assert reds[1] > 50, "red after"


def test_keys_alone_lead_to_a_node_and_back(wall: Watched) -> None:
    page = wall.page
    press = page.keyboard.press
    press("m")
    expect(page.locator(".measures button[aria-pressed=true]")).to_have_text("memory")
    press("ArrowRight")
    expect(page.locator(".readout-at")).to_contain_text(":")
    press("+")
    page.wait_for_function("() => location.hash.includes('from=')")
    press("ArrowDown")
    press("ArrowDown")
    press("ArrowUp")
    expect(page.locator(".wnode .name:focus")).to_have_count(1)
    node = page.eval_on_selector(".wnode .name:focus", "one => one.closest('.wnode').dataset.node")
    given = page.eval_on_selector(
        ".wnode .name:focus", "one => new URLSearchParams(one.hash.slice(1)).get('containers')"
    )
    before = wall.words()
    press("Enter")
    page.wait_for_url("**/node#**")
    wall.await_panels()
    words = wall.words()
    assert (words["node"], words["from"], words["to"]) == (node, before["from"], before["to"])
    assert words.get("containers") == given, "the container that its sentence is about, if it is about one"
    page.get_by_role("link", name="cluster").focus()
    press("Enter")
    page.wait_for_url("**/cluster#**")
    assert wall.words() == {**before, "at": node}
    expect(page.locator(".wnode.last")).to_contain_text(node)
    press("?")
    expect(page.locator("dialog")).to_contain_text("the next measure")
    press("Escape")
    press("2")
    expect(page.locator(".spreads tbody tr").first).to_be_visible(timeout=60_000)
    press("/")
    page.keyboard.type("api")
    expect(page.locator(".spreads tbody tr")).to_have_count(1, timeout=60_000)


def test_the_second_is_reached_through_the_cluster_alone(wall: Watched) -> None:
    """The page of a node behind another viewer has that node's samples; nothing else is asked by the browser."""
    page = wall.page
    page.goto(f"{wall.url}/node#node=worker-003&range=15m&panels=memory")
    wall.await_panels()
    expect(page.locator(".node")).to_have_text("worker-003")
    assert page.title() == "worker-003 - nodescope"
    served = httpx.get(f"{wall.url}/api/timeseries?node=worker-003&metric=memory&range=5m").json()
    assert {one["node"] for one in served["series"]} == {"worker-003"}
    assert served["bucket_seconds"] == 0, "samples as they are"


def test_a_drag_zooms_and_back_is_one_key(wall: Watched) -> None:
    page = wall.page
    box = page.locator(".wnode canvas").nth(3).bounding_box()
    assert box
    y = box["y"] + 8
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    expect(page.locator(".readout-at")).to_contain_text("%")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, y, steps=5)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('from=')")
    expect(page.locator("select[aria-label='time range']")).to_contain_text("fixed")
    page.keyboard.press("Backspace")
    page.wait_for_function("() => !location.hash.includes('from=')")
    page.locator(".axis").hover()
    page.mouse.wheel(0, -300)
    page.wait_for_function("() => location.hash.includes('from=')")


def test_rows_that_nobody_sees_follow_when_the_wheel_rests(wall: Watched) -> None:
    """While it turns only rows near the screen are drawn; then every row is of the new range."""
    page = wall.page
    page.locator(".axis").hover()
    for _ in range(3):
        page.mouse.wheel(0, -300)
    page.wait_for_function(
        """() => {
            const from = hash => new URLSearchParams(hash.slice(1)).get('from');
            const names = [...document.querySelectorAll('.wnode .name')];
            return from(location.hash) && names.every(one => from(one.hash) === from(location.hash));
        }"""
    )


def test_two_nodes_and_two_ranges_are_compared(wall: Watched) -> None:
    page = wall.page
    page.keyboard.press("3")
    expect(page.locator(".comparing")).to_contain_text("Choose two nodes")
    page.get_by_label("left node").select_option("worker-001")
    page.get_by_label("right node").select_option("worker-003")
    expect(page.locator(".comparing .headline")).to_contain_text("differs most", timeout=60_000)
    expect(page.locator(".comparing table").nth(1)).to_contain_text("shop/api", timeout=60_000)
    wall.picture("cluster-compare")
    page.get_by_label("left node").select_option("")
    page.get_by_label("right node").select_option("")
    page.get_by_label("range on the left").select_option("3600")
    expect(page.locator(".comparing")).to_contain_text("nodes, by the difference of CPU", timeout=60_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(browser: Browser, cluster: Running, scheme: str) -> None:
    """axe-core finds nothing on any tab, and every text can be read."""
    with watching(browser, cluster.url, color_scheme=scheme) as view:
        page = open_wall(view)
        assert list_violations(page) == []
        assert page.evaluate(LOW_CONTRAST) == []
        view.picture(f"cluster-{scheme}")
        page.keyboard.press("2")
        page.locator(".spreads .opener").first.click(timeout=60_000)
        assert list_violations(page) == []
        view.picture(f"cluster-workloads-{scheme}")
        page.goto(f"{view.url}/cluster#tab=compare&left=worker-001&right=worker-003")
        page.locator(".comparing table").first.wait_for(timeout=60_000)
        assert list_violations(page) == []


def test_320_pixels_are_enough_for_a_cluster(browser: Browser, cluster: Running) -> None:
    size = {"width": 320, "height": 640}
    with watching(browser, cluster.url, viewport=size, has_touch=True, is_mobile=True) as view:
        page = open_wall(view)
        view.no_sideways()
        view.picture("cluster-narrow")
        assert list_violations(page) == []
        page.get_by_role("button", name="pressure").tap()
        expect(page.locator(".measures button[aria-pressed=true]")).to_have_text("pressure")
        page.get_by_role("button", name="workloads").tap()
        page.locator(".spreads .opener").first.tap(timeout=60_000)
        view.no_sideways()
        page.get_by_role("button", name="compare", exact=True).tap()
        page.get_by_label("left node").select_option("worker-001")
        page.locator(".comparing table").first.wait_for(timeout=60_000)
        view.no_sideways()


def test_wide_screens_show_more_and_not_larger(browser: Browser, cluster: Running) -> None:
    with watching(browser, cluster.url, viewport={"width": 2560, "height": 1440}) as view:
        page = open_wall(view)
        view.no_sideways()
        assert page.evaluate("() => getComputedStyle(document.body).fontSize") == "13px"
        view.picture("cluster-wide")


def test_hostile_names_are_text_on_the_wall(browser: Browser, cluster: Running) -> None:
    with watching(browser, cluster.url) as view:
        page = open_wall(view, "")
        expect(page.locator(".wnode", has_text=BOLD)).to_have_count(1)
        assert page.locator(".wnode b").count() == 0
        page.keyboard.press("2")
        expect(page.locator(".spreads tbody tr").first).to_be_visible(timeout=60_000)
        assert page.evaluate("() => window.broken") is None
        assert page.locator("main script, main img").count() == 0


def test_a_node_that_goes_away_stays_with_its_last_time(
    browser: Browser, cluster: Running, leaving: Running
) -> None:
    """Last in this file: its viewer does not come back."""
    with watching(browser, cluster.url) as view:
        page = open_wall(view)
        there = page.locator(f'.wnode[data-node="{LEAVING}"]')
        expect(there).not_to_contain_text("no answer")
        stop(leaving.process)
        page.keyboard.press("-")
        expect(there).to_contain_text("no answer", timeout=60_000)
        expect(there).to_contain_text("its viewer is not there: connection refused")
        expect(there).to_contain_text("Its newest sample is of 11:59")
        drawn = there.locator("canvas").evaluate(
            "canvas => new Set(canvas.getContext('2d').getImageData(0, 8, canvas.width, 1).data).size"
        )
        assert drawn > 8, "its cells are still there"
        expect(page.locator(".wnode.calm")).not_to_have_count(0)


def test_a_row_that_becomes_another_kind_keeps_the_focus(wall: Watched) -> None:
    """Of two ranges a node is hurt in one: its row is made anew, and whoever uses keys stays there."""
    page = wall.page
    name = page.locator('.wnode.hurt[data-node="worker-000"] .name')
    name.focus()
    begin = name.evaluate("one => new URLSearchParams(one.hash.slice(1)).get('from')")
    # The minutes before its kill.
    page.evaluate(
        """from => {
            const words = new URLSearchParams(location.hash.slice(1));
            words.delete('range');
            words.set('from', from);
            words.set('to', new Date(Date.parse(from) + 600000).toISOString());
            location.hash = words.toString();
        }""",
        begin,
    )
    expect(page.locator('.wnode.calm[data-node="worker-000"]')).to_have_count(1, timeout=60_000)
    focused = page.evaluate("() => document.activeElement.closest('.wnode')?.dataset.node")
    assert focused == "worker-000"
