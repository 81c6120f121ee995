"""An agent as a process, with an archive, on a fixture node; and what the tests ask of its folder."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support import NODES

from nodescope.base.codec import Decoder
from nodescope.base.frame import Frame

NODE = NODES / "cgroup2-systemd" / "t0"
# A busy machine starts a Python in seconds.
START_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ArchiveAgent:
    """nodescope agent with fast ticks and a short rotation."""

    def __init__(self, data: Path, *options: str, prefix: tuple[str, ...] = ()) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        words = [
            *prefix,
            *(sys.executable, "-m", "nodescope", "agent", "--root", str(NODE), "--data", str(data)),
            *("--port", str(self.port), "--interval", "0.1", "--rotation-seconds", "2", "--node", "n1"),
            *("--retention-free-bytes", "0", "--log-level", "warning", *options),
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NODESCOPE_")}
        self.process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE)

    def ask(self, path: str) -> tuple[bytes, dict[str, str]]:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310 - our own agent
            return answer.read(), dict(answer.headers.items())

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(urllib.error.URLError, OSError):
                self.ask("/readyz")
                return
            if self.process.poll() is not None:
                raise AssertionError((self.process.stderr.read() if self.process.stderr else b"").decode())
            time.sleep(0.05)
        raise AssertionError("the agent did not become ready")

    def written_frames(self, since: str) -> tuple[list[Frame], str]:
        """Frames that the agent says are on disk, and the cursor behind the last of them."""
        body, headers = self.ask(f"/live?since={since}")
        known = {key.lower(): value for key, value in headers.items()}
        frames = [
            frame for frame in Decoder().decode(body) if frame.sequence <= int(known["nodescope-written"])
        ]
        run = known["nodescope-cursor"].rpartition("-")[0]
        return frames, f"{run}-{frames[-1].sequence}" if frames else since

    def archive(self) -> dict[str, Any]:
        import json

        content: dict[str, Any] = json.loads(self.ask("/status")[0])["archive"]
        return content

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=60)
        self.kill()

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = [int(word) for word in path.read_text().split()] if path.exists() else []
        for task in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with suppress(OSError):
                found += [int(word) for word in task.read_text().split()]
        return sorted(set(found))


def sample_times(frames: list[Frame]) -> set[int]:
    """The times, in ms, that the archive gives the samples of these frames' containers."""
    return {
        (frame.at_ns + block.mono_ns - frame.mono_ns) // 1_000_000
        for frame in frames
        for block in frame.blocks
        if block.table.name == "container"
    }
