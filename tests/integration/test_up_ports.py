"""Where `nodescope up` listens: the next free port, the right flag, and a token for other machines."""

import contextlib
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.agents import (
    NODESCOPE,
    clean_environment,
    free_port,
    run_nodescope,
    running_agent,
    stop,
    wait_for,
)

from nodescope.base.errors import SettingsRejected
from nodescope.commands.shared.ports import AGENT_PORT, VIEWER_PORT, claim_next

pytestmark = pytest.mark.real

SLOW_SECONDS = 60.0


@contextlib.contextmanager
def taken(port: int) -> Iterator[None]:
    """Somebody listens there: we, unless another program does already."""
    with socket.socket() as other:
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", port))
            other.listen()
        yield


@contextlib.contextmanager
def running_up(*words: str) -> Iterator[str]:
    """What it printed, once the banner is complete."""
    with tempfile.TemporaryDirectory(prefix="nodescope-test-") as folder:
        output = Path(folder, "output")
        with output.open("wb") as sink:
            process = subprocess.Popen(
                [*NODESCOPE, "up", "--no-kubernetes", *words],
                stdout=sink,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**clean_environment(), "XDG_STATE_HOME": folder},
            )
        try:
            wait_for(lambda: "Ctrl-C" in output.read_text(), "a banner", SLOW_SECONDS)
            yield output.read_text()
        finally:
            stop(process)


def test_ports_that_nobody_asked_for_give_way_to_the_next() -> None:
    """node_exporter has 9100, too: both answer elsewhere, and it is said where."""
    with taken(VIEWER_PORT), taken(AGENT_PORT), running_up() as printed:
        assert f"port {VIEWER_PORT} is in use; the viewer takes " in printed
        assert f"port {AGENT_PORT} is in use" in printed
        viewer, metrics = (
            re.search(rf"^  {name} +(http://\S+)", printed, re.MULTILINE) for name in ("viewer", "metrics")
        )
        assert viewer is not None
        assert metrics is not None
        assert f":{VIEWER_PORT}" not in viewer[1]
        assert httpx.get(f"{viewer[1]}/api/health").status_code == 200
        assert "node_load1" in httpx.get(metrics[1]).text


def test_a_port_that_was_asked_for_is_refused_with_its_own_flag() -> None:
    """`--port` is the viewer's; advice that names it for the agent's port would fail again."""
    port = free_port()
    with taken(port):
        line = run_nodescope("up", "--agent-port", str(port)).stderr
        assert f"127.0.0.1:{port} is in use by another program; choose another with --agent-port," in line
        line = run_nodescope("up", "--port", str(port)).stderr
        assert f"127.0.0.1:{port} is in use by another program; choose another with --port," in line
        line = run_nodescope("up", "--listen", f"127.0.0.1:{port}").stderr
        assert "choose another with --agent-port or --listen," in line


def test_the_look_before_the_set_up_needs_the_standard_library_only() -> None:
    """Run with -S: no package is there, as before the first `make run`."""
    port = free_port()
    command = [sys.executable, "-S", "-m", "nodescope.commands.shared.ports", "--interval", "2s"]
    source = str(Path(__file__).resolve().parents[2] / "src")
    with taken(port):
        for words, code in ((("--port", str(port)), 2), (("--port", "0"), 0), ((), 0)):
            done = subprocess.run(
                [*command, *words],
                env={"PYTHONPATH": source},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == code, done.stderr
            assert done.stderr.count("\n") == (1 if code else 0)


def test_where_every_port_is_taken_the_flag_is_named() -> None:
    port = free_port()
    with taken(port), pytest.raises(SettingsRejected, match="choose one with --port"):
        claim_next("127.0.0.1", port, "--port", tries=1)


def test_other_machines_need_the_token_that_is_printed() -> None:
    with running_up("--host", "0.0.0.0", "--port", "0", "--agent-port", "0") as printed:  # noqa: S104
        found = re.search(r"viewer +http://\S+:(\d+)/\?token=(\S+)", printed)
        assert found, printed
        address, token = f"http://127.0.0.1:{found[1]}", found[2]
        assert len(token) >= 32
        assert httpx.get(f"{address}/api/instance").status_code == 401
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}/api/instance", headers=headers, timeout=SLOW_SECONDS).status_code == 200
        with httpx.Client(base_url=address, follow_redirects=True) as browser:
            assert browser.get(f"/?token={token}").status_code == 200
            assert browser.get("/api/instance").status_code == 200
        files = list(Path(tempfile.gettempdir()).glob("nodescope-token-*"))
        assert [file for file in files if file.read_text() == token and file.stat().st_mode & 0o077 == 0]
    assert not [
        file for file in Path(tempfile.gettempdir()).glob("nodescope-token-*") if file.read_text() == token
    ]


def test_a_token_that_is_given_is_not_printed(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("a-secret-of-mine\n")
    words = ("--host", "0.0.0.0", "--token-file", str(secret))  # noqa: S104
    with running_agent(*words, command="up", ready="/healthz") as up:
        wait_for(lambda: "Ctrl-C" in up.printed(), "a banner", SLOW_SECONDS)
        assert "a-secret-of-mine" not in up.printed()
        assert "?token=" not in up.printed()


def test_names_that_are_allowed_are_the_viewer_s_too() -> None:
    with running_up("--port", "0", "--agent-port", "0", "--allow-host", "viewer.example") as printed:
        found = re.search(r"viewer +(http://\S+)", printed)
        assert found
        allowed, other = (
            httpx.get(f"{found[1]}/api/health", headers={"Host": name}).status_code
            for name in ("viewer.example", "other.example")
        )
        assert (allowed, other) == (200, 421)


def test_systemd_is_told_when_all_answer_and_that_the_agent_is_well(tmp_path: Path) -> None:
    """As Type=notify with WatchdogSec= has it: READY once the page answers, then a sign again and again."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(address))
        systemd.settimeout(SLOW_SECONDS)
        environment = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "1000000"}
        with running_agent("--no-kubernetes", command="up", environment=environment) as up:
            ready = systemd.recv(1000).decode()
            assert ready.startswith("READY=1\nSTATUS=viewer http://127.0.0.1:")
            assert httpx.get(f"{ready.split()[-1]}/api/health").status_code == 200
            assert systemd.recv(1000) == b"WATCHDOG=1"
            up.process.terminate()
            while (said := systemd.recv(1000)) == b"WATCHDOG=1":
                pass
            assert said == b"STOPPING=1"
