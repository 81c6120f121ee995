"""Google's and Azure's stores, as S3 elsewhere: copied, read back, asked; credentials from the environment."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.azure import server as azure_server
from tests.fleet.conftest import Fleet, copy_all
from tests.fleet.test_bucket import answer_of, emptied_and_copied_again, rows_served, start_copy
from tests.gcs import server as gcs_server
from tests.s3.server import ServerMissing

from nodescope.read.files.file_survey import survey_roots

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
Server = azure_server.Azure | gcs_server.Gcs
SERVERS: dict[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "gs": gcs_server.serve,
    "abfs": azure_server.serve,
}


@pytest.fixture(scope="module", params=sorted(SERVERS))
def bucket(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty bucket's address; this process and its children have the credentials."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            with SERVERS[request.param](tmp_path_factory.mktemp(request.param)) as server:
                for name, value in server.environment.items():
                    patch.setenv(name, value)
                yield server.make_bucket("fleet")
        except ServerMissing as missing:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(missing))


def test_copied_killed_resumed_and_asked(fleet: Fleet, bucket: str, tmp_path: Path) -> None:
    """The node that leaks: the same rows once, the same answer as from its disk."""
    leaking = fleet.truth("leak")[0]["node"]
    data = tmp_path / "data"
    shutil.copytree(fleet.path / leaking, data)
    url = f"{bucket}/archive"
    child = start_copy(data, url)
    child.kill()
    child.communicate()
    rows = sum(file.rows for file in survey_roots([str(data)]).files)
    assert rows_served(url) in (0, rows)
    done = copy_all(data, url)
    assert not done.failures
    assert rows_served(url) == rows
    (data / "copy").rename(tmp_path / "lost ledger")
    again = copy_all(data, url)
    assert again.files == 0
    there = answer_of(url)
    assert there == answer_of(str(data))
    assert there
    emptied_and_copied_again(data, url)


def test_the_commands_take_the_address(fleet: Fleet, bucket: str, tmp_path: Path) -> None:
    """consolidate sends, fleet files lists, and the name it lists can be read."""
    data = tmp_path / "data"
    shutil.copytree(fleet.path / "demo-1", data)
    url = f"{bucket}/command"
    sent = run("consolidate", "--data", str(data), "--once", "--no-retention", "--copy-to", url)
    assert sent.returncode == 0, sent.stderr
    assert "1 copied" in sent.stdout
    listed = run("fleet", "files", url)
    assert listed.returncode == 0, listed.stderr
    local = next(data.glob("dt=*/*/consolidated-*.parquet"))
    assert listed.stdout == f"{url}/{local.relative_to(data)}\n"


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "nodescope", *words], capture_output=True, text=True, check=False
    )
