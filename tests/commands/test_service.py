"""nodescope as a service of systemd: what is written, how narrow it is, and what is said where it cannot be."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nodescope.base.errors import SettingsRejected
from nodescope.base.settings_load import choose_data, load_settings
from nodescope.cli import main
from nodescope.commands.system.service import PLACE, START, UNIT, render_unit
from nodescope.commands.up import shorten_home

# `systemd-analyze security`, times ten: 3.0.
EXPOSURE = 30
ROOT = Path(__file__).parents[2]


def test_install_writes_a_unit_that_starts_this_nodescope(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["service", "--prefix", str(tmp_path), "install", "--port", "8060"]) == 0
    unit = (tmp_path / PLACE).read_text()
    [start] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert start.endswith("nodescope up --data /var/lib/nodescope --port 8060")
    assert Path(start.removeprefix("ExecStart=").split()[0]).exists()
    assert str(tmp_path / PLACE) in capsys.readouterr().out


def test_removal_leaves_the_archive_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "--prefix", str(tmp_path), "install"]) == 0
    assert main(["service", "--prefix", str(tmp_path), "remove"]) == 0
    assert not (tmp_path / PLACE).exists()
    assert "the archive stays in /var/lib/nodescope" in capsys.readouterr().out
    assert main(["service", "--prefix", str(tmp_path), "remove"]) == 1
    assert "nothing to remove" in capsys.readouterr().err


def test_status_of_what_is_not_installed_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["service", "--prefix", str(tmp_path), "status"]) == 1
    assert capsys.readouterr().err == (
        f"nodescope service: not installed: {tmp_path / PLACE} is not there; sudo nodescope service install\n"
    )
    assert main(["service", "--prefix", str(tmp_path), "status", "--port", "1"]) == 2


@pytest.mark.parametrize("action", ["install", "remove"])
def test_who_may_not_is_told_who_may(
    action: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main(["service", action]) == 1
    assert capsys.readouterr().err == (
        f"nodescope service: only root may {action} a service: sudo nodescope service {action}\n"
    )


def test_a_user_of_systemd_s_making_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamicUser without libnss-systemd: neither HOME nor an entry among the users."""

    def refuse() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", refuse)
    assert shorten_home(Path("/var/lib/nodescope")) == "/var/lib/nodescope"
    with pytest.raises(SettingsRejected, match="no home folder to keep data in; name one: --data DIR"):
        choose_data(load_settings({}, {}, {}).settings, {})


def test_only_a_host_of_ones_own_opens_the_unit_to_the_network() -> None:
    text = UNIT.read_text()
    assert "IPAddressDeny=any" in render_unit(text, "/n", ["--port", "1"])
    opened = render_unit(text, "/n", ["--host", "0.0.0.0"])  # noqa: S104
    assert "IPAddress" not in opened
    assert "ExecStart=/n up --data /var/lib/nodescope --host 0.0.0.0\n" in opened


def test_the_unit_in_deploy_is_the_one_that_is_installed() -> None:
    assert (ROOT / "deploy/systemd/nodescope.service").resolve() == UNIT.resolve()
    assert UNIT.read_text().count(START) == 1


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze: apt-get install systemd")
@pytest.mark.parametrize(("taken_out", "narrow"), [("", True), ("CapabilityBoundingSet SystemCall", False)])
def test_systemd_finds_the_unit_narrow(tmp_path: Path, taken_out: str, narrow: bool) -> None:
    """Below 3.0; a unit without two of its fences is above it, so the look can fail."""
    lines = UNIT.read_text().splitlines()
    kept = [line for line in lines if not any(line.startswith(word) for word in taken_out.split())]
    unit = tmp_path / "nodescope.service"
    unit.write_text("\n".join(kept).replace("/usr/local/bin/nodescope", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == narrow, done.stdout[-400:]
