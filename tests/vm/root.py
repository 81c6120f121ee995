"""
The guest's disks: a root with busybox and Python, and one with the project.

The root holds the base Python of the checkout's `.venv` at its own absolute
path (its prefix is compiled in), the shared libraries that ldd names, and the
run-time dependencies of nodescope under `/opt/site`. The editable install of
the checkout is not in it: `PYTHONPATH` in `guest/init` names the second disk
instead. So the root changes only with Python, a dependency or busybox, and is
built once; the second disk is a few hundred kilobytes and is made every time.
"""

import compileall
import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

from packaging.requirements import Requirement
from tests.vm.parts import cache_folder, digest, make_once, run_quietly

SITE = "opt/site"
# Parts of the standard library that an agent never imports: half of its bytes.
LEFT_OUT = (
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "config-*",
)
# The project, its bytecode and what the scenario writes there: a guess with room.
PROJECT_DISK = "64M"


def find_dependencies(name: str) -> Iterator[importlib.metadata.Distribution]:
    """What nodescope needs to run, and nothing of the development tools."""
    wanted, seen = [name], {name}
    while wanted:
        distribution = importlib.metadata.distribution(wanted.pop())
        if distribution.name != name:
            yield distribution
        for line in distribution.requires or ():
            requirement = Requirement(line)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if needed and requirement.name not in seen:
                seen.add(requirement.name)
                wanted.append(requirement.name)


def find_libraries(binaries: Iterable[Path]) -> set[Path]:
    # ldd exits 1 when one of many files is not dynamic; that is no failure.
    done = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False)
    return {Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(0x", done.stdout, re.MULTILINE)}


def copy_into(root: Path, path: Path) -> None:
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def copy_python(root: Path) -> None:
    executable = Path(sys.executable).resolve()
    copy_into(root, executable)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    (root / "usr/bin/python").symlink_to(executable)
    for kind in ("stdlib", "platstdlib"):
        library = Path(sysconfig.get_path(kind, vars={"base": sys.base_prefix, "platbase": sys.base_prefix}))
        shutil.copytree(
            library,
            root / library.relative_to("/"),
            ignore=shutil.ignore_patterns(*LEFT_OUT),
            dirs_exist_ok=True,
        )


def copy_site(root: Path) -> None:
    for distribution in find_dependencies("nodescope"):
        for file in distribution.files or ():
            target = root / SITE / file
            if ".." in file.parts or not file.locate().is_file():  # type: ignore[attr-defined]
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(file.locate()), target)


def copy_busybox(root: Path, busybox: Path) -> None:
    (root / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(busybox, root / "bin/busybox")
    for applet in run_quietly([str(busybox), "--list"]).split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")


def write_image(folder: Path, image: Path, size: str) -> None:
    """An ext4 image of a folder; mke2fs needs neither a mount nor root for it."""
    tool = shutil.which("mke2fs", path="/usr/sbin:/sbin:/usr/bin:/bin") or "mke2fs"
    run_quietly(
        [tool, "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", str(folder), str(image), size]
    )


def read_root_key(parts: Path) -> str:
    records = [
        f"{distribution.name} {distribution.read_text('RECORD')}"
        for distribution in sorted(find_dependencies("nodescope"), key=lambda one: one.name)
    ]
    here = Path(__file__).read_text(encoding="utf-8")
    init = Path(__file__).with_name("guest") / "init"
    return digest(parts.name, sys.version, sys.base_prefix, here, init.read_text(encoding="utf-8"), *records)


def build_root(parts: Path) -> Path:
    """The root image, read-only for every run; built once per set of inputs."""

    def fill(folder: Path) -> None:
        print("# building the root image (once)", flush=True)
        root = folder / "root"
        for name in ("dev", "proc", "sys", "run", "tmp", "opt/nodescope", "var/log"):
            (root / name).mkdir(parents=True)
        copy_busybox(root, parts / "busybox")
        copy_python(root)
        copy_site(root)
        binaries = [Path(sys.executable).resolve(), *root.rglob("*.so"), *root.rglob("*.so.*")]
        for library in find_libraries(binaries):
            # numpy's own libraries are beside it and found from there.
            if not library.is_relative_to(root):
                copy_into(root, library)
        shutil.copy2(parts / "veth.ko", root / "lib/veth.ko")
        shutil.copy2(Path(__file__).with_name("guest") / "init", root / "init")
        megabytes = sum(file.lstat().st_size for file in root.rglob("*")) >> 20
        # Inode tables and block rounding take up to a fifth; the rest is room
        # for the scenario's own files.
        write_image(root, folder / "root.img", f"{megabytes * 5 // 4 + 192}M")
        shutil.rmtree(root)

    return make_once(cache_folder(read_root_key(parts)), fill) / "root.img"


def build_project(checkout: Path, folder: Path) -> Path:
    """
    The checkout's `src` and the guest's scenario, with bytecode; beside what is in `project` already.

    Python is 11 to 18 times slower inside: compiling there would cost seconds.
    """
    for name in ("src", "tests/vm/guest"):
        shutil.copytree(
            checkout / name, folder / "project" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    compileall.compile_dir(folder / "project", quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    image = folder / "project.img"
    write_image(folder / "project", image, PROJECT_DISK)
    return image
