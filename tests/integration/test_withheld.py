"""A data folder that belongs to somebody else: one clear line for each command, and the agent goes on."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.cgroups import Cgroups
from tests.integration.agents import free_port, wait_for

from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest

pytestmark = pytest.mark.real
END_MS = 1_772_366_400_000
NOBODY = 65534
# Root without the right to pass by a folder's permissions.
DROP = ["-dac_override,-dac_read_search"]
PLAIN_ROOT = ["setpriv", "--bounding-set", *DROP, "--inh-caps", *DROP]


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Path]:
    """An archive that may not be looked into."""
    data = tmp_path / "data"
    write_node(DemoRequest(data, 0.1, 3, 3, END_MS, "n1"), "0", lambda _: None)
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv: root may read everything")
        os.chown(data, NOBODY, NOBODY)
    data.chmod(0o700 if os.geteuid() == 0 else 0o000)
    yield data
    data.chmod(0o755)


def command(*words: str) -> list[str]:
    return [*(PLAIN_ROOT if os.geteuid() == 0 else []), sys.executable, "-m", "nodescope", *words]


@pytest.mark.parametrize("inside", ["", "inner"], ids=["itself", "inside it"])
@pytest.mark.parametrize(
    "words",
    [
        ["containers", "DATA"],
        ["metrics", "DATA"],
        ["study", "trend", "DATA", "--metric", "memory"],
        ["export", "DATA", "--out", "OUT.csv"],
        ["export", "DATA", "--out", "OUT.html"],
        ["fleet", "top", "DATA"],
        ["consolidate", "--data", "DATA", "--once"],
    ],
    ids=lambda words: " ".join(word for word in words if word.islower()),
)
def test_one_line_names_what_may_not_be_read(
    foreign: Path, tmp_path: Path, words: list[str], inside: str
) -> None:
    given = [
        word.replace("DATA", str(foreign / inside)).replace("OUT", str(tmp_path / "x")) for word in words
    ]
    done = subprocess.run(command(*given), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert str(foreign) in lines[0]
    assert "ermission denied" in lines[0]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_an_agent_without_rights_names_the_cgroups_that_it_may_not_look_into(tmp_path: Path) -> None:
    """Containers that cannot be seen are not none: /status names the folder, /metrics counts it."""
    address = f"127.0.0.1:{free_port()}"
    words = ["agent", "--no-archive", "--no-kubernetes", "--listen", address]
    rights = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--bounding-set", "-all"]
    with Cgroups() as cgroups, (tmp_path / "log").open("wb") as log:
        cgroups.container()
        agent = subprocess.Popen(
            ["setpriv", *rights, "--inh-caps", "-all", sys.executable, "-m", "nodescope", *words],
            stdout=log,
            stderr=log,
        )

        def closed() -> dict[str, str]:
            try:
                found = httpx.get(f"http://{address}/status", timeout=5).json()["containers"]["cut"]
            except httpx.TransportError:
                return {}
            return {path: why for path, why in found.items() if path.startswith("/kubepods")}

        try:
            found = wait_for(closed, "folders that may not be listed", 60)
            assert all("permission denied" in why for why in found.values())
            text = httpx.get(f"http://{address}/metrics", timeout=20).text
            (line,) = [line for line in text.splitlines() if line.startswith("nodescope_cgroups_cut ")]
            assert int(line.split()[1]) >= 1
        finally:
            agent.terminate()
            agent.wait(60)


def test_an_agent_samples_on_and_says_why_nothing_is_kept(foreign: Path) -> None:
    """And keeps again as soon as it may."""
    address = f"127.0.0.1:{free_port()}"
    agent = subprocess.Popen(
        command("agent", "--data", str(foreign / "inner"), "--listen", address, "--no-kubernetes"),
        stderr=subprocess.PIPE,
        text=True,
    )

    def archive() -> dict[str, object]:
        answer = httpx.get(f"http://{address}/status", timeout=5).json()["archive"]
        assert isinstance(answer, dict)
        return answer

    def is_paused() -> bool:
        try:
            return archive()["state"] == "paused"
        except httpx.TransportError:
            return False

    try:
        wait_for(is_paused, "a paused archive")
        assert "ermission denied" in str(archive()["reason"])
        os.chown(foreign, os.geteuid(), os.getegid())
        foreign.chmod(0o700)
        wait_for(lambda: archive()["state"] == "writing", "an archive that is written again", 60)
    finally:
        agent.terminate()
        _, said = agent.communicate(timeout=60)
    assert "Traceback" not in said
    assert list((foreign / "inner").glob("dt=*/*/*.parquet"))
