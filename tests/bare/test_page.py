"""The page that is committed is the one that its sources give, and every package carries it."""

import os
import runpy
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "src/nodescope/use/viewer/static"
TOOLS = ("bash", "basename", "cat", "cksum", "dirname", "env", "find", "sort", "xargs")


def look_without_node(folder: Path, root: Path) -> subprocess.CompletedProcess[str]:
    """`tools/web build` on a machine without Node: silent where the committed page is new."""
    path = folder / "bin"
    path.mkdir()
    for tool in TOOLS:
        found = next(place for place in ("/usr/bin", "/bin") if (Path(place) / tool).exists())
        (path / tool).symlink_to(f"{found}/{tool}")
    return subprocess.run(
        ["bash", str(root / "tools/web"), "build"],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_committed_page_was_built_from_the_sources_as_they_are(tmp_path: Path) -> None:
    """Where this fails: make web, and commit src/nodescope/use/viewer/static."""
    done = look_without_node(tmp_path, ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_sources_that_changed_since_are_noticed_without_node(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "tools").mkdir(parents=True)
    (copy / "tools/web").write_bytes((ROOT / "tools/web").read_bytes())
    (copy / "src/nodescope/use/viewer").mkdir(parents=True)
    (copy / "src/nodescope/use/viewer/static").symlink_to(STATIC)
    shutil.copytree(ROOT / "web/src", copy / "web/src")
    for name in (
        "index.html",
        "cluster.html",
        "export.html",
        "vite.config.ts",
        "tsconfig.json",
        "package-lock.json",
    ):
        (copy / "web" / name).write_bytes((ROOT / "web" / name).read_bytes())
    (copy / "web/src/model.ts").write_text("changed")
    done = look_without_node(tmp_path, copy)
    assert "the web page is older than its sources" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("builder", [SdistBuilder, WheelBuilder])
def test_every_package_has_the_page_and_the_page_to_take_away(
    builder: type[SdistBuilder | WheelBuilder],
) -> None:
    files = {os.path.relpath(file.path, ROOT) for file in builder(str(ROOT)).recurse_included_files()}
    folder = STATIC.relative_to(ROOT)
    assert {f"{folder}/index.html", f"{folder}/export.html"} <= files
    assert {f"{folder}/assets/{file.name}" for file in (STATIC / "assets").iterdir()} <= files


def test_a_wheel_is_named_by_the_machine_that_it_is_built_for() -> None:
    """`zig cc -target ...` builds for another; the name is all that installers look at."""
    module = runpy.run_path(str(ROOT / "hatch_build.py"))
    name = module["name_platform"]
    assert name({"NODESCOPE_WHEEL_PLATFORM": "linux_aarch64"}) == "linux_aarch64"
    assert name({}) == sysconfig.get_platform().replace("-", "_").replace(".", "_")
