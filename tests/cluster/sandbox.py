"""
A container's file system and powers for a process, without a container runtime.

The process has a root of its own in a mount namespace: programs and libraries of
this machine and the checkout, read only, as an image would have them; a copy of
/etc; and the pod's volumes at their paths. It runs as the user and with the
capabilities that its securityContext says. Network and process ids are the machine's.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What stands for the image's own files; bin and lib are links into usr on most machines.
IMAGE = ("usr", "bin", "sbin", "lib", "lib64", "opt", "dev", "proc", "sys")
PROGRAMS = ("unshare", "setpriv", "chroot", "mount")


def can_isolate() -> bool:
    return os.geteuid() == 0 and all(shutil.which(name) for name in PROGRAMS)


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of this machine at a path of the container."""

    source: Path
    target: str
    read_only: bool = False


def render_sandbox(
    disk: Path, mounts: Iterable[Mount], context: Mapping[str, Any], programs: Iterable[Path] = ()
) -> str:
    """A script that becomes the command in its arguments; `disk` has `etc`, and room for the root."""
    root = disk / "root"
    root.mkdir()
    lines = ["set -eu", "umask 022", f"cd {shlex.quote(str(root))}", "mount -t tmpfs -o mode=755 tmpfs ."]
    # The folder that was entered before is below the new one.
    lines.append(f"cd {shlex.quote(str(root))}")
    for name in IMAGE:
        if Path("/", name).is_symlink():
            lines.append(f"cp -a /{name} {name}")
        elif Path("/", name).exists():
            lines.append(f"mkdir {name} && mount --rbind /{name} {name}")
    own = (ROOT, Path(sys.prefix), Path(sys.base_prefix), *programs)
    all_mounts = [
        Mount(disk / "etc", "/etc"),
        *sorted(mounts, key=lambda one: one.target.count("/")),
        # After the pod's own /tmp: the checkout may lie there.
        *(Mount(path, str(path), read_only=True) for path in own if path.parts[1] not in IMAGE),
    ]
    for one in all_mounts:
        place = shlex.quote(one.target.lstrip("/"))
        lines.append(f"mkdir -p {place} && mount --rbind {shlex.quote(str(one.source))} {place}")
        if one.read_only:
            lines.append(f"mount -o remount,bind,ro {place}")
    if context.get("readOnlyRootFilesystem"):
        lines += ["mount -o remount,bind,ro etc", "mount -o remount,bind,ro ."]
    # Where the process begins; of a folder outside of its root nothing is left.
    lines.append(f'exec chroot . {" ".join(render_powers(context))} "$@"')
    return "\n".join(lines) + "\n"


def render_powers(context: Mapping[str, Any]) -> list[str]:
    user, group = context.get("runAsUser", 0), context.get("runAsGroup", 0)
    words = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    capabilities = context.get("capabilities", {})
    if "ALL" in capabilities.get("drop", ()):
        kept = [f"+{name.lower()}" for name in capabilities.get("add", ())]
        words += ["--inh-caps=-all", f"--bounding-set={','.join(['-all', *kept])}"]
    if context.get("allowPrivilegeEscalation") is False:
        words.append("--no-new-privs")
    return words
