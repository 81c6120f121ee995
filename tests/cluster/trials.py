"""Trials of an agent beside a real control plane that `make real` and `make soak` run at different lengths."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cluster.control_plane import ControlPlane, wait_for
from tests.cluster.programs import run_agent
from tests.nodes.pods import DATABASE, WEB

from nodescope.fpga.state import KEY, STATE_BYTES

AGENT = "agent-token"


def read_state(plane: ControlPlane, node: str) -> dict[str, Any]:
    text = plane.read_annotations(node).get(KEY)
    return json.loads(text) if text else {}


def flood(url: str, events: int, seconds: float, *, kept: bool = True) -> int:
    """
    Events at an even pace, by as many senders as it takes; how many were answered ok.

    A sender keeps its connection, or makes one for every event.
    """
    senders = 8
    began = time.monotonic()
    host, port = url.removeprefix("http://").split(":")
    kind = "Content-Type: application/x-www-form-urlencoded"
    ending = "" if kept else "Connection: close\r\n"

    def send(sender: int) -> int:
        """By hand: a thousand requests a second leave no time for a client library."""
        done = 0
        wire: socket.socket | None = None
        for number in range(sender, events, senders):
            time.sleep(max(0.0, began + number * seconds / events - time.monotonic()))
            body = f"timestamp_ms={time.time_ns() // 10**6}&duration_ms=2.5&bitstream_identifier=bitstream-{number % 100}"
            head = f"POST / HTTP/1.1\r\nHost: {host}\r\n{kind}\r\n{ending}Content-Length: {len(body)}\r\n\r\n"
            wire = wire or socket.create_connection((host, int(port)))
            wire.sendall((head + body).encode())
            answer = b""
            while not answer.endswith(b"ok"):
                answer += wire.recv(4096) or b"ok"
            done += answer.startswith(b"HTTP/1.1 200")
            if not kept:
                wire.close()
                wire = None
        if wire is not None:
            wire.close()
        return done

    with ThreadPoolExecutor(senders) as pool:
        return sum(pool.map(send, range(senders)))


def check_flood(plane: ControlPlane, root: Path, node: str, events: int, seconds: float) -> tuple[float, int]:
    """All counted, annotation at most 1 KiB at every look; how long it took, and how many writes."""
    plane.create_node(node)
    sizes = []
    with run_agent(root, plane.kubeconfig(AGENT), node) as agent, ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        flooding = pool.submit(flood, agent.url, events, seconds)
        while not flooding.done():
            sizes.append(len(plane.read_annotations(node).get(KEY, "").encode()))
            time.sleep(0.5)
        assert flooding.result() == events
        took = time.monotonic() - began
        written = agent.metric('nodescope_annotation_syncs_total{outcome="written"}')
        line = 'fpga_events_total{timestamp="window"}'
        wait_for("every event is counted", lambda: agent.metric(line) == events, 10)
    assert 0 < max(sizes) <= STATE_BYTES
    # At most every 10 s, and the first at once.
    assert 1 <= written <= took // 10 + 1
    return took, int(written)


def check_outage(plane: ControlPlane, root: Path, node: str, seconds: float) -> None:
    plane.create_node(node)
    plane.create_pod(f"{node}-before", node, WEB.container("app"))
    with run_agent(root, plane.kubeconfig(AGENT), node) as agent:
        named = f"{node}-before"
        wait_for("the name arrives", lambda: agent.container(WEB.container("app"))["pod"] == named, 30)
        plane.stop("kube-apiserver")
        wait_for("the outage is told", lambda: agent.source()["state"] == "failed", 30)
        assert agent.post(duration_ms="500", bitstream_identifier="xyz").text == "ok"
        before = agent.get("/status").json()["ticks"]
        time.sleep(seconds)
        after = agent.get("/status").json()["ticks"]
        assert after["taken"] >= before["taken"] + seconds - 1
        assert agent.container(WEB.container("app"))["pod"] == named
        plane.start_api()
        wait_for("the annotation catches up", lambda: read_state(plane, node), 60)
        plane.create_pod(f"{node}-after", node, DATABASE.container("postgres"))
        later = f"{node}-after"
        wait_for(
            "the watch goes on",
            lambda: agent.container(DATABASE.container("postgres"))["pod"] == later,
            60,
        )
        wait_for("the source says so", lambda: agent.source()["state"] == "ok", 15)
