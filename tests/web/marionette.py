"""
Firefox, driven by its own protocol: Marionette, JSON over a socket.

Playwright drives a Firefox of its own only, which Debian does not have. What a
smoke test needs of the protocol is a session, an address, a script and a picture.
Docs: https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.agents import clean_environment, stop, wait_for
from tests.web.browsing import refuse

PATIENCE_SECONDS = 90.0


def need_firefox() -> str:
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    return path or refuse("firefox is not installed; remedy: sudo apt-get install firefox-esr")


@dataclass
class MarionetteClient:
    """One connection; a message is its length, a colon, and an array."""

    connection: socket.socket
    number: int = 0
    rest: bytes = field(default=b"")

    def call(self, command: str, **parameters: Any) -> Any:
        self.number += 1
        content = json.dumps([0, self.number, command, parameters]).encode()
        self.connection.sendall(b"%d:%s" % (len(content), content))
        _, _, error, result = self.receive()
        assert error is None, f"{command}: {error}"
        return result

    def receive(self) -> Any:
        while b":" not in self.rest:
            self.rest += self.read()
        length, _, self.rest = self.rest.partition(b":")
        while len(self.rest) < int(length):
            self.rest += self.read()
        content, self.rest = self.rest[: int(length)], self.rest[int(length) :]
        return json.loads(content)

    def read(self) -> bytes:
        data = self.connection.recv(65536)
        assert data, "firefox closed the connection"
        return data

    def run(self, script: str) -> Any:
        return self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def await_script(self, script: str, what: str) -> Any:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"no {what} within {PATIENCE_SECONDS:.0f} s"
            time.sleep(0.2)
        return found

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        shot = self.call("WebDriver:TakeScreenshot", full=False)["value"]
        path.write_bytes(base64.b64decode(shot))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_firefox(folder: Path) -> Iterator[MarionetteClient]:
    path, port = need_firefox(), free_port()
    profile = folder / "profile"
    profile.mkdir(parents=True)
    (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
    process = subprocess.Popen(
        [path, "--headless", "--marionette", "--no-remote", "--profile", str(profile)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **clean_environment(),
            "HOME": str(folder),
            "MOZ_HEADLESS_WIDTH": "1440",
            "MOZ_HEADLESS_HEIGHT": "900",
        },
    )
    try:
        with wait_for(lambda: connect(port), "a firefox that listens") as connection:
            connection.settimeout(PATIENCE_SECONDS)
            client = MarionetteClient(connection)
            # It speaks first.
            client.receive()
            client.call("WebDriver:NewSession")
            yield client
    finally:
        stop(process)


def connect(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=5)
    except OSError:
        return None
