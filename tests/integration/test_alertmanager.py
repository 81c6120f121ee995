"""A real Alertmanager is told what the watcher finds: once, also after it was away."""

import contextlib
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.agents import free_port, running_agent, stop, wait_for
from tests.integration.conftest import need_tool
from tests.nodes.pods import WEB
from tests.support import copy_node

from nodescope.base.clock import SystemClock
from nodescope.base.settings import Settings
from nodescope.publish.tell.alert_sender import AlertSender
from nodescope.publish.tell.alert_servers import build_alert_senders
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.sighting import FindingSubject, Sighting

pytestmark = pytest.mark.real

# Of the password `secret`, with the fewest rounds.
BCRYPT = "$2b$04$5CmUHordJHCrZGura1bb5umd6KbSQU1sf/boRwwtBVPMgT1MrPIcq"


@dataclass
class PageReceiver:
    """Somebody's phone: every notification that Alertmanager sends."""

    told: list[tuple[str, str]] = field(default_factory=list)
    """(workload, firing or resolved), one for each alert of each notification."""
    port: int = 0

    @contextlib.contextmanager
    def answering(self) -> Iterator["PageReceiver"]:
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.extend((one["labels"]["workload"], one["status"]) for one in content["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@dataclass
class Alertmanager:
    """Debian's, with one receiver; it may be stopped and started again."""

    folder: Path
    receiver: PageReceiver
    flags: tuple[str, ...] = ()
    scheme: str = "http"
    client_options: dict[str, Any] = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        config = self.folder / "alertmanager.yml"
        config.write_text(
            "route: {receiver: phone, group_by: ['...'], group_wait: 1s, group_interval: 1s, repeat_interval: 1h}\n"
            f"receivers: [{{name: phone, webhook_configs: [{{url: 'http://127.0.0.1:{self.receiver.port}/'}}]}}]\n"
        )
        command = [
            need_tool("prometheus-alertmanager"),
            f"--config.file={config}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
            *self.flags,
        ]
        with (self.folder / "alertmanager.log").open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_for(self.is_ready, "Alertmanager is ready")
            yield
        finally:
            stop(process)

    def is_ready(self) -> bool:
        try:
            return self._get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def _get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.address}{path}", timeout=10, **self.client_options)

    def alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/api/v2/alerts").raise_for_status().json()
        return found


def sight(workload: str) -> Sighting:
    subject = FindingSubject("shop", workload, f"{workload}-1", "app", "4841cfc03d50")
    return Sighting("memory_leak", "kill", subject, 1.7e9, f"shop/{workload} leaks.", is_sure=True)


def open_sender(store: FindingStore, data: Path, server: Alertmanager, **more: Any) -> AlertSender:
    settings = Settings(alertmanager_url=(server.address,), alertmanager_resend_seconds=1.0, **more)
    (sender,) = build_alert_senders(settings, store, SystemClock())
    sender.ledger.path = data / "alerts.json"
    sender.hold_seconds = 3.0
    return sender


@contextlib.contextmanager
def sending(sender: AlertSender) -> Iterator[AlertSender]:
    thread = sender.make_thread()
    thread.start()
    try:
        yield sender
    finally:
        thread.stop()


def test_an_alert_is_one_page_and_so_is_its_end_also_after_an_outage(tmp_path: Path) -> None:
    """
    Sent every second, told once. While Alertmanager is away one finding begins and ends, another
    begins, and the sender itself is started anew: each is one page, and each end is one.
    """
    clock = SystemClock()

    def now() -> float:
        return clock.wall_ns() / 1e9

    store = FindingStore("node-a")
    with PageReceiver().answering() as receiver:
        server = Alertmanager(tmp_path, receiver)
        with server.running(), sending(open_sender(store, tmp_path, server)) as sender:
            store.see(sight("first"), now())
            wait_for(lambda: ("first", "firing") in receiver.told, "the page")
            wait_for(lambda: sender.counters.sent >= 4, "it is sent again")
            (alert,) = server.alerts()
            assert alert["labels"]["alertname"] == "FindingKill"
            assert alert["annotations"]["summary"] == "shop/first leaks."
        store.see(sight("short"), now())
        store.resolve(sight("short").key, now())
        store.see(sight("second"), now())
        store.resolve(sight("first").key, now())
        with sending(open_sender(store, tmp_path, server)) as sender:
            wait_for(lambda: sender.counters.failed >= 2, "it is away")
            assert "refused" in sender.counters.reason
        with sending(open_sender(store, tmp_path, server)) as sender, server.running():
            wait_for(lambda: ("second", "firing") in receiver.told, "what began meanwhile")
            wait_for(lambda: ("short", "resolved") in receiver.told, "what ended meanwhile")
            wait_for(lambda: ("first", "resolved") in receiver.told, "the end of the first")
            assert sender.counters.reason == ""
            assert {one["labels"]["workload"] for one in server.alerts()} == {"second"}
        told = sorted(receiver.told)
    assert told == [
        ("first", "firing"),
        ("first", "resolved"),
        ("second", "firing"),
        ("short", "firing"),
        ("short", "resolved"),
    ]


def test_a_guarded_alertmanager_is_told_with_password_and_authority(tmp_path: Path) -> None:
    """A wrong password is said by its status; the right one counts from the next request on."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    web = tmp_path / "web.yml"
    web.write_text(
        f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\nbasic_auth_users: {{agent: '{BCRYPT}'}}\n"
    )
    secret = tmp_path / "secret"
    secret.write_text("agent:wrong")
    trusted = ssl.create_default_context(cafile=str(certificate))
    options = {"verify": trusted, "auth": ("agent", "secret")}
    with PageReceiver().answering() as receiver:
        server = Alertmanager(
            tmp_path, receiver, (f"--web.config.file={web}",), scheme="https", client_options=options
        )
        store = FindingStore("node-a")
        sender = open_sender(
            store, tmp_path, server, alertmanager_basic_file=secret, alertmanager_ca=certificate
        )
        sender.ledger.load(0.0)
        with server.running():
            store.see(sight("first"), 1.7e9)
            sender.step()
            assert "says 401" in sender.counters.reason
            secret.write_text("agent:secret\n")
            sender.step()
            (alert,) = server.alerts()
            assert alert["labels"]["node"] == "node-a"
        sender.client.close()


def test_a_kill_on_a_node_reaches_alertmanager(tmp_path: Path) -> None:
    """The agent as a process: kernel's file, watcher, alert."""
    root = copy_node("cgroup2-systemd", tmp_path / "root")
    (path,) = root.glob(f"sys/fs/cgroup/**/*{WEB.container('app')}*/memory.events")
    with PageReceiver().answering() as receiver:
        server = Alertmanager(tmp_path, receiver)
        flags = ("--root", str(root), "--no-archive", "--no-kubernetes", "--alertmanager-url", server.address)
        with server.running(), running_agent(*flags) as agent:
            wait_for(lambda: agent.get("/status").json()["watcher"]["looks"] > 0, "the first look")
            text = path.read_text()
            path.write_text(text.replace("oom_kill 0", "oom_kill 1"))
            assert text != path.read_text()
            (alert,) = wait_for(server.alerts, "the alert")
            assert alert["labels"]["kind"] == "oom_kill"
            assert alert["annotations"]["pod"] == WEB.name
            (about,) = agent.get("/status").json()["alertmanagers"]
            assert about["sent"] >= 1
            assert f'nodescope_alerts_waiting{{server="{server.address}"}} 0' in agent.scrape()
