"""Viewer and MCP server: one heap, for Arrow as well, unless somebody has said otherwise."""

import subprocess
import sys

import pytest

from nodescope.commands.shared.one_heap import ARROW_POOL, share_one_heap


def test_what_somebody_has_set_is_left_alone() -> None:
    environment: dict[str, str] = {}
    share_one_heap(environment)
    assert environment == {ARROW_POOL: "system"}
    environment = {ARROW_POOL: "mimalloc"}
    share_one_heap(environment)
    assert environment == {ARROW_POOL: "mimalloc"}


@pytest.mark.parametrize("command", ["mcp", "viewer"])
def test_arrow_is_loaded_after_it_was_told(command: str) -> None:
    looks = (
        f"import sys, nodescope.commands.{command} as command\n"
        "assert 'pyarrow' not in sys.modules\n"
        "command.share_one_heap()\n"
        "import pyarrow\n"
        "print(pyarrow.default_memory_pool().backend_name)"
    )
    said = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "system"
