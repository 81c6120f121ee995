"""The agent with a pcm beside it: a fake that writes as pcm does, and Debian's own where it is installed."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.collect.sources.test_pcm_sensor_server import make_answer
from tests.samples import find_samples

from nodescope.collect.sources.pcm.csv_stream import PcmStream
from nodescope.collect.sources.pcm.process import PcmProcess, build_command

pytestmark = pytest.mark.real

FAKE = Path(__file__).parents[1] / "fakes" / "pcm"
NODESCOPE = (sys.executable, "-m", "nodescope")


@dataclass
class RunningAgent:
    process: subprocess.Popen[bytes]
    url: str

    def get(self, path: str) -> dict[str, Any]:
        return dict(httpx.get(self.url + path, timeout=10).json())

    def window(self, seconds: float, more: str = "") -> dict[str, Any]:
        return self.get(f"/metrics?window_seconds={seconds:g}{more}")

    def pcm(self) -> dict[str, Any]:
        return dict(self.get("/status")["sources"]["pcm"])


def wait_for(look: Callable[[], Any], what: str, seconds: float = 40.0) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.HTTPError, KeyError):
            found = look()
            if found:
                return found
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)


@contextlib.contextmanager
def running_agent(*arguments: str) -> Iterator[RunningAgent]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *NODESCOPE,
        "agent",
        "--port",
        str(port),
        "--no-archive",
        "--no-kubernetes",
        "--log-level",
        "error",
    ]
    process = subprocess.Popen([*command, *arguments])
    try:
        agent = RunningAgent(process, f"http://127.0.0.1:{port}")
        wait_for(lambda: agent.get("/readyz")["ready"], "the agent is ready")
        yield agent
    finally:
        process.terminate()
        process.wait(15)


def fake(*arguments: str) -> str:
    return " ".join([str(FAKE), *arguments])


def find_children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(folder.name))
    return found


def find_pcm(agent: RunningAgent) -> int:
    """The agent's pcm, by its command line."""
    for pid in find_children(agent.process.pid):
        with contextlib.suppress(OSError):
            if str(FAKE) in Path(f"/proc/{pid}/cmdline").read_text():
                return pid
    return 0


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_every_second_has_its_sample_and_none_is_late() -> None:
    """
    60 s at 1 Hz: 60 samples of PCM, the newest below 1.2 s old, each one interval long.

    The age is that of PCM's own row: it is not the row before.
    """
    with running_agent("--pcm-command", fake("--loop", "--stamp", "now")) as agent:
        wait_for(lambda: agent.pcm()["state"] == "ok", "pcm is ok")
        ages = []
        started = time.monotonic()
        while time.monotonic() - started < 62:
            time.sleep(0.5)
            rows = agent.get("/window?scope=pcm&seconds=3&stats=last&metrics=pcm.rows")["entities"]
            ages.append((time.monotonic(), next(iter(rows))["metrics"].get("last_pcm.rows", 0)))
        window = agent.window(60)
        assert window["sources"]["ipc"] == "pcm"
        # A row and a tick may fall together: one sample either way at the edges.
        assert window["samples"].get("ipc", window["samples_count"]) in (59, 60, 61)
        assert window["metrics"]["mean_ipc"] == pytest.approx(1.5)
        assert window["metrics"]["mean_mem_bw"] == pytest.approx(2.0, rel=0.01)
        assert window["newest_seconds"] < 1.2
        # Rows are written once a second, and each is seen with the next tick.
        steps = [later[1] - earlier[1] for earlier, later in pairwise(ages)]
        assert ages[-1][1] - ages[0][1] == pytest.approx(ages[-1][0] - ages[0][0], abs=2)
        assert max(steps) <= 2
        thesis = agent.window(20, "&cores=3,4,5&names=thesis")["metrics"]
        assert thesis["mean_Core3_IPC"] == pytest.approx(1.5)
        assert thesis["mean_AvgCore_C0res"] == pytest.approx(25.0, rel=0.01)


def test_a_row_is_seen_before_the_next_is_written() -> None:
    """Newline-first: a reader of lines would have it one interval late."""
    command = build_command([str(FAKE), "--loop", "--stamp", "now"], 202302, 1.0, per_core=True)
    process = PcmProcess(command, 1.0)
    try:
        for _ in range(4):
            rows = process.read()
            arrived = time.time()
            assert isinstance(rows, list)
            stamped = time.mktime(time.strptime(" ".join(rows[0].fields[:2])[:19], "%Y-%m-%d %H:%M:%S"))
            assert arrived - stamped < 1.9
    finally:
        assert process.stop() == 0


def test_a_pcm_that_was_killed_comes_back_and_the_window_says_what_is_missing() -> None:
    with running_agent("--pcm-command", fake("--loop", "--stamp", "now")) as agent:
        wait_for(lambda: agent.window(20)["metrics"].get("mean_ipc"), "pcm gave something")
        time.sleep(3)
        first = find_pcm(agent)
        os.kill(first, signal.SIGKILL)
        failed = wait_for(
            lambda: agent.pcm() if agent.pcm()["state"] == "failed" else None, "the failure is seen", 5
        )
        assert "SIGKILL" in failed["reason"]
        wait_for(lambda: agent.pcm()["state"] == "ok", "pcm is back", 10)
        assert find_pcm(agent) != first
        time.sleep(2)
        window = agent.window(20)
        assert window["samples"]["ipc"] < window["samples_count"]
        assert window["metrics"]["mean_ipc"] == pytest.approx(1.5)
        text = httpx.get(agent.url + "/metrics").text
        assert "pcm_restarts_total 1" in text
        assert "pcm_errors_total 1" in text


def test_while_pcm_is_down_the_window_explains_it() -> None:
    """It ends by itself and never comes back: missing, with the reason, and never 0."""
    with running_agent(
        "--pcm-command", fake("--stamp", "now", "--loop", "--fault", "exit@3:1", "--say", "boom")
    ) as agent:
        wait_for(lambda: agent.pcm()["state"] == "failed", "the failure is seen")
        assert "boom" in agent.pcm()["reason"]
        window = wait_for(
            lambda: (
                answer
                if "pcm failed" in (answer := agent.window(1))["missing"].get("l2_miss_rate", "")
                else None
            ),
            "the window has no row of pcm",
        )
        assert "mean_l2_miss_rate" not in window["metrics"]


def test_two_pcms_at_once_are_detected_before_and_while_running() -> None:
    """Ours gives way and says which one is in its way."""
    with running_agent("--pcm-command", fake("--loop", "--stamp", "now")) as agent:
        wait_for(lambda: agent.pcm()["state"] == "ok", "pcm is ok")
        conflict = subprocess.Popen(
            [str(FAKE), "--loop", "1", "-csv"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: f"pid {conflict.pid}" in agent.pcm()["reason"], "the conflict is seen", 25)
            assert find_pcm(agent) == 0
        finally:
            conflict.terminate()
            conflict.wait()
        wait_for(lambda: agent.pcm()["state"] == "ok", "pcm is back", 40)


def test_pcm_ends_with_the_agent_even_if_that_is_killed() -> None:
    with running_agent("--pcm-command", fake("--loop", "--stamp", "now")) as agent:
        wait_for(lambda: agent.pcm()["state"] == "ok", "pcm is ok")
        pid = find_pcm(agent)
        assert is_alive(pid)
        agent.process.kill()
        wait_for(lambda: not is_alive(pid), "pcm is gone", 5)
    with running_agent("--pcm-command", fake("--loop", "--stamp", "now")) as agent:
        wait_for(lambda: agent.pcm()["state"] == "ok", "pcm is ok")
        pid = find_pcm(agent)
    assert not is_alive(pid)


@pytest.mark.parametrize("fault", ["stall@3:1.5", "torn@3", "double@3", "debug@3", "blank@3"])
def test_a_fault_costs_one_row_at_the_most(fault: str) -> None:
    command = [str(FAKE), "--loop", "--stamp", "now", "--rows", "6", "--fault", fault, "0.2", "-csv", "-f"]
    process = PcmProcess(command, 0.2)
    try:
        rows = 0
        while isinstance(found := process.read(), list):
            rows += len(found)
        assert found == 0
        assert rows >= 5, process.ignored
    finally:
        process.stop()


def test_signals_write_into_the_data_and_harm_nothing() -> None:
    """SIGSTOP and SIGCONT, as a debugger does: DEBUG text in the CSV."""
    process = PcmProcess([str(FAKE), "--loop", "--stamp", "now", "0.2", "-csv", "-f"], 0.2)
    try:
        assert isinstance(process.read(), list)
        assert process.pid
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGCONT)
        for _ in range(3):
            assert isinstance(process.read(), list)
        assert set(process.ignored) <= {"tail", "foreign", "blank", "duplicate"}
    finally:
        process.stop()


def test_without_flushing_rows_come_in_bursts_and_all_are_counted() -> None:
    """Blocks of 4 KiB: what is torn by a block is whole with the next."""
    process = PcmProcess([str(FAKE), "--loop", "--stamp", "now", "--rows", "60", "0.02", "-csv"], 0.02)
    bursts = []
    while isinstance(found := process.read(), list):
        bursts.append(len(found))
    assert sum(bursts) == 60
    assert max(bursts) > 1
    assert not +process.ignored
    process.stop()


def test_every_sample_is_replayed_as_it_is_read() -> None:
    """A file through a pipe at full speed gives the rows of the file read whole."""
    for path in sorted(find_samples("pcm").glob("*/*.csv")):
        stream = PcmStream()
        data = path.read_bytes()
        expected = [row.fields for row in stream.feed(data) + stream.finish()]
        process = PcmProcess([str(FAKE), "--replay", str(path), "--speed", "0", "1", "-csv", "-f"], 1.0)
        rows = []
        while isinstance(found := process.read(), list):
            rows += [row.fields for row in found]
        process.stop()
        assert [row[:-1] for row in rows] == [row[:-1] for row in expected], path.name


def test_a_sensor_server_gives_the_same_features() -> None:
    count = 0

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal count
            count += 1
            body = make_answer(1_000_000 + count).encode()
            good = self.path == "/persecond/1" and self.headers["Accept"] == "application/json"
            self.send_response(200 if good else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with running_agent("--pcm-url", f"http://127.0.0.1:{server.server_port}") as agent:
            window = wait_for(
                lambda: answer if "mean_ipc" in (answer := agent.window(10))["metrics"] else None, "ipc"
            )
            assert window["sources"]["mem_bw"] == "pcm"
            assert window["metrics"]["mean_mem_bw"] == pytest.approx(2.0)
            assert window["metrics"]["mean_cache_miss"] == pytest.approx(0.3)
            server.shutdown()
            server.server_close()
            failed = wait_for(
                lambda: agent.pcm() if agent.pcm()["state"] == "failed" else None, "the failure is seen"
            )
            assert "is pcm-sensor-server running there?" in failed["reason"]
    finally:
        server.server_close()


def test_each_source_is_explained_in_one_line() -> None:
    """Whatever this machine lacks, the line says what to do about it."""
    command = [*NODESCOPE, "sources", "--json", "--seconds", "2", "--pcm-command", "pcm-that-is-not-there"]
    content = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    found = {one["source"]: one for one in content["sources"]}
    for name in ("pcm", "perf", "resctrl", "rapl", "cpufreq", "cpuidle"):
        assert found[name]["state"] in ("ok", "absent", "failed")
        assert found[name]["state"] == "ok" or 20 < len(found[name]["reason"]) < 400
        assert "\n" not in found[name]["reason"]


def test_the_real_pcm_is_recognised_whatever_it_says() -> None:
    """Installed where it cannot work, it fails in its own words; ours name the cause."""
    program = shutil.which("pcm", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("no pcm on this machine: apt install pcm")
    command = [*NODESCOPE, "sources", "--json", "--seconds", "6", "--pcm-command", program]
    content = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    found = next(one for one in content["sources"] if one["source"] == "pcm")
    assert found["state"] == "ok" or not found["reason"].startswith("pcm exited with")
    assert found["reason"] != "not asked yet"
