"""
The virtual machine's parts: qemu, Debian's cloud kernel and a static busybox.

Kernel and busybox are downloaded and unpacked, never installed: no root is
needed for them, and the host's own kernel packages stay as they are. Debian's
cloud kernel has NVMe, ext4, devtmpfs and the serial port built in, so neither
an initrd nor modules are needed to start; virtio and 9p would need both.
"""

import hashlib
import lzma
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

KERNEL = "linux-image-cloud-amd64"
BUSYBOX = "busybox-static"
QEMU = "qemu-system-x86_64"
# Pods get their own network through veth, the one module that is loaded.
FILES = {"vmlinuz": "vmlinuz-*", "busybox": "bin/busybox", "veth.ko": "veth.ko*"}


class PartMissing(Exception):
    """One line for the user: what is missing and the remedy."""


def cache_folder(key: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "nodescope-tools", f"vm-{key}")


def digest(*inputs: str) -> str:
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]


def make_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """
    A folder that is either whole or not there.

    Filled beside its place and renamed into it: an interrupted run leaves
    nothing that a later one would take for finished, and of two runs at the
    same time the second keeps the first one's.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".vm-", dir=folder.parent))
    try:
        fill(scratch)
        scratch.chmod(0o755)
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def run_quietly(command: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise PartMissing(f"{' '.join(command)} failed: {last[0]}")
    return done.stdout


def require_debian() -> None:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise PartMissing("the virtual machine needs an x86-64 Linux host; run it there")
    if not shutil.which("apt-get"):
        raise PartMissing(
            "the virtual machine's kernel is a Debian package; run it on Debian (no apt-get here)"
        )


def find_qemu() -> str:
    return install(QEMU, "qemu-system-x86")


def install(program: str, package: str) -> str:
    """Where the program is; from its Debian package when it is not here yet."""
    found = shutil.which(program)
    if found:
        return found
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    if os.geteuid() != 0:
        raise PartMissing(f"{program} is not installed; run: sudo {' '.join(command)}")
    try:
        run_quietly(command)
    except PartMissing:
        run_quietly(["apt-get", "update", "-qq"])
        run_quietly(command)
    return shutil.which(program) or program


def find_packages() -> dict[str, str]:
    """What to download, with the version apt would install; one call, as each takes apt a second."""
    asked = ["apt-cache", "show", "--no-all-versions", KERNEL, BUSYBOX]
    shown = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    found = {}
    for paragraph in shown.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " "
        )
        name = fields.get("Package")
        if name == KERNEL:
            # The metapackage has the version of the image that it names.
            name = fields["Depends"].split(",")[0].split()[0]
        if name:
            found[name] = fields["Version"]
    return found


def require_packages() -> dict[str, str]:
    found = find_packages()
    if len(found) < 2 and os.geteuid() == 0:
        run_quietly(["apt-get", "update", "-qq"])
        found = find_packages()
    if len(found) < 2:
        raise PartMissing(f"apt does not know {KERNEL} and {BUSYBOX}; on Debian run: sudo apt-get update")
    return found


def read_parts() -> Path:
    """A folder with everything in FILES, downloaded once per version."""
    require_debian()
    packages = require_packages()

    def fill(folder: Path) -> None:
        print(f"# downloading {' '.join(packages)}", flush=True)
        download(list(packages), folder)
        unpacked = folder / "unpacked"
        for deb in sorted(folder.glob("*.deb")):
            run_quietly(["dpkg", "-x", str(deb), str(unpacked)])
            deb.unlink()
        for name, pattern in FILES.items():
            found = next(unpacked.rglob(pattern))
            content = found.read_bytes()
            (folder / name).write_bytes(lzma.decompress(content) if found.suffix == ".xz" else content)
        (folder / "busybox").chmod(0o755)
        shutil.rmtree(unpacked)

    return make_once(cache_folder(digest(*packages, *packages.values(), *FILES)), fill)


def download(packages: list[str], folder: Path) -> None:
    # apt drops its rights to a user who may not write into our folder, and
    # then warns that it did not; as root we say so first.
    command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *packages]
    try:
        run_quietly(command, cwd=folder)
    except PartMissing:
        if os.geteuid() != 0:
            raise
        # Old lists name files that the mirror has replaced.
        run_quietly(["apt-get", "update", "-qq"])
        run_quietly(command, cwd=folder)
