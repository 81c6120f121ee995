"""The page in Firefox: it draws, it explains, it opens its parts, and nothing fails."""

from pathlib import Path

import pytest
from tests.web.browsing import ARTIFACTS, Running
from tests.web.marionette import running_firefox

pytestmark = pytest.mark.real

# Of a canvas: whether anything was drawn.
DRAWN = """
    const charts = [...document.querySelectorAll('.chart canvas')];
    return charts.length >= 2 && charts.every(one => {
        const data = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
        return data.some(value => value !== 0);
    });
"""


def test_the_page_works_in_firefox(demo: Running, tmp_path: Path) -> None:
    with running_firefox(tmp_path) as firefox:
        firefox.call("WebDriver:Navigate", url=f"{demo.url}/#range=all&panels=cpu,memory")
        firefox.await_script(DRAWN, "chart that was drawn")
        firefox.await_script("return document.querySelectorAll('.row').length >= 8", "list of containers")
        firefox.await_script("return document.querySelectorAll('.card').length >= 1", "incident")
        firefox.picture(ARTIFACTS / "firefox.png")
        said = firefox.run("return [...document.querySelectorAll('.sentence')].map(one => one.textContent)")
        assert all(one.endswith(".") for one in said)
        firefox.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'w', bubbles: true}))")
        firefox.await_script("return document.querySelector('.why .headline')?.textContent", "explanation")
        firefox.run("location.hash = '#range=all&panels=heat:memory'")
        names = firefox.await_script(
            "return [...document.querySelectorAll('.heat-names .name')].map(one => one.textContent).slice(0, 1)",
            "heat map",
        )
        assert names == ["cache"]
        firefox.run("location.hash = '#range=all&who=cache&containers=cache'")
        firefox.await_script("return document.querySelector('.obituary .harm')?.textContent", "obituary")
        assert firefox.run("return document.querySelectorAll('[role=alert]').length") == 0
