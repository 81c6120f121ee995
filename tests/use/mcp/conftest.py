"""One small demo archive for all tests that only ask."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.use.mcp.asking import Asker, asking, write_demo


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("mcp-demo")
    return folder, write_demo(folder, seed=5, nodes=2, hours=0.4)


@pytest.fixture(scope="session")
def asker(demo: tuple[Path, dict[str, Any]]) -> Iterator[Asker]:
    with asking(demo[0]) as connected:
        yield connected
