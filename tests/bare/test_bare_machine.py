"""
A new user on a machine with Debian 12 or 13, Python, git and make: `make run` or a package, then the page.

The seconds are printed and not asserted; a busy machine takes longer. What is fetched and what
lies on disk afterwards does not depend on the machine.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bare.machine import ROOT, BareMachine
from tests.bare.trial import WAYS, check_bare, give_packages, give_sources, open_browser, try_way
from tests.integration.agents import wait_for

pytestmark = pytest.mark.real

FETCHED_MEGABYTES = 130
DISK_MEGABYTES = 450


def need_root() -> None:
    missing = [tool for tool in ("unshare", "debootstrap") if not shutil.which(tool)]
    if os.geteuid() or missing:
        reason = "needs root" if os.geteuid() else f"needs {missing[0]}; remedy: apt-get install debootstrap"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(f"a minimal Debian root {reason}")


def make_machine(suite: str) -> BareMachine:
    need_root()
    return BareMachine(suite)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, and the wheel without C that is built from it."""
    need_root()
    folder = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist"), "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    [archive] = (folder / "dist").glob("*.tar.gz")
    subprocess.run(["tar", "-C", str(folder), "-xzf", str(archive)], check=True)
    [sources] = folder.glob("nodescope-*")
    plain = {**os.environ, "NODESCOPE_BUILD_NATIVE": "no"}
    subprocess.run([*build, "wheel"], cwd=sources, env=plain, check=True, stdout=subprocess.DEVNULL)
    return folder / "dist"


@pytest.mark.parametrize("way", ["pip", "uv", "uvx", "pipx", "sdist"])
def test_a_package_gives_a_new_user_the_page(
    way: str, packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with make_machine("trixie") as machine, open_browser() as browser:
        check_bare(machine)
        give_packages(machine, packages)
        trial = try_way(machine, "trixie", WAYS[way], browser)
    with capsys.disabled():
        print(f"\n{trial}")
    # Installers of others read the index's lists as well, compressed or not.
    assert trial.files_megabytes <= FETCHED_MEGABYTES


def test_make_run_gives_a_new_user_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with make_machine("bookworm") as machine, open_browser() as browser:
        check_bare(machine)
        give_sources(machine)
        trial = try_way(machine, "bookworm", WAYS["clone"], browser)
    with capsys.disabled():
        print(f"\n{trial}")
    assert trial.fetched_megabytes <= FETCHED_MEGABYTES
    assert trial.disk_megabytes <= DISK_MEGABYTES


def test_what_runs_on_a_bare_machine_ends_with_it() -> None:
    with make_machine("bookworm") as machine:
        output = machine.work / "output"
        with output.open("wb") as sink:
            process = machine.start("echo started; exec sleep 4321", sink)
        machine.await_line(process, output, "started", 60)
        [first] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        machine.end(process)
        # Not there, or ended and not yet taken note of.
        status = Path(f"/proc/{first}/stat")
        wait_for(lambda: not status.exists() or status.read_text().split()[2] == "Z", "its end")
