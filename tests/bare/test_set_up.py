"""What a machine with Python alone is told and given by tools/setup."""

import os
import subprocess
from pathlib import Path

import pytest
from tools.set_up import (
    INDEX,
    UV_LOCK,
    Machine,
    choose_wheel,
    list_locked,
    make_environment,
    read_checksums,
    read_pip_conf,
)

ROOT = Path(__file__).resolve().parents[2]
# What tools/setup calls besides Python.
TOOLS = ("bash", "cat", "cksum", "dirname", "env", "rm", "uname")


def make_old_machine(folder: Path, system: str) -> dict[str, str]:
    """PATH with a Python 3.9 and nothing newer; the system says what it is."""
    for tool in TOOLS:
        found = next(path for path in ("/usr/bin", "/bin") if (Path(path) / tool).exists())
        (folder / tool).symlink_to(f"{found}/{tool}")
    python = folder / "python3"
    python.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    python.chmod(0o755)
    (folder / "os-release").write_text(system)
    return {"PATH": str(folder), "OS_RELEASE": str(folder / "os-release")}


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="macOS has its own remedy")
@pytest.mark.parametrize(
    ("system", "remedy"),
    [
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n', "sudo apt-get install python3.11"),
        ('ID=debian\nVERSION_ID="11"\n', "uv python install 3.13"),
        ('ID=rocky\nID_LIKE="rhel centos fedora"\n', "sudo dnf install python3.11"),
        ("ID=alpine\n", "apk add python3"),
    ],
)
def test_an_old_python_is_told_which_package_to_install(tmp_path: Path, system: str, remedy: str) -> None:
    done = subprocess.run(
        ["bash", "tools/setup", "run"],
        cwd=make_clone_without_state(tmp_path),
        env=make_old_machine(tmp_path, system),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "needs Python 3.11 or newer; here is Python 3.9.2" in done.stderr
    assert remedy in done.stderr


def make_clone_without_state(folder: Path) -> Path:
    """The files that tools/setup reads, and no .venv."""
    clone = folder / "clone"
    (clone / "tools").mkdir(parents=True)
    for name in ("tools/setup", "tools/set_up.py", "native", "src", "pyproject.toml", "hatch_build.py"):
        (clone / name).symlink_to(ROOT / name)
    for lock in ROOT.glob("requirements*.lock"):
        (clone / lock.name).symlink_to(lock)
    return clone


def test_the_wheel_for_each_machine_is_found_by_its_name() -> None:
    tails = (
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
        "musllinux_1_1_x86_64",
        "macosx_11_0_arm64",
    )
    release = "uv-1.2.3"
    addresses = [f"https://x/{name}-py3-none-{tail}.whl" for name in ("uv-1.2.2", release) for tail in tails]
    for machine, words in (
        (Machine("Linux", "x86_64"), ("manylinux", "x86_64")),
        (Machine("Linux", "aarch64"), ("manylinux", "aarch64")),
        (Machine("Linux", "x86_64", ""), ("musllinux", "x86_64")),
        (Machine("Darwin", "arm64"), ("macosx", "arm64")),
    ):
        name = choose_wheel(addresses, release, machine).rpartition("/")[2]
        assert all(word in name for word in (release, *words)), (machine, name)


def test_a_machine_without_a_wheel_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        choose_wheel(["https://x/uv-1-py3-none-manylinux_2_17_x86_64.whl"], "uv-1", Machine("Linux", "m68k"))
    assert "no uv-1 for Linux on m68k" in capsys.readouterr().err


def test_the_index_of_pip_is_the_index_of_uv(tmp_path: Path) -> None:
    """uv reads no pip.conf; a machine behind a mirror has its address there."""
    conf = tmp_path / "pip.conf"
    conf.write_text("[global]\nindex-url = https://mirror.example/simple/\ncert = /etc/own.pem\n")
    pip = read_pip_conf([str(conf), str(tmp_path / "none")])
    made = make_environment({"PYTHONPATH": "/elsewhere"}, pip)
    assert made["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert made["SSL_CERT_FILE"] == "/etc/own.pem"
    assert "PYTHONPATH" not in made
    assert (
        make_environment({"PIP_INDEX_URL": "https://b/simple"}, pip)["UV_DEFAULT_INDEX"] == "https://b/simple"
    )
    assert make_environment({}, {})["UV_DEFAULT_INDEX"] == INDEX


def test_all_lock_files_name_the_same_versions() -> None:
    everything = list_locked(ROOT / "requirements.lock")
    run = list_locked(ROOT / "requirements.run.lock") | list_locked(ROOT / "requirements.build.lock")
    assert len(run) > 20
    assert run <= everything
    assert len(list_locked(ROOT / UV_LOCK)) == 1


def test_lock_files_have_checksums_and_no_address() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        assert "://" not in text
        assert len(read_checksums(lock)) >= len(list_locked(lock))
