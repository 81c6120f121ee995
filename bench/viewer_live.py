"""
The viewer's page in a real chromium, live: its heap must not grow.

The heap is taken after a collection, when the live tail has filled its window
once and then ten times in `--seconds` (600 for the ten minutes that are promised).
What the engine compiles and caches of late makes it grow at first; what grows in
the second half stays behind.
"""

from collections.abc import Sequence

from playwright.sync_api import Browser, Page
from tests.integration.agents import running_agent, wait_for

from bench.result import Goal, Options, Row
from bench.viewer_page import running_browser, with_page

READINGS = 10
# The tail fills its window once; from then on nothing may stay behind.
LIVE = "#range=1m&panels=node:cpu.load_1m,node:memory.MemAvailable"


def run(options: Options) -> list[Row]:
    with running_browser() as browser:
        return measure_live(browser, options.seconds)


def measure_live(browser: Browser, seconds: float) -> list[Row]:
    with running_agent("--no-kubernetes", command="up") as agent:
        url = wait_for(
            lambda: [word for word in agent.printed().split() if word.startswith("http://")],
            "up prints its addresses",
        )[0]

        def look(page: Page) -> list[int]:
            page.goto(f"{url}/{LIVE}")
            page.locator(".live.on").wait_for(timeout=60_000)
            # The window has to fill before it can be called full.
            page.wait_for_timeout(min(seconds / 3, 90) * 1000)
            heaps = [read_heap(page)]
            for _ in range(READINGS):
                page.wait_for_timeout(seconds / READINGS * 1000)
                heaps.append(read_heap(page))
            return heaps

        heaps = with_page(browser, look)
    return [
        compare(f"page: heap after {seconds:g} s of live tail", heaps, "at its start", Goal(1.25, "ratio")),
        compare("page: the second half of it", heaps[READINGS // 2 :], "in the middle", Goal(1.05, "ratio")),
    ]


def compare(what: str, heaps: Sequence[int], against: str, goal: Goal) -> Row:
    words = ", ".join(f"{heap / 2**20:.2f}" for heap in heaps)
    return Row(what, float(heaps[-1]), "resident", float(heaps[0]), against, goal, f"MiB: {words}")


def read_heap(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")
    session.detach()
    return int(found["usedSize"])
