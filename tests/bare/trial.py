"""
From a bare machine to the page: what a new user does, measured.

    python -m tests.bare.trial                        make run in a clone, on Debian 12
    python -m tests.bare.trial --suite trixie clone pip uv pipx sdist     with dist/ from make release-check

Each way prints seconds, MB fetched and MB on disk (millions of bytes). The page is opened from outside, with chromium.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright
from tests.bare.machine import HOME, ROOT, BareMachine
from tests.integration.agents import free_port
from tests.web.browsing import need_chromium, watching

# A busy machine, and an index that is far away.
READY_SECONDS = 600.0
PATIENCE_MS = 300_000
# Every Linux machine has these.
PANELS = "panels=node:cpu.load_1m,node:memory.MemAvailable"
WHEEL, SOURCES = "/given/dist/*-none-any.whl", "/given/dist/*.tar.gz"
NATIVE_WHEEL = "/given/dist/*manylinux*_$(uname -m).whl"
# What is not on the machine, so that nothing of it can help.
LACKING = ("cc", "gcc", "node", "npm", "go", "sudo", "pip", "pip3", "uv", "pipx")


@dataclass(frozen=True)
class Way:
    """How somebody comes by nodescope: one command line, whose last part is `nodescope up` or make run."""

    name: str
    prepare: str
    """What the user has done before: fetched the sources, made a virtual environment."""
    command: str
    places: tuple[str, ...]
    """What counts as disk."""


PORTS = "--port {viewer} --agent-port {agent}"
VENV = f"python3 -m venv --without-pip {HOME}/v"
PIP = f"PYTHONPATH=$(echo /given/pip-*.whl) {HOME}/v/bin/python -m pip install -q"
WAYS = {
    way.name: way
    for way in (
        Way(
            "clone",
            f"git clone -q /given/source.git {HOME}/nodescope",
            f"cd {HOME}/nodescope && make run ARGS='{PORTS}'",
            (f"{HOME}/nodescope", f"{HOME}/.cache"),
        ),
        Way(
            "pip",
            f"{VENV} && {PIP} --no-index $(echo /given/pip-*.whl)",
            f"{HOME}/v/bin/pip install -q {WHEEL} && {HOME}/v/bin/nodescope up {PORTS}",
            (HOME,),
        ),
        Way(
            "uv",
            "true",
            f"/given/uv tool install -q {WHEEL} && {HOME}/.local/bin/nodescope up {PORTS}",
            (HOME,),
        ),
        Way(
            "native",
            "true",
            f"/given/uv tool install -q {NATIVE_WHEEL}"
            f" && {HOME}/.local/share/uv/tools/nodescope/bin/python -c 'import nodescope._native'"
            f" && {HOME}/.local/bin/nodescope up {PORTS}",
            (HOME,),
        ),
        Way(
            "uvx",
            "true",
            f"/given/uv tool run -q --from $(echo {WHEEL}) nodescope up {PORTS}",
            (HOME,),
        ),
        Way(
            "pipx",
            f"{VENV} && {PIP} $(echo /given/pip-*.whl) pipx uv",
            f"PATH={HOME}/v/bin:$PATH pipx install -q --backend uv {WHEEL} && {HOME}/.local/bin/nodescope up {PORTS}",
            (HOME,),
        ),
        Way(
            "sdist",
            "true",
            f"/given/uv tool install -q {SOURCES} && {HOME}/.local/bin/nodescope up {PORTS}",
            (HOME,),
        ),
    )
}


@dataclass(frozen=True)
class Trial:
    """What one way took."""

    suite: str
    way: str
    seconds: float
    files_megabytes: float
    lists_megabytes: float
    """The index's lists of files: a sixth of it where the index compresses them."""
    disk_megabytes: float

    @property
    def fetched_megabytes(self) -> float:
        return self.files_megabytes + self.lists_megabytes

    def __str__(self) -> str:
        return (
            f"{self.suite} {self.way}: {self.seconds:.0f} s to the page, "
            f"{self.fetched_megabytes:.0f} MB fetched ({self.lists_megabytes:.0f} of them the index's lists), "
            f"{self.disk_megabytes:.0f} MB on disk"
        )


def give_sources(machine: BareMachine) -> None:
    """What is committed; a checkout may be a work tree of another."""
    target = machine.given / "source.git"
    words = ["git", "clone", "-q", "--bare", "--depth", "1", f"file://{ROOT}", str(target)]
    subprocess.run(words, check=True)
    machine.hand_over(target)


def give_packages(machine: BareMachine, dist: Path) -> None:
    """The wheel, the source archive, and installers which a user would have already."""
    shutil.copytree(dist, machine.given / "dist")
    shutil.copy(ROOT / ".venv/bin/uv", machine.given / "uv")
    uv = [str(ROOT / ".venv/bin/uv"), "run", "-q", "--no-project", "--with", "pip"]
    download = ["python", "-m", "pip", "download", "-q", "--no-deps", "-d", str(machine.given), "pip"]
    subprocess.run([*uv, *download], check=True)


def check_bare(machine: BareMachine) -> None:
    words = " ".join(LACKING)
    found = machine.run(
        f"for tool in {words}; do command -v $tool || true; done; python3 -c 'import ensurepip' 2>&1 || true"
    )
    assert found.strip().endswith("No module named 'ensurepip'"), found
    assert found.lstrip().startswith("Traceback"), f"not bare: {found}"


def try_way(machine: BareMachine, suite: str, way: Way, browser: Browser) -> Trial:
    machine.run(way.prepare)
    before = machine.proxy.await_quiet()
    ports = {"viewer": free_port(), "agent": free_port()}
    output = machine.work / "output"
    began = time.monotonic()
    with output.open("wb") as sink:
        process = machine.start(way.command.format(**ports), sink)
    try:
        printed = machine.await_line(process, output, "Ctrl-C stops.", READY_SECONDS)
        seconds = time.monotonic() - began
        address = re.search(r"^  viewer +(http://\S+)$", printed, re.MULTILINE)
        assert address, printed
        see_a_chart_move(browser, address[1])
        export_the_page(address[1], browser)
    finally:
        machine.end(process)
    fetched = machine.proxy.await_quiet() - before
    # The index names the files, another host has them.
    files = max(fetched.values(), default=0)
    lists = fetched.total() - files
    return Trial(suite, way.name, seconds, files / 1e6, lists / 1e6, machine.measure_bytes(*way.places) / 1e6)


def see_a_chart_move(browser: Browser, address: str) -> None:
    """The page follows the agent: its time axis moves on, with a line drawn in every panel."""
    with watching(browser, address) as view:
        page = view.open(PANELS)
        expect(page.locator(".live.on")).to_contain_text("behind", timeout=PATIENCE_MS)
        view.await_window("to > given", view.window()[1] + 2)


def export_the_page(address: str, browser: Browser) -> None:
    """The button that needs the second build of the page."""
    context = browser.new_context()
    answer = context.request.get(f"{address}/api/export?format=html&minutes=5", timeout=PATIENCE_MS)
    assert answer.status == 200, answer.text()[:400]
    assert "nodescope-data" in answer.text()
    context.close()


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=need_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="from a bare machine to the page")
    parser.add_argument("way", nargs="*", choices=[*WAYS, []], default=[])
    parser.add_argument("--suite", action="append")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args(words)
    with open_browser() as browser:
        for suite in options.suite or ["bookworm"]:
            for name in options.way or ["clone"]:
                with BareMachine(suite) as machine:
                    check_bare(machine)
                    give_sources(machine) if name == "clone" else give_packages(machine, options.dist)
                    print(try_way(machine, suite, WAYS[name], browser), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
