"""
A real systemd with a real D-Bus, apart from the machine that runs the tests.

It runs as a user's manager (`systemd --user`), which has the same interface as the system's. Namespaces of its own
for processes, mounts and cgroups keep it from everything else: it sees one cgroup as the root, and no process but
its own. Before it starts, the script looks whether the root that it sees is that one.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.torture.cgroup_tenant import empty_folder

SYSTEMD = "/lib/systemd/systemd"
CGROUPS = Path("/sys/fs/cgroup")
READY_SECONDS = 60.0
# Joins the cgroups before it leaves the machine's namespaces; what it sees from then on begins there.
JOIN = 'for folder in $FOLDERS; do echo $$ > "$folder/cgroup.procs" || exit 96; done; exec unshare -m -C -p -f --kill-child --mount-proc sh -c "$INSIDE"'
INSIDE = """
set -e
umount -l /sys/fs/cgroup
mount -t tmpfs tmpfs /sys/fs/cgroup
if [ -n "$HYBRID" ]; then
  mkdir /sys/fs/cgroup/unified /sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  seen="$(stat -c %i /sys/fs/cgroup/systemd /sys/fs/cgroup/unified | tr '\\n' ' ')"
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  seen="$(stat -c %i /sys/fs/cgroup) "
fi
[ "$seen" = "$EXPECTED" ] || exit 97
mount -t tmpfs tmpfs /run/systemd
mkdir /run/systemd/system
SYSTEMD --user &
wait
""".replace("SYSTEMD", SYSTEMD)


def why_not() -> str:
    """What this machine lacks; empty where it can be run."""
    if os.geteuid() != 0:
        return "no root: a systemd of its own needs namespaces"
    for tool in ("unshare", "dbus-daemon", SYSTEMD):
        if shutil.which(tool) is None:
            return f"no {tool}: apt-get install systemd dbus util-linux"
    is_whole = (CGROUPS / "cgroup.controllers").exists() or all(
        (CGROUPS / name / "cgroup.procs").exists() for name in ("systemd", "unified")
    )
    return "" if is_whole else "no cgroup tree that systemd could use: neither v2 nor its own hierarchy"


@contextlib.contextmanager
def systemd_running(units: Mapping[str, str]) -> Iterator[Path]:
    """The folder with its bus; `units` are files by name, which it starts."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    # The path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="nsd-", dir="/tmp") as name:
        folder = Path(name)
        write_units(folder / "systemd" / "user", units)
        is_hybrid = not (CGROUPS / "cgroup.controllers").exists()
        tops = [CGROUPS / one for one in ("systemd", "unified")] if is_hybrid else [CGROUPS]
        groups = [top / f"nodescope-systemd-{os.getpid()}" for top in tops]
        for group in groups:
            group.mkdir()
        try:
            yield from run_manager(folder, groups, is_hybrid=is_hybrid)
        finally:
            for group in groups:
                remove_group(group)


def write_units(folder: Path, units: Mapping[str, str]) -> None:
    wanted = folder / "default.target.wants"
    wanted.mkdir(parents=True)
    for unit, text in units.items():
        (folder / unit).write_text(text)
        (wanted / unit).symlink_to(folder / unit)


def remove_group(group: Path) -> None:
    """The kernel needs a moment to let go of processes that were killed."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            empty_folder(group)
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def run_manager(folder: Path, groups: list[Path], *, is_hybrid: bool) -> Iterator[Path]:
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "FOLDERS": " ".join(map(str, groups)),
        "EXPECTED": "".join(f"{group.stat().st_ino} " for group in groups),
        "HYBRID": "yes" if is_hybrid else "",
        "INSIDE": INSIDE,
    }
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            ["/bin/sh", "-c", JOIN], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
    ):
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not (folder / "bus").is_socket():
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"systemd gave no bus: exit {process.poll()}, {log.read()[-800:]!r}")
                time.sleep(0.1)
            yield folder
        finally:
            # The namespace's first process ends with it, and everything inside with that.
            process.send_signal(signal.SIGKILL)
            process.wait(20)
