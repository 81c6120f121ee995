"""The documented one-liners of docs/guides/parquet.md, run as they stand there."""

import re
import shutil
from pathlib import Path

import duckdb
import pytest

from nodescope.keep.consolidator import Consolidator
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "parquet.md"
END_MS = 1_772_366_400_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that may irritate: sidecars, log, rollups, session, consolidated files."""
    path = tmp_path_factory.mktemp("archive") / "data"
    write_node(DemoRequest(path, 1.5, 8, 3, END_MS, "n1"), "0", lambda share: None)
    Consolidator(Disk(), DataFolder(path)).run_pass(END_MS + 400_000)
    (path / "wal").mkdir(exist_ok=True)
    (path / "wal" / "run-000001.open").write_bytes(b"a log")
    return path


def snippet(name: str) -> str:
    """The code block behind the heading `## <name>`."""
    match = re.search(rf"^## {name}\n.*?```python\n(.*?)```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert match, f"docs/guides/parquet.md has no {name}"
    return match[1]


def run_snippet(name: str, data: Path) -> int:
    scope: dict[str, object] = {}
    code = snippet(name).replace("/path/to/data", str(data))
    exec(code, scope)  # noqa: S102 - our own documentation
    return int(str(scope["rows"]))


def count_rows(data: Path) -> int:
    row = duckdb.execute(
        f"SELECT count(*) FROM read_parquet('{data}/dt=*/identifier=*/*.parquet')"
    ).fetchall()
    return int(row[0][0])


@pytest.mark.real
@pytest.mark.parametrize("name", ["DuckDB", "pyarrow", "pandas", "polars"])
def test_the_documented_line_reads_every_row(name: str, data: Path) -> None:
    assert run_snippet(name, data) == count_rows(data)


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("java"), reason="needs Java: apt-get install default-jre-headless")
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_every_row(data: Path) -> None:
    assert run_snippet("Spark", data) == count_rows(data)
