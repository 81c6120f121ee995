"""What leaves the page: a file that opens from disk with no network, CSV, a picture, other tools' words."""

import csv
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.integration.agents import NODESCOPE, clean_environment
from tests.web.browsing import Watched, watching

pytestmark = pytest.mark.real

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def file(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "incident.html"
    command = [
        *NODESCOPE,
        "export",
        str(demo_folder),
        "--out",
        str(out),
        "--metric",
        "cpu",
        "--metric",
        "memory",
    ]
    subprocess.run(command, check=True, env=clean_environment(), timeout=120, capture_output=True)
    return out


def test_a_file_opens_from_disk_with_the_network_cut(browser: Browser, file: Path) -> None:
    with watching(browser, "", offline=True) as view:
        view.page.goto(file.as_uri())
        page = view.page
        view.await_panels(2)
        assert {path for path in view.asked if path.startswith("/api")} == set()
        start, end = view.window()
        box = view.plot(0)
        page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30, steps=4)
        page.mouse.up()
        zoomed = view.await_window("to - from < given", (end - start) * 0.5)
        assert zoomed[0] == pytest.approx(start + 0.3 * (end - start), rel=0.02)
        assert "from" in view.words()
        # The studies are in it, too.
        page.keyboard.press("f")
        page.locator(".study[data-study=trend]").click()
        page.locator(".finding", has_text="up to its limit").first.click()
        expect(page.locator(".finding.chosen")).to_have_count(1)
        view.picture("export-offline")


def test_the_page_offers_the_same_file(view: Watched) -> None:
    page = view.open("range=5m&panels=cpu")
    page.keyboard.press("e")
    link = page.get_by_role("link", name="HTML, opens offline")
    with page.expect_download() as download:
        link.click()
    content = Path(download.value.path()).read_text()
    assert 'id="nodescope-data">{' in content
    assert "http://" not in content.split('id="nodescope-data"', maxsplit=1)[0].replace(
        "http://www.w3.org/", ""
    )


def test_csv_and_picture_of_what_is_drawn(view: Watched) -> None:
    page = view.open("range=5m&panels=memory")
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV of what is drawn").click()
    with Path(download.value.path()).open(newline="") as source:
        rows = list(csv.DictReader(source))
    assert {row["metric"] for row in rows} == {"memory"}
    assert len({row["name"] for row in rows}) == page.locator(".line").count()
    assert all(float(row["min"]) <= float(row["mean"]) <= float(row["max"]) for row in rows if row["mean"])
    with page.expect_download() as picture:
        page.get_by_role("button", name="PNG of all panels").click()
    assert Path(picture.value.path()).read_bytes().startswith(PNG)


def test_copied_curl_asks_what_is_drawn(view: Watched) -> None:
    page = view.open("range=5m&panels=cpu")
    page.keyboard.press("e")
    command = page.locator(".copy", has=page.get_by_role("button", name="curl")).locator("pre").inner_text()
    answer = page.evaluate("url => fetch(url).then(one => one.json())", command.split("'")[1])
    assert answer["metric"] == "cpu"
    assert len(answer["series"]) == page.locator(".line").count()
