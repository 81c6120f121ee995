"""
The viewer's page in a real chromium: first useful paint, zoom to redraw.

The archive is that of the bench `viewer`: the demo, a day of a hundred containers. First useful paint is from
the navigation to the first panel with its curves and its legend; the anchor is the
same browser opening a page of one word from the same server. Zoom to redraw is from
the wheel's event to the frame that shows the new range; the anchor is an empty
frame of the same page.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from playwright.sync_api import Browser, Page, sync_playwright

from bench.result import Goal, Options, Row, median, quantile
from bench.viewer import prepare, running_viewer

Result = TypeVar("Result")

PAINTS = 7
ZOOMS = 60

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
    demo = prepare(options)
    with running_browser() as browser, running_viewer(demo) as (url, _):
        paints = [time_paint(browser, url) for _ in range(PAINTS + 1)][1:]
        blanks = [time_blank(browser, url) for _ in range(PAINTS)]
        zooms, frames = time_zooms(browser, f"{url}/#range=1d")
    what = "24 h x 100 containers"
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


@contextmanager
def running_browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("this bench needs chromium: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-precise-memory-info"]
        )
        try:
            yield browser
        finally:
            browser.close()


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


def with_page(browser: Browser, look: Callable[[Page], Result]) -> Result:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        return look(context.new_page())
    finally:
        context.close()
