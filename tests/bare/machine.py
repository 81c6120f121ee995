"""
A machine that has just been installed: a minimal Debian root and an ordinary user, nothing else.

    with BareMachine("bookworm") as machine:
        machine.run("python3 --version")

The root is cached (tests/bare/build) and lies below an overlay, so that every machine is new. It is a
chroot with mounts and processes of its own; the network is this machine's, behind a proxy that counts.
"""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO, Self

from tests.bare.proxy import CountingProxy

ROOT = Path(__file__).resolve().parents[2]
HOME = "/home/visitor"
# The first user of a Debian.
VISITOR = 1000
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
# Inside: mounts of its own, then the ordinary user. The first process of the namespace takes all with it.
ENTER = """
set -e
mount -t overlay overlay -o lowerdir={lower},upperdir={work}/upper,workdir={work}/work {work}/root
mount -t proc proc {work}/root/proc
mount --rbind /sys {work}/root/sys
mount --rbind /dev {work}/root/dev
mkdir -p {work}/root/given
mount --bind {given} {work}/root/given
exec chroot {work}/root /usr/bin/setpriv --reuid=visitor --regid=visitor --init-groups \
  /usr/bin/env -i {environment} /bin/bash -euo pipefail -c {command}
"""


class BareMachine:
    """New each time it is entered; what is put into `given` is seen inside under /given."""

    def __init__(self, suite: str = "bookworm") -> None:
        self.lower = Path(
            subprocess.run(
                [str(ROOT / "tests/bare/build"), suite], check=True, text=True, stdout=subprocess.PIPE
            ).stdout.strip()
        )
        self.proxy = CountingProxy()

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="nodescope-bare-", ignore_cleanup_errors=True)
        self.work = Path(self._folder.name)
        self.work.chmod(0o755)
        for name in ("upper", "work", "root", "given"):
            (self.work / name).mkdir()
        self.given = self.work / "given"
        self.proxy.__enter__()
        self.environment = {
            "HOME": HOME,
            "USER": "visitor",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **self.proxy.environment,
            **self._lend_certificates(),
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.__exit__(kind, error, trace)
        self._folder.cleanup()

    def _lend_certificates(self) -> dict[str, str]:
        """A machine behind a proxy that signs with its own certificates lends them."""
        if "SSL_CERT_FILE" not in os.environ:
            return {}
        upper = self.work / "upper" / CERTIFICATES
        upper.parent.mkdir(parents=True)
        upper.write_bytes(Path(os.environ["SSL_CERT_FILE"]).read_bytes())
        return {"SSL_CERT_FILE": f"/{CERTIFICATES}", "PIP_CERT": f"/{CERTIFICATES}"}

    def start(
        self, command: str, output: IO[bytes] | int | None = None, more: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """The command as the ordinary user, in the background; `end` stops it with all that it started."""
        words = [
            shlex.quote(f"{name}={value}") for name, value in {**self.environment, **(more or {})}.items()
        ]
        script = ENTER.format(
            lower=self.lower,
            work=self.work,
            given=self.given,
            environment=" ".join(words),
            command=shlex.quote(command),
        )
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def run(self, command: str, seconds: float = 600) -> str:
        """What it printed; AssertionError where it failed."""
        with self.start(command, subprocess.PIPE) as process:
            try:
                printed, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        text = printed.decode()
        assert process.returncode == 0, f"{command}\n{text[-4000:]}"
        return text

    def await_line(self, process: "subprocess.Popen[bytes]", output: Path, word: str, seconds: float) -> str:
        """All that was printed, once the word is in it."""
        deadline = time.monotonic() + seconds
        while word not in (printed := output.read_text(errors="replace")):
            assert process.poll() is None, f"ended with {process.returncode}:\n{printed[-4000:]}"
            assert time.monotonic() < deadline, f"no {word!r} within {seconds:g} s:\n{printed[-4000:]}"
            time.sleep(0.05)
        return printed

    @staticmethod
    def end(process: "subprocess.Popen[bytes]") -> None:
        """Its first process takes all others along; a change of the user made it forget whose child it is."""
        if process.poll() is None:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), signal.SIGKILL)
            process.kill()
        process.wait(30)

    @staticmethod
    def hand_over(folder: Path) -> None:
        """git refuses a repository of another user."""
        subprocess.run(["chown", "-R", str(VISITOR), str(folder)], check=True)

    def measure_bytes(self, *paths: str) -> int:
        """On disk, files with several names counted once; a cache may not be there."""
        places = [str(place) for path in paths if (place := self.work / "upper" / path.lstrip("/")).exists()]
        assert places, paths
        told = subprocess.run(
            ["du", "-sc", "--block-size=1", *places], check=True, text=True, stdout=subprocess.PIPE
        ).stdout
        return int(told.splitlines()[-1].split()[0])
