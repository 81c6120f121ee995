"""What a server that answers from our own files loads: not DuckDB (60 MiB), not pandas, not Arrow's table of functions."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.use.mcp.asking import write_demo

from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.rollup import renew_rollups

SCRIPT = """
import asyncio, json, sys
from pathlib import Path
from nodescope.base.clock import SystemClock
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.nodes.local import LocalFolders
from nodescope.use.mcp.protocol.argument import check_arguments
from nodescope.use.mcp.tools import TOOLS

fleet = Fleet(LocalFolders([Path(sys.argv[1])], SystemClock()), SystemClock(), 60.0)
calls = json.loads(sys.argv[2])
for name, given in calls:
    tool = TOOLS[name]
    answer = asyncio.run(tool.run(fleet, check_arguments(name, tool.arguments, given)))
    assert answer.status == "found", (name, answer)
print(*sorted({"duckdb", "pandas", "pyarrow.compute"} & set(sys.modules)))
"""
CALLS = """[
    ["list_nodes", {}],
    ["top_containers", {"by": "memory", "from": "-24h"}],
    ["summarize_container", {"container": "cache"}],
    ["scan", {"study": "summary"}],
    ["summarize_node", {}]
]"""


@pytest.mark.parametrize("rolled", [False, True])
def test_our_own_files_need_neither_duckdb_nor_pandas(tmp_path: Path, rolled: bool) -> None:
    write_demo(tmp_path, seed=5, nodes=1, hours=0.6)
    folder = DataFolder(tmp_path / "demo-1")
    if rolled:
        assert sum(renew_rollups(Disk(), folder, one) for one in folder.partitions())
    assert ask(folder.path) == ""


def test_a_file_of_somebody_else_is_read_by_duckdb(tmp_path: Path) -> None:
    """A file without a sidecar: the same questions, and one library more."""
    write_demo(tmp_path, seed=5, nodes=1, hours=0.3)
    for path in (tmp_path / "demo-1").rglob("*.containers"):
        path.unlink()
    assert "duckdb" in ask(tmp_path / "demo-1", '[["top_containers", {"by": "memory", "from": "-24h"}]]')


def ask(folder: Path, calls: str = CALLS) -> str:
    done: Any = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), calls], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout.strip())
