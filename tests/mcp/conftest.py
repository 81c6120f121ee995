"""One demo archive, one MCP server over it, and a viewer for each of its nodes, for all tests here."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.mcp.servers import nodescope
from tests.use.mcp.asking import write_demo


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp-archive")
    write_demo(folder, seed=11, nodes=2, hours=0.35, containers=7)
    return folder


@pytest.fixture(scope="session")
def server(archive: Path) -> Iterator[str]:
    # Answers are what is tested here; ten seconds may be too short on a machine with many neighbours.
    with nodescope("mcp", archive, "--port", "0", "--deadline", "2m") as (address, _):
        yield address


@pytest.fixture(scope="session")
def viewers(archive: Path) -> Iterator[dict[str, str]]:
    """By node: the address of its viewer."""
    with ExitStack() as stack:
        yield {
            node: stack.enter_context(nodescope("viewer", archive / node, "--port", "0"))[0]
            for node in ("demo-1", "demo-2")
        }
