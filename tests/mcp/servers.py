"""Real processes for the tests: viewers and MCP servers on ports of their own, ended with the test."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
START_SECONDS = 120.0


@contextmanager
def nodescope(*arguments: str | Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A command of ours that prints its address when it can be asked; the address, and the process."""
    command = [sys.executable, "-m", "nodescope", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield read_address(process), process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def read_address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    said = ""
    while select.select([process.stdout], [], [], START_SECONDS)[0]:
        line = process.stdout.readline()
        said += line
        if found := re.search(r"https?://\S+", line):
            return found.group()
        if not line:
            break
    raise AssertionError(f"it did not start: {said}")


def protocol_tools() -> Path:
    """The Inspector and the suite; installed on CI, skipped with one line where they are not there."""
    environment = {**os.environ, "PYTHON": sys.executable}
    versions = re.findall(
        r"^(?:inspector|conformance|node)=(.*)$", (HERE / "build").read_text(), re.MULTILINE
    )
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "nodescope-tools", f"mcp-{'-'.join(versions)}")
    if (folder / ".complete").exists():
        return folder
    if os.environ.get("CI") == "true":
        subprocess.run([HERE / "build"], check=True, env=environment)
        return folder
    pytest.skip("no MCP Inspector and conformance suite: run tests/mcp/build (needs npm, a minute, once)")
