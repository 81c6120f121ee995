"""
Every shell block of the documentation that can run, runs, in the order of its page.

`console` blocks have commands after `$ ` and what these print, which must be so; a line
`...` stands for lines that the page leaves out.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, Block, list_blocks, list_pages

pytestmark = pytest.mark.real


def runnable(page: Path) -> list[Block]:
    return [
        block for block in list_blocks(page) if block.language in {"sh", "bash", "console"} and block.runs
    ]


PAGES = [page for page in list_pages() if runnable(page)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like the checkout, where a command may leave what it likes."""
    for entry in ROOT.iterdir():
        if entry.name not in {".git", "artifacts", "demo"}:
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_s_commands_work_from_top_to_bottom(page: Path, checkout: Path) -> None:
    environment = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}", "NO_COLOR": "1"}
    environment["XDG_STATE_HOME"] = str(checkout / ".state")
    for block in runnable(page):
        for command, shown in list_commands(block):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            assert shown is None or prints(done.stdout, shown), (
                f"{block}\n{shown}\n---\n{done.stdout[-4000:]}"
            )


def list_commands(block: Block) -> list[tuple[str, str | None]]:
    """Each command with what the page says it prints; None where it says nothing about that."""
    if block.language != "console":
        return [(block.text, None)]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block} begins with output"
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts[1:])]


def prints(output: str, shown: str) -> bool:
    wanted = "".join(
        ".*" if line == "..." else re.escape(line) + r"\n" for line in shown.rstrip("\n").split("\n") if shown
    )
    return re.fullmatch(wanted, output, flags=re.DOTALL) is not None
