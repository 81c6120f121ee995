"""
The viewer's page in a real chromium: first useful paint, zoom to redraw, memory of the live tail.

The archive is the demo: a day of a hundred containers. First useful paint is from
the navigation to the first panel with its curves and its legend; the anchor is the
same browser opening a page of one word from the same server. Zoom to redraw is from
the wheel's event to the frame that shows the new range; the anchor is an empty
frame of the same page. The heap is taken after a collection, at the start and at the
end of a live tail of `--seconds`, in the middle of which it must not grow.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import Browser, Page, sync_playwright
from tests.integration.agents import running_agent, wait_for
from tests.web.browsing import running_viewer

from bench.result import Goal, Options, Row, median, quantile
from nodescope.keep.demo import Wish, write_node

Result = TypeVar("Result")

HOURS = 24.0
PAINTS = 7
ZOOMS = 60
# The tail fills its window once; from then on nothing may stay behind.
LIVE = "#range=1m&panels=node:cpu.load_1m,node:memory.MemAvailable"

WHEN_USEFUL = """() => {
    const look = () => {
        const panel = document.querySelector('.panel');
        if (panel?.querySelector('canvas') && panel.querySelector('.legend li')) window.useful = performance.now();
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
# Until the frame after: what was drawn in a frame is seen when it ends.
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
ZOOM = f"""async factor => {{
    const over = document.querySelector('.u-over');
    const box = over.getBoundingClientRect();
    const start = performance.now();
    over.dispatchEvent(new WheelEvent('wheel', {{bubbles: true, cancelable: true, deltaY: factor, clientX: box.left + box.width * 0.4, clientY: box.top + 20}}));
    await {FRAME};
    return performance.now() - start;
}}"""
EMPTY = f"async () => {{ const start = performance.now(); await {FRAME}; return performance.now() - start; }}"


def run(options: Options) -> list[Row]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("bench viewer_page needs chromium: sudo apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-precise-memory-info"]
        )
        try:
            return [
                *measure_archive(browser, Path(folder), options.containers[0], HOURS),
                *measure_live(browser, options.seconds),
            ]
        finally:
            browser.close()


def measure_archive(browser: Browser, folder: Path, containers: int, hours: float) -> list[Row]:
    end_ms = int(time.time()) * 1000
    write_node(Wish(folder / "demo", hours, containers, 7, end_ms, "demo-1"), "0", lambda _: None)
    with running_viewer(folder / "demo", folder / "output") as viewer:
        paints = [time_paint(browser, viewer.url) for _ in range(PAINTS + 1)][1:]
        blanks = [time_blank(browser, viewer.url) for _ in range(PAINTS)]
        zooms, frames = time_zooms(browser, f"{viewer.url}/#range=1d")
    what = f"{hours:g} h x {containers} containers"
    return [
        Row(
            f"page: first useful paint, {what}",
            median(paints),
            "s",
            median(blanks),
            "one word",
            Goal(1.0, "ours"),
            f"worst {max(paints):.2f} s",
        ),
        Row(
            f"page: zoom to redraw p95, {what}",
            quantile(zooms, 0.95),
            "s",
            quantile(frames, 0.95),
            "an empty frame",
            Goal(0.1, "ours"),
            f"median {median(zooms) * 1000:.0f} ms",
        ),
    ]


def time_paint(browser: Browser, url: str) -> float:
    with_page(browser, lambda page: page.goto(f"{url}/api/health"))

    def look(page: Page) -> float:
        page.add_init_script(f"({WHEN_USEFUL})()")
        page.goto(f"{url}/")
        return float(page.wait_for_function("() => window.useful", timeout=60_000).json_value()) / 1000

    return with_page(browser, look)


def time_blank(browser: Browser, url: str) -> float:
    def look(page: Page) -> float:
        page.goto(f"{url}/api/health")
        found = page.evaluate("() => performance.getEntriesByType('navigation')[0].domComplete")
        return float(found) / 1000

    return with_page(browser, look)


def time_zooms(browser: Browser, url: str) -> tuple[list[float], list[float]]:
    def look(page: Page) -> tuple[list[float], list[float]]:
        page.goto(url)
        page.wait_for_function(
            "() => document.querySelectorAll('.panel .legend li').length >= 8", timeout=60_000
        )
        page.wait_for_load_state("networkidle", timeout=120_000)
        zooms, frames = [], []
        for number in range(ZOOMS):
            # In for a while, then out again, as a person does.
            zooms.append(float(page.evaluate(ZOOM, -100 if number % 20 < 10 else 100)) / 1000)
            frames.append(float(page.evaluate(EMPTY)) / 1000)
        return zooms, frames

    return with_page(browser, look)


def measure_live(browser: Browser, seconds: float) -> list[Row]:
    with running_agent("--no-kubernetes", command="up") as agent:
        url = wait_for(
            lambda: [word for word in agent.printed().split() if word.startswith("http://")],
            "up prints its addresses",
        )[0]

        def look(page: Page) -> tuple[int, int]:
            page.goto(f"{url}/{LIVE}")
            page.locator(".live.on").wait_for(timeout=60_000)
            # The window has to fill before it can be called full.
            page.wait_for_timeout(min(seconds / 3, 90) * 1000)
            first = read_heap(page)
            page.wait_for_timeout(seconds * 1000)
            return first, read_heap(page)

        first, last = with_page(browser, look)
    return [
        Row(
            f"page: heap after {seconds:g} s of live tail",
            float(last),
            "resident",
            float(first),
            "at its start",
            Goal(1.25, "ratio"),
            f"{(last - first) / 1024:+.0f} KiB",
        )
    ]


def read_heap(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")
    session.detach()
    return int(found["usedSize"])


def with_page(browser: Browser, look: Callable[[Page], Result]) -> Result:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        return look(context.new_page())
    finally:
        context.close()
