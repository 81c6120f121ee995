"""What the real tests need of the machine, and what they say where it is not there."""

import os
import shutil
from collections.abc import Iterator

import pytest
from tests.cgroups import Cgroups, why_not


def need_tool(name: str) -> str:
    """The program's path; a skip with the remedy where it is not installed, a failure in CI."""
    path = shutil.which(name)
    if path:
        return path
    message = f"{name} is not installed; remedy: tools/test-parts, as root"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def promtool() -> str:
    return need_tool("promtool")


@pytest.fixture
def openssl() -> str:
    return need_tool("openssl")


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    """Real cgroups; all of them, and what runs inside, are gone afterwards."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cgroups() as made:
        yield made
