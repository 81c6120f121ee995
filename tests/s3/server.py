"""A real S3 server on loopback: versitygw over a folder."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs

ROOT = Path(__file__).parents[2]
GO_TOOLS = ROOT / "tools/go-tools"
KEY, SECRET = "nodescope-test", "not-a-secret-but-long-enough"
STARTUP_SECONDS = 30


class ServerMissing(Exception):
    """It is neither built nor can it be built here."""


def build(program: Path, *words: str) -> Path:
    """What a build script prints: where it put what it made. Some minutes the first time."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        name = " ".join([str(program.relative_to(ROOT)), *words])
        raise ServerMissing((done.stderr.splitlines() or [f"{name} failed"])[-1] + f"; remedy: run {name}")
    return Path(done.stdout.strip())


@dataclass
class S3:
    """A running server; `environment` is what a client needs."""

    address: str
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://{self.address}",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name: str) -> str:
        """With this process' environment set as above."""
        files, _ = pafs.FileSystem.from_uri(f"s3://{name}?allow_bucket_creation=true")
        files.create_dir(name)
        return f"s3://{name}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(place: Path) -> Iterator[S3]:
    program = build(GO_TOOLS, "s3") / "versitygw"
    folder = place / "objects"
    folder.mkdir(parents=True)
    address = f"127.0.0.1:{free_port()}"
    words = [str(program), "--quiet", "--port", address, "posix", str(folder)]
    environment = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(address, process)
        yield S3(address, folder, process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(place, ignore_errors=True)


def wait_for(address: str, process: "subprocess.Popen[bytes]") -> None:
    """Until it answers; it says nothing when it is ready."""
    host, _, port = address.rpartition(":")
    name = Path(str(process.args[0])).name  # type: ignore[index]
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerMissing(f"{name} ended with {process.returncode}")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise ServerMissing(f"{name} did not answer within {STARTUP_SECONDS} s")


def sent_bytes(server: S3) -> int:
    """Everything the server has written so far, answers above all; its log of each request is small."""
    for line in Path(f"/proc/{server.process.pid}/io").read_text().splitlines():
        name, _, count = line.partition(":")
        if name == "wchar":
            return int(count)
    raise ServerMissing("the kernel does not count what the server writes")
