"""What guides say to start starts, on the ports that they name, and ends by Ctrl-C."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, list_blocks, list_pages

pytestmark = pytest.mark.real

PAGES = [
    page for page in list_pages() if any(block.place in {"serves", "agent"} for block in list_blocks(page))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_the_page_s_servers_serve(page: Path, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root: a network of its own, in which every port is free")
    if "prometheus --config" in page.read_text() and not shutil.which("prometheus"):
        pytest.skip("no prometheus: apt-get install prometheus")
    for entry in ROOT.iterdir():
        if entry.name not in {".git", "artifacts", "demo"}:
            (tmp_path / entry.name).symlink_to(entry)
    # Into a file: a server that is left behind keeps a pipe open, and who reads it waits for it.
    output = tmp_path / ".output"
    with output.open("wb") as sink:
        done = subprocess.run(
            ["unshare", "--net", sys.executable, "-m", "tests.docs.serving", str(page), str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / ".state"), "NO_COLOR": "1"},
            stdout=sink,
            stderr=subprocess.STDOUT,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, output.read_text(errors="replace")[-5000:]
