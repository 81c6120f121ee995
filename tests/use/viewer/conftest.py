"""A small archive of a demo node, and the viewer over it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.use.viewer.archives import write_demo
from tests.use.viewer.asking import Asker


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty minutes of eight containers."""
    return write_demo(tmp_path_factory.mktemp("viewer") / "demo")


@pytest.fixture(scope="session")
def viewer(archive: Path) -> Iterator[Asker]:
    with Asker(archive) as asker:
        yield asker
