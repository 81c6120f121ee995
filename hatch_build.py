"""
Builds the native reader when there is a compiler; without one, nodescope is plain Python.

NODESCOPE_BUILD_NATIVE=no leaves it out on purpose; =yes makes a failure to build it an error. The
viewer's page is part of the sources (tools/web builds it), so that a wheel never lacks it.

CC may have flags. A compiler for another machine (`zig cc -target aarch64-linux-musl`) needs that machine's
name as well, for the wheel's own: NODESCOPE_WHEEL_PLATFORM=linux_aarch64.

NODESCOPE_REPOSITORY=https://github.com/OWNER/NAME, which a release sets, makes the links of the
package's description absolute and names the project's addresses.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

SOURCES = ("native/module.c", "native/parse.c", "native/arenas.c")
# abi3: one build for Python 3.11 and every later version.
LIBRARY = "src/nodescope/_native.abi3.so"
PAGES = ("src/nodescope/use/viewer/static/index.html", "src/nodescope/use/viewer/static/export.html")


def build_native(folder: Path) -> str:
    """Compile the extension; the reason why not, or an empty string."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return "no C compiler"
    command = [
        *shlex.split(compiler),
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


def name_platform(environment: Mapping[str, str]) -> str:
    """As wheels name it: this machine, or the one that the compiler builds for."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return environment.get("NODESCOPE_WHEEL_PLATFORM") or here


LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def render_description(text: str, repository: str) -> str:
    """The README with links that lead somewhere from a package index; as it is where no repository is named."""
    if not repository:
        return text

    def replace(found: re.Match[str]) -> str:
        is_picture = found[1].endswith((".png", ".svg", ".gif", ".webp"))
        return f"]({repository}/{'raw' if is_picture else 'blob'}/main/{found[1]})"

    return LINK.sub(replace, text)


class DescriptionHook(MetadataHookInterface):
    """Called by hatchling for the package's metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        repository = os.environ.get("NODESCOPE_REPOSITORY", "").rstrip("/")
        text = render_description((Path(self.root) / "README.md").read_text(), repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if repository:
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{repository}/tree/main/docs",
                "Changes": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for wheels and for editable installs."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's
        folder = Path(self.root)
        for page in PAGES:
            if not (folder / page).is_file():
                raise RuntimeError(f"{page} is missing; run: make web")
        if self.target_name == "wheel":
            self.add_native(folder, build_data)

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
        build_data["tag"] = f"cp311-abi3-{name_platform(os.environ)}"
        build_data["artifacts"].append(LIBRARY)
