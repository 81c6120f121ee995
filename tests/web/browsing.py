"""A real chromium, real viewers, and a page that watches itself for what must not happen."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect, sync_playwright
from tests.integration.agents import NODESCOPE, clean_environment, stop, wait_for

ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "web"
# A machine that builds something else beside us draws late.
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)


def need_chromium() -> str:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        return refuse("chromium is not installed; remedy: sudo apt-get install chromium")
    return path


@contextlib.contextmanager
def running_chromium() -> Iterator[Browser]:
    path = need_chromium()
    with sync_playwright() as playwright:
        # As root there is no sandbox to be had; the pages are our own, or Perfetto's.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def refuse(reason: str) -> str:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


# -- viewers ------------------------------------------------------------------------


@dataclass
class Running:
    """A viewer in a process of its own."""

    process: subprocess.Popen[bytes]
    url: str


@contextlib.contextmanager
def running_viewer(folder: Path | None, output: Path, *flags: str, port: int = 0) -> Iterator[Running]:
    """Over a folder, or over what the flags name."""
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [*NODESCOPE, "viewer", *([str(folder)] if folder else []), "--port", str(port), *flags],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=clean_environment(),
        )
    try:
        words = wait_for(
            lambda: [word for word in output.read_text().split() if word.startswith("http://")],
            "a viewer that prints its address",
        )
        yield Running(process, words[0])
    finally:
        stop(process)


# -- pages --------------------------------------------------------------------------


@dataclass
class Watched:
    """A page of the viewer, and everything it did that it should not have done."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", self.note_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", self.note_request)
        self.page.on("response", self.note_response)
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.set_default_timeout(PATIENCE_MS)

    def note_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")

    def note_response(self, answer: Response) -> None:
        if answer.status >= 400:
            self.complaints.append(f"{answer.status}: {answer.url}")

    def note_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        self.asked.append(address.path)
        if address.scheme in {"http", "https"} and f"{address.scheme}://{address.netloc}" != self.url:
            self.foreign.append(request.url)

    def open(self, hash_: str = "") -> Page:
        """Open, and wait until every panel has drawn."""
        self.page.goto(f"{self.url}/#{hash_}" if hash_ else f"{self.url}/")
        named = parse_qs(hash_).get("panels", [""])[0]
        if not hash_:
            # An archive goes to its worst incident.
            self.page.locator(".card.chosen").wait_for()
        self.await_panels(len(named.split(",")) if named else 1 if "dashboard" in hash_ else 3)
        return self.page

    def await_panels(self, least: int = 1) -> None:
        self.page.wait_for_function(
            """least => {
                const charts = [...document.querySelectorAll('.panel')];
                return charts.length >= least && charts.every(one => one.querySelector('canvas') && one.querySelector('.legend li'));
            }""",
            arg=least,
        )

    def words(self) -> dict[str, str]:
        """The view, as the address says it."""
        found = parse_qs(urlsplit(self.page.url).fragment)
        return {key: values[0] for key, values in found.items()}

    def windows(self) -> list[tuple[float, float]]:
        """The time range that each chart draws."""
        rows: list[list[str]] = self.page.eval_on_selector_all(
            ".chart", "all => all.map(one => [one.dataset.from, one.dataset.to])"
        )
        return [(float(start), float(end)) for start, end in rows]

    def window(self) -> tuple[float, float]:
        """The one range that all charts draw."""
        found = set(self.windows())
        assert len(found) == 1, f"charts drew different ranges: {found}"
        return found.pop()

    def await_window(self, test: str, given: object = None) -> tuple[float, float]:
        """Wait until the first chart's range fits a JavaScript test of from, to and given."""
        self.page.wait_for_function(
            f"""given => {{
                const chart = document.querySelector('.chart');
                const from = Number(chart.dataset.from), to = Number(chart.dataset.to);
                return {test};
            }}""",
            arg=given,
        )
        return self.window()

    def plot(self, index: int = 0) -> dict[str, float]:
        """Where a chart's plotting area is on the screen."""
        box = self.page.locator(".u-over").nth(index).bounding_box()
        assert box
        return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}

    def pixels(self, index: int = 0) -> str:
        """What a chart has drawn."""
        return str(self.page.locator(".chart canvas").nth(index).evaluate("canvas => canvas.toDataURL()"))

    def picture(self, name: str, **options: Any) -> None:
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"{name}.png", **options)

    def no_sideways(self) -> None:
        wide, room = self.page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= room, f"the page is {wide} px wide in a window of {room} px"


@contextlib.contextmanager
def watching(browser: Browser, url: str, *, calm: bool = True, **options: Any) -> Iterator[Watched]:
    """A fresh page; calm: nothing may have been complained of in the end."""
    context = browser.new_context(
        **{"viewport": {"width": 1440, "height": 900}, "timezone_id": "UTC", "locale": "en-GB", **options}
    )
    try:
        watched = Watched(context.new_page(), url)
        watched.watch()
        yield watched
        assert not watched.foreign, f"requests that left the origin: {watched.foreign}"
        if calm:
            assert not watched.complaints, f"the browser complained: {watched.complaints}"
    finally:
        context.close()
