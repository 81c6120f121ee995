"""Without the native reader everything works, and says so in one line."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import NODES

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "native", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
LINE = "files are read by plain Python (the native reader was not built: there was no C compiler at installation)"
STATUS = """
import sys
from pathlib import Path
import nodescope
from tests.support import TurnableClock, build_parts_at, request_all
parts = build_parts_at(Path(sys.argv[1]), TurnableClock(), node="n")
parts.sampler.tick()
(status,) = request_all(parts, ["/status"])
print(nodescope.__file__)
print(status.json()["reader"])
"""


def run(folder: Path, *words: str) -> str:
    """A Python that finds nodescope in the folder; everything else comes from here."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "PYTHONSAFEPATH": "1"}
    environment.pop("NODESCOPE_READER", None)
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_without_compiler(folder: Path) -> Path:
    """The wheel as it is made where CC fails, unpacked."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert uv
    copy, wheels, target = folder / "copy", folder / "wheels", folder / "installed"
    copy.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    words = ["build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", str(wheels), str(copy)]
    subprocess.run(
        [uv, *words, "--python", sys.executable], env={**os.environ, "CC": "/bin/false"}, check=True
    )
    (wheel,) = wheels.glob("*.whl")
    assert wheel.name.endswith("py3-none-any.whl")
    words = ["pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run([uv, *words, "--python", sys.executable], check=True)
    return target


def remove_extension(folder: Path) -> Path:
    """An installation whose extension was removed."""
    ignored = shutil.ignore_patterns("_native*", "__pycache__")
    shutil.copytree(ROOT / "src" / "nodescope", folder / "nodescope", ignore=ignored)
    return folder


@pytest.mark.parametrize("make", [build_without_compiler, remove_extension])
def test_without_the_extension_all_works_and_one_line_says_so(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    """`nodescope sources` and /status name the reader; the reader's own tests pass."""
    folder = make(tmp_path)
    assert LINE in run(folder, "-m", "nodescope", "sources")
    where, reader = run(folder, "-c", STATUS, str(NODES / "cgroup2-systemd" / "t0")).split("\n")[:2]
    assert where.startswith(str(folder))
    assert reader == LINE.removeprefix("files are read by ")
    tests = [
        "tests/collect/files/test_batch.py",
        "tests/collect/files/test_layout.py",
        "tests/native/test_reader.py",
    ]
    said = run(folder, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *tests)
    # The twins of what is not there are skipped, and say so.
    assert "SKIPPED" in said
