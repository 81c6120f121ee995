"""What a machine with Python alone is told and given by tools/setup."""

import hashlib
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging import markers, tags
from tools.list_run_files import is_for_us
from tools.set_up import with_pip, with_uv
from tools.set_up.__main__ import main as set_up_main
from tools.set_up.index import (
    INDEX,
    INSTALLERS_LOCK,
    RUN_LOCKS,
    FetchFailed,
    list_locked,
    make_environment,
    read_checksums,
    read_pip_conf,
)
from tools.set_up.progress import Progress
from tools.set_up.with_pip import (
    Index,
    RunFile,
    choose_file,
    fetch_file,
    find_address,
    find_index,
    list_wanted,
    name_release,
    read_file,
    read_run_files,
)
from tools.set_up.with_uv import Machine, choose_wheel

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
    for name in ("tools/setup", "tools/set_up", "native", "src", "pyproject.toml", "hatch_build.py"):
        (clone / name).symlink_to(ROOT / name)
    for lock in ROOT.glob("requirements*"):
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
    assert {name for name, _ in list_locked(ROOT / INSTALLERS_LOCK)} == {"pip", "uv"}


def test_lock_files_have_checksums_and_no_address() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        assert "://" not in lock.read_text()
        assert len(read_checksums(lock)) >= len(list_locked(lock))


# -- what runs is fetched without the index's lists ------------------------------------

# With pip's own wheel.
FETCHED_BYTES = 128_000_000
MACHINES = [
    (python, platform)
    for python in ((3, 11), (3, 12), (3, 13), (3, 14))
    for platform in ("manylinux_2_36_x86_64", "manylinux_2_36_aarch64", "macosx_15_0_arm64")
]


def rank_tags(python: tuple[int, int], platform: str) -> dict[tags.Tag, int]:
    """As a machine of that kind has them; every older C library's wheels fit, too."""
    family, major, minor, processor = platform.split("_", 3)
    if family == "macosx":
        platforms = list(tags.mac_platforms((int(major), int(minor)), processor))
    else:
        platforms = [f"{family}_{major}_{lower}_{processor}" for lower in range(int(minor), -1, -1)]
        platforms += [f"{family}{year}_{processor}" for year in (2014, 2010, 1)]
    both = [
        *tags.cpython_tags(python, platforms=platforms),
        *tags.compatible_tags(python, platforms=platforms),
    ]
    return {tag: rank for rank, tag in enumerate(both)}


@pytest.mark.parametrize(("python", "platform"), MACHINES)
def test_every_package_that_runs_has_a_listed_file(python: tuple[int, int], platform: str) -> None:
    """Where this fails: make lock."""
    files, ranks = read_run_files(), rank_tags(python, platform)
    full = ".".join(str(part) for part in python) + ".0"
    environment = {
        "python_full_version": full,
        "python_version": full[:-2],
        "sys_platform": "darwin" if "macosx" in platform else "linux",
    }
    wanted = [
        name_release(name, version)
        for lock in RUN_LOCKS
        for name, version, marker in with_pip.LOCKED.findall((ROOT / lock).read_text())
        if not marker or markers.Marker(marker).evaluate(environment)
    ]
    assert len(wanted) > 50
    chosen = {release: choose_file(files, release, ranks, tags) for release in wanted}
    assert [release for release, file in chosen.items() if file is None] == []
    assert sum(file.size_bytes for file in chosen.values() if file) < FETCHED_BYTES


def test_the_best_wheel_is_taken_and_a_strange_one_is_not() -> None:
    ranks = rank_tags((3, 12), "manylinux_2_36_x86_64")
    names = (
        "aa/x_y-1.0-cp312-cp312-manylinux_2_17_x86_64.whl",
        "bb/x_y-1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
        "cc/x_y-1.0-py3-none-any.whl",
        "dd/x_y-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "ee/x_y-1.1-cp312-cp312-manylinux_2_28_x86_64.whl",
    )
    files = [RunFile(name, 1) for name in names]
    assert choose_file(files, "x_y-1.0", ranks, tags) == files[1]
    assert choose_file(files[3:4], "x_y-1.0", ranks, tags) is None


def test_markers_of_a_lock_file_count(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text(
        "a-b==1.0 \\\n    --hash=sha256:00\nc==2 ; sys_platform == 'emscripten' \\\n    --hash=sha256:00\nd==3 \\\n"
    )
    assert list(list_wanted([lock], markers)) == ["a_b-1.0", "d-3"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a-1-py3-none-any.whl", True),
        ("a-1-cp311-abi3-manylinux_2_28_aarch64.whl", True),
        ("a-1-cp311-abi3-musllinux_1_2_aarch64.whl", False),
        ("a-1-cp313-cp313-macosx_11_0_arm64.whl", True),
        ("a-1-cp313-cp313t-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp310-cp310-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp313-cp313-win_amd64.whl", False),
        ("a-1-cp313-cp313-manylinux_2_28_ppc64le.whl", False),
        ("a-1.tar.gz", False),
    ],
)
def test_files_are_listed_for_machines_that_make_run_meets(name: str, *, wanted: bool) -> None:
    assert is_for_us(name) is wanted


PLACE = "12/34/abc/x_y-1.0-py3-none-any.whl"
FILE = RunFile(PLACE, 9)


class Mirror(http.server.BaseHTTPRequestHandler):
    """A package index with one wheel, by the public index's places and by its own."""

    gone: frozenset[str] = frozenset()

    def do_GET(self) -> None:
        pages = {
            "/simple/x-y/": f'<a href="../../files/{FILE.name}#sha256=00">x</a>',
            "/public/x-y/": f'<a href="../../packages/{PLACE}#sha256=00">x</a>',
            "/moved/x-y/": f'<a href="/packages/{PLACE}">x</a><a href="../../files/{FILE.name}">x</a>',
            f"/files/{FILE.name}": "the wheel",
            f"/packages/{PLACE}": "the wheel",
        }
        body = pages.get(self.path, "").encode()
        if not body or self.path in self.gone:
            self.send_error(404, "no such package")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def mirror() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_the_list_of_a_known_file_tells_the_folder_of_all(mirror: str) -> None:
    assert find_index(f"{mirror}/public", FILE) == Index(f"{mirror}/public", f"{mirror}/packages")


def test_an_index_with_another_order_is_asked_where_the_file_lies(mirror: str) -> None:
    index = find_index(f"{mirror}/simple", FILE)
    assert index.folder is None
    assert find_address(index, FILE) == f"{mirror}/files/{FILE.name}"


def test_a_file_that_is_not_in_its_place_is_looked_up(mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = {hashlib.sha256(b"the wheel").hexdigest()}
    index = Index(f"{mirror}/simple", f"{mirror}/packages")
    assert read_file(index, FILE, right, Progress()) == b"the wheel"
    monkeypatch.setattr(Mirror, "gone", frozenset([f"/packages/{PLACE}"]))
    assert read_file(index, FILE, right, Progress()) == b"the wheel"
    monkeypatch.setattr(Mirror, "gone", frozenset([f"/packages/{PLACE}", f"/files/{FILE.name}"]))
    with pytest.raises(FetchFailed, match="no such package"):
        read_file(index, FILE, right, Progress())


def test_an_index_without_the_file_is_told_in_one_line(mirror: str) -> None:
    index = Index(f"{mirror}/simple", None)
    with pytest.raises(FetchFailed, match=r"/simple/x-y/ has no x_y-2.0-py3-none-any.whl; [^\n]+$"):
        find_address(index, RunFile("12/34/abc/x_y-2.0-py3-none-any.whl", 9))
    with pytest.raises(FetchFailed, match=r"/simple/z/: no such package; [^\n]+$"):
        find_address(index, RunFile("12/34/abc/z-2.0-py3-none-any.whl", 9))


def test_set_up_ends_with_the_line(
    mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{mirror}/empty")
    monkeypatch.setattr(with_uv, "find_uv", lambda: None)
    monkeypatch.setattr(with_pip, "WHEELS", tmp_path / "wheels")
    monkeypatch.setattr(with_pip, "is_made", lambda: True)
    with pytest.raises(SystemExit):
        set_up_main("run")
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "/empty/pip/: no such package; another package index is set by PIP_INDEX_URL" in told[1]


def test_a_file_is_believed_by_its_checksum_only(
    mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(with_pip, "WHEELS", tmp_path)
    index = Index(f"{mirror}/simple", None)
    with pytest.raises(FetchFailed, match=r"is not the file of the lock file \(checksum\); not used"):
        fetch_file(index, FILE, {"0" * 64}, Progress())
    assert list(tmp_path.iterdir()) == []
    right = hashlib.sha256(b"the wheel").hexdigest()
    assert fetch_file(index, FILE, {right}, Progress()).read_bytes() == b"the wheel"


def test_progress_names_the_largest_that_are_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    for name, mebibytes in (("a", 5.0), ("b", 50.0), ("c", 2.0), ("d", 0.1), ("e", 0.2)):
        progress.begin(name, mebibytes)
    progress.begin("b", 50.0)
    for name in ("c", "d", "a", "b", "e"):
        progress.end(name)
    told = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert told[:3] == ["fetching a (5 MiB)", "fetching b (50 MiB)", "fetching c (2 MiB)"]
    assert told[3:] == [
        "2 of 57 MiB fetched; b, a, e, ... to come",
        "7 of 57 MiB fetched; b, e to come",
        "57 of 57 MiB fetched; e to come",
        "57 of 57 MiB fetched",
    ]
