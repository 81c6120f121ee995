"""Small archives of a demo node, and the viewer over each."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
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


@pytest.fixture(scope="session")
def hour_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of ten containers: one is killed for memory, one restarts again and again."""
    return write_demo(tmp_path_factory.mktemp("hour") / "demo", containers=10, hours=1.0)


@pytest.fixture(scope="module")
def hour(hour_folder: Path) -> Iterator[Asker]:
    with Asker(hour_folder) as asker:
        yield asker


@pytest.fixture(scope="module")
def parquet(hour_folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The files of that hour themselves, as a table `samples`."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"CREATE TABLE samples AS SELECT * FROM read_parquet('{hour_folder}/dt=*/identifier=*/*.parquet',"
            " hive_partitioning = true, union_by_name = true)"
        )
        yield connection
