"""The viewer as a process: beside a real agent, after it, and under `up`."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.agents import (
    NODESCOPE,
    Agent,
    clean_environment,
    free_port,
    run_nodescope,
    running_agent,
    stop,
    wait_for,
)
from tests.use.viewer.archives import write_demo

pytestmark = pytest.mark.real

# Three interpreters with DuckDB and Arrow start at once; a busy machine takes its time.
SLOW_SECONDS = 120.0
CERTIFICATE = (
    *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"),
    *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
)


@dataclass
class Viewer:
    """A running viewer."""

    process: subprocess.Popen[bytes]
    client: httpx.Client

    def json(self, path: str, **parameters: Any) -> Any:
        return self.client.get(path, params=parameters or None).raise_for_status().json()

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Server-sent events, as a browser takes them apart."""
        with self.client.stream("GET", path) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            name = ""
            for line in answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)


@contextlib.contextmanager
def running_viewer(*words: str) -> Iterator[Viewer]:
    port = free_port()
    process = subprocess.Popen(
        [*NODESCOPE, "viewer", *words, "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=clean_environment(),
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            viewer = Viewer(process, client)
            wait_for(lambda: is_up(viewer), "a viewer that answers", SLOW_SECONDS)
            yield viewer
    finally:
        stop(process)


def is_up(viewer: Viewer) -> bool:
    assert viewer.process.poll() is None, "the viewer left"
    try:
        return viewer.client.get("/api/health").status_code == 200
    except httpx.TransportError:
        return False


@dataclass
class Scene:
    agent: Agent
    data: Path
    viewer: Viewer


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """An agent with its folder, and a viewer that has both."""
    with tempfile.TemporaryDirectory(prefix="nodescope-viewer-") as name:
        data = Path(name, "data")
        with (
            running_agent("--data", str(data), "--no-kubernetes", "--node", "here") as agent,
            running_viewer(str(data), "--agent", f"http://{agent.address}") as viewer,
        ):
            yield Scene(agent, data, viewer)


def test_the_viewer_sees_a_node_that_has_no_file_yet(scene: Scene) -> None:
    """Before the first rotation everything comes from the log and the ring."""
    found = scene.viewer.json("/api/instance")
    assert found["nodes"] == ["here"]
    assert found["live"] is True
    assert found["lag_seconds"] < 5
    assert found["cores"] == os.cpu_count()


def test_the_live_tail_advances(scene: Scene) -> None:
    """A status first, then samples, each newer than the one before."""
    moments: list[float] = []
    names: list[str] = []
    for name, content in scene.viewer.events("/api/live?metric=cpu.load_1m&metric=memory.MemAvailable"):
        names.append(name)
        if name == "points":
            moments.append(content["at"])
            assert set(content["panels"]) <= {"cpu.load_1m", "memory.MemAvailable"}
            assert all(value > 0 for value in content["panels"]["memory.MemAvailable"].values())
        if len(moments) == 3:
            break
    assert names[0] == "status"
    assert moments == sorted(set(moments))


def test_the_live_tail_has_what_is_no_container_s(scene: Scene) -> None:
    """The panels of a machine without containers: CPU of the node, under the id that its panel knows."""
    drawn = scene.viewer.json("/api/timeseries", metric="cpu", scope="node", range="1m")
    known = {one["id"] for one in drawn["series"]}
    events = scene.viewer.events("/api/live?metric=node/cpu&metric=memory.MemAvailable")
    found = next(content["panels"]["node/cpu"] for name, content in events if name == "points")
    assert set(found) == known
    assert all(0 <= value <= (os.cpu_count() or 1) * 1.5 for value in found.values())


def test_what_is_live_is_also_in_the_panel(scene: Scene) -> None:
    """A chart that is loaded now ends where the live tail is."""
    name, status = next(scene.viewer.events("/api/live?metric=cpu.load_1m"))
    assert (name, status["live"]) == ("status", True)
    found = scene.viewer.json("/api/timeseries", metric="cpu.load_1m", range="1m")
    assert scene.viewer.json("/api/instance")["to"] - found["time"][-1] < 5


def test_the_agent_alone_is_enough(scene: Scene) -> None:
    """Without a folder the ring's minutes are shown, once each."""
    with running_viewer("--agent", f"http://{scene.agent.address}") as alone:
        found = alone.json("/api/timeseries", metric="cpu.load_1m", range="all")
        assert len(found["time"]) == len(set(found["time"])) > 1
        assert alone.json("/api/instance")["nodes"] == ["here"]


def test_top_shows_the_same_node(scene: Scene) -> None:
    """Of the agent, of the viewer, of the folder; as JSON for scripts."""
    for place in (f"http://{scene.agent.address}", str(scene.viewer.client.base_url), str(scene.data)):
        done = run_nodescope("top", place, "--json")
        assert done.returncode == 0, done.stderr
        assert isinstance(json.loads(done.stdout), list)
    table = run_nodescope("top", str(scene.data), "--once")
    assert table.stdout.splitlines()[1].startswith("container")
    assert "\x1b" not in table.stdout


def test_a_viewer_that_is_told_to_stop_stops_although_a_page_listens(scene: Scene) -> None:
    """An open live tail does not hold the exit."""
    with running_viewer(str(scene.data)) as viewer:
        events = viewer.events("/api/live?metric=cpu.load_1m")
        next(events)
        viewer.process.send_signal(signal.SIGTERM)
        assert viewer.process.wait(timeout=15) == 0


def test_a_lost_agent_is_said_with_the_age_of_the_newest_sample() -> None:
    """The page goes on with what there is; live says since when nothing came."""
    with (
        running_agent("--no-archive", "--no-kubernetes") as agent,
        running_viewer("--agent", f"http://{agent.address}") as viewer,
    ):
        events = viewer.events("/api/live?metric=cpu.load_1m")
        assert next(content for name, content in events if name == "status")["live"] is True
        agent.process.kill()
        agent.process.wait()
        lost = next(content for name, content in events if name == "status" and not content["live"])
        assert agent.address in lost["reason"]
        assert lost["lag_seconds"] >= 5
        assert viewer.json("/api/timeseries", metric="cpu.load_1m", range="all")["time"]
        assert viewer.json("/api/instance")["problems"][0]["file"] == f"http://{agent.address}"


# -- up ----------------------------------------------------------------------------------


def children_of(pid: int) -> dict[str, int]:
    """By command: agent, viewer, consolidate."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = {}
    for word in words:
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{word}/cmdline").read_bytes().split(b"\0")
            if b"nodescope" in line:
                found[line[line.index(b"nodescope") + 1].decode()] = int(word)
    return found


def test_up_brings_all_three_restarts_what_dies_and_ends_with_all() -> None:
    """The viewer is killed: it is said and comes back; Ctrl-C ends everybody, exit 0."""
    with running_agent("--no-kubernetes", command="up", ready_seconds=SLOW_SECONDS) as up:
        banner = wait_for(
            lambda: up.printed() if "Ctrl-C" in up.printed() else None, "a banner", SLOW_SECONDS
        )
        address = next(word for line in banner.splitlines() if "viewer" in line for word in line.split()[1:])
        assert httpx.get(f"{address}/api/instance", timeout=SLOW_SECONDS).json()["live"] is True
        family = wait_for(
            lambda: found if len(found := children_of(up.pid)) == 3 else None, "three children", SLOW_SECONDS
        )
        assert set(family) == {"agent", "viewer", "consolidate"}
        os.kill(family["viewer"], signal.SIGKILL)
        wait_for(lambda: "the viewer was ended by SIGKILL" in up.printed(), "a word about it")
        wait_for(
            lambda: children_of(up.pid).get("viewer", family["viewer"]) != family["viewer"], "a new viewer"
        )
        wait_for(lambda: answers(address), "its answer", SLOW_SECONDS)
        family = children_of(up.pid)
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(timeout=30) == 0
        assert "Traceback" not in up.printed()
        for pid in family.values():
            assert not Path(f"/proc/{pid}").exists() or is_zombie(pid)


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/api/health").status_code == 200
    except httpx.TransportError:
        return False


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def test_children_do_not_outlive_an_up_that_was_killed() -> None:
    """The kernel ends them; nobody has to look for them."""
    with running_agent("--no-kubernetes", command="up", ready_seconds=SLOW_SECONDS) as up:
        family = wait_for(
            lambda: found if len(found := children_of(up.pid)) == 3 else None, "three children", SLOW_SECONDS
        )
        up.process.kill()
        up.process.wait()
        wait_for(
            lambda: all(not Path(f"/proc/{pid}").exists() or is_zombie(pid) for pid in family.values()),
            "the end",
        )


def test_a_viewers_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    """Of viewer, up and demo alike, before anything is written or started."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        for words in (
            ("viewer", str(tmp_path)),
            ("up", "--data", str(tmp_path)),
            ("demo", "--data", str(tmp_path)),
        ):
            done = run_nodescope(*words, "--port", port)
            assert done.returncode in (1, 2)
            assert len(done.stderr.strip().splitlines()) == 1, done.stderr
            assert f"127.0.0.1:{port} is in use" in done.stderr
            assert "--port" in done.stderr
        assert not any(tmp_path.iterdir())


def test_demo_writes_an_archive_and_opens_the_viewer_on_it(tmp_path: Path) -> None:
    """It prints where; the page answers there with the demo's node."""
    port = free_port()
    words = (
        "demo",
        "--data",
        str(tmp_path / "demo"),
        "--hours",
        "0.1",
        "--containers",
        "3",
        "--port",
        str(port),
    )
    process = subprocess.Popen(
        [*NODESCOPE, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=clean_environment()
    )
    try:
        assert process.stdout is not None
        with process.stdout as output:
            lines = [output.readline().decode(), output.readline().decode()]
        assert "truth.json" in lines[0]
        assert f"http://127.0.0.1:{port}" in lines[1]
        wait_for(lambda: answers(f"http://127.0.0.1:{port}"), "the page", SLOW_SECONDS)
        found = httpx.get(f"http://127.0.0.1:{port}/api/instance", timeout=SLOW_SECONDS).json()
        assert found["nodes"] == ["demo-1"]
    finally:
        started = time.monotonic()
        stop(process)
        assert process.returncode == 0
        assert time.monotonic() - started < 10


def test_a_viewer_with_a_token_and_tls_is_closed(tmp_path: Path) -> None:
    """As on the agent: HTTPS with the certificate given, 401 without the token."""
    write_demo(tmp_path / "demo", containers=1, hours=0.05)
    token, cert, key = tmp_path / "token", tmp_path / "cert.pem", tmp_path / "key.pem"
    token.write_text("s3cret\n")
    subprocess.run(
        ["openssl", *CERTIFICATE, "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    port = free_port()
    words = ("--port", str(port), "--token-file", str(token), "--tls-cert", str(cert), "--tls-key", str(key))
    process = subprocess.Popen(
        [*NODESCOPE, "viewer", str(tmp_path / "demo"), *words],
        stdout=subprocess.DEVNULL,
        env=clean_environment(),
    )
    try:
        with httpx.Client(
            base_url=f"https://127.0.0.1:{port}",
            verify=ssl.create_default_context(cafile=str(cert)),
            timeout=SLOW_SECONDS,
        ) as client:
            wait_for(lambda: is_up(Viewer(process, client)), "a viewer that answers", SLOW_SECONDS)
            assert client.get("/api/instance").status_code == 401
            assert client.get("/api/instance", headers={"Authorization": "Bearer s3cret"}).status_code == 200
            browser = client.get("/?token=s3cret")
            assert browser.status_code == 303
            assert client.get("/api/instance").status_code == 200
    finally:
        stop(process)
