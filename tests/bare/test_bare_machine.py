"""
A new user on a machine with Debian 12, Python, git and make: `make run`, then the page.

The seconds are printed and not asserted; a busy machine takes longer. What is fetched and what
lies on disk afterwards does not depend on the machine.
"""

import os
import shutil

import pytest
from tests.bare.machine import BareMachine
from tests.bare.trial import WAYS, check_bare, give_sources, open_browser, try_way

pytestmark = pytest.mark.real

FETCHED_MEBIBYTES = 130
DISK_MEBIBYTES = 450


@pytest.fixture
def machine() -> BareMachine:
    missing = [tool for tool in ("unshare", "debootstrap") if not shutil.which(tool)]
    if os.geteuid() or missing:
        reason = "needs root" if os.geteuid() else f"needs {missing[0]}; remedy: apt-get install debootstrap"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(f"a minimal Debian root {reason}")
    return BareMachine("bookworm")


def test_make_run_gives_a_new_user_the_page(machine: BareMachine, capsys: pytest.CaptureFixture[str]) -> None:
    with open_browser() as browser, machine:
        check_bare(machine)
        give_sources(machine)
        trial = try_way(machine, "bookworm", WAYS["clone"], browser)
    with capsys.disabled():
        print(f"\n{trial}")
    assert trial.fetched_mebibytes <= FETCHED_MEBIBYTES
    assert trial.disk_mebibytes <= DISK_MEBIBYTES
