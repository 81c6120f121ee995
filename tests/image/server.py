"""
The guide for a plain server, its Docker lines run as they stand there: image, compose, one container.

    python -m tests.image.server         needs root; tests/image/run calls it

The page of the composed viewer is opened with chromium, and every button of it pressed.
"""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser
from tests.bare.trial import PANELS, open_browser, see_a_chart_move
from tests.docs.pages import ROOT, Block, list_blocks
from tests.image.engine import APART, install_missing, make_environment, prepare
from tests.web.browsing import watching
from tests.web.buttons import fetch_every_file, press_every_button

GUIDE = ROOT / "docs/guides/server.md"
AGENT, VIEWER = "http://127.0.0.1:9100", "http://127.0.0.1:8050"
READY_SECONDS = 120
# What podman notes of networks belongs to this one.
SEPARATE = "ip link set lo up && mkdir -p /run/containers && mount -t tmpfs tmpfs /run/containers"


def find_block(word: str) -> Block:
    """The one block of the guide with this command."""
    [block] = [one for one in list_blocks(GUIDE) if one.language == "sh" and word in one.text]
    return block


def run_block(text: str, environment: dict[str, str]) -> None:
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=ROOT, env=environment, check=True)


def ask(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - of this machine
        return bytes(answer.read())


def await_answer(address: str, good: Callable[[bytes], bool]) -> bytes:
    deadline = time.monotonic() + READY_SECONDS
    told: object = None
    while time.monotonic() < deadline:
        try:
            body = ask(address)
            if good(body):
                return body
            told = body[:400]
        except (urllib.error.URLError, OSError) as error:
            told = error
        time.sleep(1)
    raise AssertionError(f"{address}: {told}")


def check_agent() -> None:
    await_answer(f"{AGENT}/metrics", lambda body: b"node_cpu_seconds_total" in body)
    # The volume can be written, by an agent that is root without root's powers.
    status = await_answer(f"{AGENT}/status", lambda body: b'"archive"' in body)
    assert b"may not be written" not in status, status


def try_the_page(browser: Browser) -> None:
    see_a_chart_move(browser, VIEWER)
    with watching(browser, VIEWER, accept_downloads=True) as view:
        page = view.open(PANELS)
        print(f"ok     pressed: {', '.join(press_every_button(page))}", flush=True)
        for name, size in fetch_every_file(page).items():
            print(f"ok     {name}: {size} bytes", flush=True)


@contextmanager
def cleaned(environment: dict[str, str], *commands: str) -> Iterator[None]:
    try:
        yield
    finally:
        for command in commands:
            subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, check=False)


def run_inside(environment: dict[str, str]) -> None:
    """In the network of its own."""
    subprocess.run(["bash", "-ec", SEPARATE], check=True)
    with cleaned(
        environment, "docker compose -f deploy/compose.yaml logs", find_block("compose.yaml down").text
    ):
        run_block(find_block("compose.yaml up").text, environment)
        check_agent()
        await_answer(f"{VIEWER}/api/health", lambda body: b"ok" in body)
        with open_browser() as browser:
            try_the_page(browser)
        print("ok     compose: agent, viewer and every button of the page", flush=True)
    with cleaned(environment, "docker rm -f nodescope", "docker volume rm nodescope"):
        run_block(find_block("docker run").text, environment)
        check_agent()
        print("ok     docker run: the agent and its archive", flush=True)


def main(words: list[str]) -> int:
    if words:
        run_inside(make_environment(Path(words[0])))
        return 0
    install_missing()
    with TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        run_block(find_block("docker build").text, make_environment(folder))
        inside = [*APART, sys.executable, "-m", "tests.image.server", name]
        return subprocess.run(inside, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
