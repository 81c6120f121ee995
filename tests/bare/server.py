"""
A plain server: a minimal Debian whose first process is systemd, booted in namespaces of this machine.

    with BootedServer("bookworm") as server:
        server.run("systemctl status nodescope")

Its cgroups are a branch of this machine's v2 tree, without controllers where those belong to v1:
limits such as MemoryHigh are then accepted and have no effect. Its network is this machine's.
"""

import contextlib
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from tests.bare.machine import CERTIFICATES, ROOT

TREES = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
# Systemd leaves alone what it finds mounted. Devices: those without which no program starts.
BOOT = """
set -e
echo $$ > {group}/cgroup.procs
exec unshare --mount --pid --fork --cgroup --uts --ipc --kill-child bash -c '
set -e
root={work}/root
mount -t overlay overlay -o lowerdir={lower},upperdir={work}/upper,workdir={work}/work $root
mount -t proc proc $root/proc
mount -t sysfs -o ro sysfs $root/sys
mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
mount -t tmpfs tmpfs $root/run
mount -t tmpfs tmpfs $root/dev
for name in null zero full random urandom tty; do touch $root/dev/$name; mount --bind /dev/$name $root/dev/$name; done
mkdir -p $root/dev/shm $root/dev/pts $root/dev/mqueue $root/given $root/old
mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
mount -t tmpfs tmpfs $root/dev/shm
mount -t mqueue mqueue $root/dev/mqueue
ln -s pts/ptmx $root/dev/ptmx
mount --bind {given} $root/given
cd $root
pivot_root . old
umount -l /old
exec env -i container=nodescope PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
'
"""
BOOT_SECONDS = 120.0


def find_tree() -> Path:
    """The v2 tree of this machine, alone or beside v1."""
    return next(Path(tree) for tree in reversed(TREES) if Path(tree, "cgroup.procs").exists())


class BootedServer:
    """New each time it is entered; what is put into `given` is seen inside under /given."""

    def __init__(self, suite: str = "bookworm") -> None:
        build = [str(ROOT / "tests/bare/build"), suite, "systemd"]
        told = subprocess.run(build, check=True, text=True, stdout=subprocess.PIPE)
        self.lower = Path(told.stdout.strip())

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="nodescope-server-", ignore_cleanup_errors=True)
        self.work = Path(self._folder.name)
        self.work.chmod(0o755)
        for name in ("upper", "work", "root", "given"):
            (self.work / name).mkdir()
        self.given = self.work / "given"
        self.lend_certificates()
        self.group = find_tree() / self.work.name
        self.group.mkdir()
        script = BOOT.format(group=self.group, lower=self.lower, work=self.work, given=self.given)
        self.process = subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        try:
            self.await_boot()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(30)
        folders = sorted((path for path in self.group.rglob("*") if path.is_dir()), reverse=True)
        for folder in (*folders, self.group):
            self.remove_group(folder)
        self._folder.cleanup()

    @staticmethod
    def remove_group(folder: Path) -> None:
        for _ in range(100):
            with contextlib.suppress(OSError):
                folder.rmdir()
            if not folder.exists():
                return
            time.sleep(0.1)

    def lend_certificates(self) -> None:
        upper = self.work / "upper" / CERTIFICATES
        upper.parent.mkdir(parents=True)
        shutil.copy(Path("/") / CERTIFICATES, upper)

    def await_boot(self) -> None:
        deadline = time.monotonic() + BOOT_SECONDS
        while True:
            assert self.process.poll() is None, f"systemd ended with {self.process.returncode}"
            state = self.ask("systemctl is-system-running") if self.first else ""
            # Degraded: a unit that needs hardware did not start.
            if state.strip() in {"running", "degraded"}:
                return
            assert time.monotonic() < deadline, f"no boot within {BOOT_SECONDS:g} s: {state}"
            time.sleep(0.2)

    @property
    def first(self) -> str:
        """The pid of its systemd, as this machine counts."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        children = task.read_text().split()
        return children[0] if children else ""

    def ask(self, command: str) -> str:
        return self.call(command).stdout

    def call(self, command: str, user: str = "root") -> "subprocess.CompletedProcess[str]":
        """As somebody who logged in."""
        enter = [
            "nsenter",
            "--target",
            self.first,
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "--cgroup",
            "--root",
        ]
        became = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(
            [
                *enter,
                *became,
                "env",
                "-i",
                path,
                "HOME=/root",
                "LANG=C.UTF-8",
                "bash",
                "-euc",
                f"cd /; {command}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, command: str) -> str:
        done = self.call(command)
        assert done.returncode == 0, (
            f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{self.journal()}"
        )
        return done.stdout

    def journal(self) -> str:
        return self.ask("journalctl --no-pager --lines=60 --output=cat || true")
