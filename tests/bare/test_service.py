"""nodescope as a service of a real systemd: installed, looked at, hung, started anew, removed."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from tests.bare.machine import ROOT
from tests.bare.server import BootedServer
from tests.integration.agents import free_port, wait_for

pytestmark = pytest.mark.real

NODESCOPE = "/opt/nodescope/bin/nodescope"
# `systemd-analyze security` counts exposure up to 10.
EXPOSED = 3.0
WATCHDOG_SECONDS = 10
# A restart by systemd's own pauses, on a busy machine.
PATIENCE_SECONDS = 240.0


@pytest.fixture(scope="module")
def server() -> Iterator[BootedServer]:
    missing = [tool for tool in ("unshare", "nsenter", "debootstrap") if not shutil.which(tool)]
    if os.geteuid() or missing:
        reason = "needs root" if os.geteuid() else f"needs {missing[0]}; remedy: apt-get install debootstrap"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(f"a server with systemd {reason}")
    with BootedServer("bookworm") as server:
        install_nodescope(server)
        yield server


def install_nodescope(server: BootedServer) -> None:
    """This checkout's sources as a package, with the versions of its lock file."""
    words = ["build", "--quiet", "--sdist", "--no-build-isolation", "--out-dir", str(server.given)]
    uv = str(ROOT / ".venv/bin/uv")
    subprocess.run([uv, *words, "--python", str(ROOT / ".venv/bin/python"), str(ROOT)], check=True)
    for lock in ("requirements.run.lock", "requirements.build.lock"):
        shutil.copy(ROOT / lock, server.given)
    shutil.copy(uv, server.given / "uv")
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("PIP_INDEX_URL") or ""
    environment = "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt UV_CACHE_DIR=/var/cache/uv"
    install = f"{environment} {'UV_DEFAULT_INDEX=' + index if index else ''} /given/uv pip install --quiet --python /opt/nodescope/bin/python"
    server.run("/given/uv venv --quiet --python /usr/bin/python3 /opt/nodescope")
    server.run(
        f"{install} --require-hashes -r /given/requirements.run.lock -r /given/requirements.build.lock"
    )
    server.run(f"{install} --no-deps --no-build-isolation /given/nodescope-*.tar.gz")


def read_facts(server: BootedServer) -> dict[str, str]:
    shown = server.run("systemctl show nodescope --property=ActiveState,NRestarts,MainPID,Result")
    return dict(line.split("=", 1) for line in shown.splitlines())


def find_agent(server: BootedServer) -> str:
    """The agent's pid, as the server counts."""
    listed = server.run("systemctl status nodescope --no-pager --lines=0 || true")
    [found] = re.findall(r"[├└]─(\d+) .*nodescope agent\b", listed)
    return str(found)


def test_the_service_s_whole_life(server: BootedServer) -> None:
    viewer, agent = free_port(), free_port()
    page, metrics = f"http://127.0.0.1:{viewer}", f"http://127.0.0.1:{agent}/metrics"

    # Without root: one line says who may.
    refused = server.call(f"{NODESCOPE} service install", user="visitor")
    assert (refused.returncode, refused.stderr) == (
        1,
        "nodescope service: only root may install a service: sudo nodescope service install\n",
    )
    # Installed: systemd waits until nodescope says that the page answers.
    server.run(f"{NODESCOPE} service install --port {viewer} --agent-port {agent}")
    assert httpx.get(f"{page}/api/health", timeout=30).status_code == 200
    assert "node_cpu_seconds_total" in httpx.get(metrics, timeout=30).text
    for user in ("root", "visitor"):
        told = server.call(f"{NODESCOPE} service status", user)
        assert (told.returncode, told.stdout) == (
            0,
            f"active (running), enabled, restarted 0 times; viewer {page}\n",
        )
    # Narrow, by systemd's own look at what runs.
    [exposure] = re.findall(
        r"exposure level for nodescope.service: ([\d.]+)",
        server.run("systemd-analyze security nodescope --no-pager"),
    )
    assert float(exposure) < EXPOSED

    # An agent that hangs: silence is answered with a restart.
    server.run(
        "mkdir -p /etc/systemd/system/nodescope.service.d && "
        f"printf '[Service]\\nWatchdogSec={WATCHDOG_SECONDS}\\n' > /etc/systemd/system/nodescope.service.d/soon.conf && "
        "systemctl daemon-reload && systemctl restart nodescope"
    )
    before = read_facts(server)
    assert (before["ActiveState"], before["NRestarts"]) == ("active", "0")
    server.run(f"kill -STOP {find_agent(server)}")
    after = wait_for(
        lambda: (
            facts
            if (facts := read_facts(server))["NRestarts"] != "0" and facts["ActiveState"] == "active"
            else None
        ),
        "a restart by the watchdog",
        PATIENCE_SECONDS,
        1.0,
    )
    assert after["MainPID"] != before["MainPID"]
    assert "Watchdog timeout" in server.journal()
    assert "node_cpu_seconds_total" in httpx.get(metrics, timeout=30).text

    # Removed: the archive stays.
    removed = server.run(f"{NODESCOPE} service remove")
    assert "the archive stays in /var/lib/nodescope" in removed
    assert server.call("systemctl cat nodescope").returncode != 0
    assert server.run("ls /var/lib/nodescope/").strip()
    with pytest.raises(httpx.ConnectError):
        httpx.get(page, timeout=30)
