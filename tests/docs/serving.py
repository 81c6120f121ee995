"""
A page's commands that serve, and those that ask what is served, on the ports that the page names.

    unshare --net python -m tests.docs.serving docs/guides/first-hour.md FOLDER

The network is one of its own, so that every port is free. Each line of a block `sh serves` is started,
must listen, and is ended as by Ctrl-C; beside a block `sh agent` runs an agent with its defaults.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.pages import ROOT, Block, list_blocks

PATIENCE_SECONDS = 120.0
LISTENING = "0A"
# How a program ends that was asked to by Ctrl-C.
GOOD_ENDS = {0, 130, -signal.SIGINT}


def list_listening() -> set[str]:
    """Addresses of this network with a listener, as the kernel writes them."""
    rows = [
        line.split()
        for file in ("tcp", "tcp6")
        for line in Path("/proc/self/net", file).read_text().splitlines()[1:]
    ]
    return {row[1] for row in rows if row[3] == LISTENING}


@contextmanager
def serving(command: str, folder: Path) -> Iterator[None]:
    """The command, from when it listens; it must be there until it is ended."""
    before = list_listening()
    # A group of its own: Ctrl-C reaches all that the terminal started.
    process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, start_new_session=True)
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while not list_listening() - before:
            assert process.poll() is None, f"ended with {process.returncode}: {command}"
            assert time.monotonic() < deadline, f"does not listen: {command}"
            time.sleep(0.2)
        yield
        assert process.poll() is None, f"ended with {process.returncode}: {command}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        code = process.wait(PATIENCE_SECONDS)
    assert code in GOOD_ENDS, f"ended with {code}: {command}"


def run(command: str, folder: Path) -> None:
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, check=True, timeout=300)


def list_lines(block: Block) -> list[str]:
    """Commands without their remarks."""
    lines = [re.sub(r"\s+# .*$", "", line) for line in block.text.splitlines()]
    # What sets up is done already; it would change the installation that runs this.
    return [line for line in lines if line and not line.startswith("make ")]


def play(page: Path, folder: Path) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for block in list_blocks(page):
        if block.language != "sh":
            continue
        if block.place == "serves":
            for line in list_lines(block):
                with serving(line, folder):
                    pass
        elif block.place == "agent":
            with serving("nodescope agent --no-archive", folder):
                time.sleep(3)
                run(block.text, folder)
        elif block.runs:
            run("\n".join(list_lines(block)) or "true", folder)


if __name__ == "__main__":
    os.environ["PATH"] = f"{ROOT}/.venv/bin:{os.environ['PATH']}"
    play(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
