"""
Builds the native reader when there is a compiler, and the viewer's page when there is Node.

Without a compiler nodescope is plain Python; without Node it has no web page.

NODESCOPE_BUILD_NATIVE=no (NODESCOPE_BUILD_WEB=no) leaves it out on purpose; =yes
makes a failure to build it an error.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ("native/module.c", "native/parse.c")
# abi3: one build for Python 3.11 and every later version.
LIBRARY = "src/nodescope/_native.abi3.so"
PAGE = "src/nodescope/use/viewer/static"


def build_native(folder: Path) -> str:
    """Compile the extension; the reason why not, or an empty string."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return "no C compiler"
    command = [
        compiler,
        "-O2",
        "-shared",
        "-fPIC",
        "-I",
        sysconfig.get_path("include"),
        *SOURCES,
        "-lm",
        "-o",
        LIBRARY,
    ]
    if sys.platform == "darwin":
        command += ["-undefined", "dynamic_lookup"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or ["the compiler failed"])[0]


def build_web(folder: Path) -> str:
    """Build the page into the package; the reason why not, or an empty string."""
    if not (folder / "tools/web").is_file():
        return "its sources are not here"
    words = dict(os.environ, CI="false")
    command = ["tools/web", "build"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=words)  # noqa: S603 - our own words
    if (folder / PAGE / "index.html").is_file():
        return ""
    return (done.stderr.strip().splitlines() or ["the build failed"])[-1]


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for wheels and for editable installs."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root)
        # An editable install sees the folder itself; tools/setup keeps the page in it new.
        if version != "editable":
            self.add_page(folder, build_data)
        self.add_native(folder, build_data)

    def add_page(self, folder: Path, build_data: dict[str, Any]) -> None:
        wish = os.environ.get("NODESCOPE_BUILD_WEB", "auto")
        reason = "left out by NODESCOPE_BUILD_WEB=no" if wish == "no" else build_web(folder)
        if not reason:
            build_data["artifacts"].append(f"{PAGE}/**")
        elif wish == "yes":
            raise RuntimeError(f"the web page could not be built: {reason}")
        else:
            sys.stderr.write(f"nodescope without its web page: {reason}\n")

    def add_native(self, folder: Path, build_data: dict[str, Any]) -> None:
        (folder / LIBRARY).unlink(missing_ok=True)
        wish = os.environ.get("NODESCOPE_BUILD_NATIVE", "auto")
        reason = "left out by NODESCOPE_BUILD_NATIVE=no" if wish == "no" else build_native(folder)
        if reason:
            if wish == "yes":
                raise RuntimeError(f"the native reader could not be built: {reason}")
            sys.stderr.write(f"nodescope without its native reader: {reason}\n")
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["artifacts"].append(LIBRARY)
