"""
`make cluster-demo`: three agents as three nodes on one machine, and pods placed by what they report.

    make cluster-demo              the walk-through, then everything ends
    make cluster-demo ARGS=--keep  the same, and it stays until Ctrl-C

A real control plane (make cluster-tools builds it once): etcd, kube-apiserver,
kube-controller-manager, kube-scheduler with deploy/scheduler/config.yaml.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.control_plane import RBAC, ControlPlane, free_port, tools_folder, wait_for
from tests.cluster.programs import Agent, Extender, run_agent, run_extender

from nodescope.base.quantity import render_seconds
from nodescope.commands.text.terminal import paint, render_table
from nodescope.fpga.state import KEY, STATE_BYTES

NODES = {"minikube": "abc", "minikube-m02": "def", "minikube-m03": "xyz"}
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx-deployment, labels: {app: nginx}}
spec:
  replicas: 1
  selector: {matchLabels: {app: nginx}}
  template:
    metadata:
      labels:
        app: nginx
        fpga-scheduling.io/enabled: "true"
        fpga-scheduling.io/bitstream-identifier: def
    spec:
      containers: [{name: nginx, image: nginx:1.17.10, ports: [{containerPort: 80}]}]
"""


def say(text: str = "") -> None:
    print(text, flush=True)


def begin(step: str, text: str) -> None:
    say(f"\n{paint(step, 'bold')}\n  {text}")


def show_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in render_table(head, rows).splitlines():
        say(f"    {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description="three agents, one control plane, pods placed by FPGA state")
    parser.add_argument("--keep", action="store_true", help="stay until Ctrl-C")
    keep = parser.parse_args().keep
    tools = tools_folder()
    if not (tools / "kube-controller-manager").exists():
        say("no control plane yet: make cluster-tools builds it (needs Go, about ten minutes, once)")
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="nodescope-demo-") as folder:
        plane = ControlPlane(Path(folder), tools)
        try:
            show(plane, keep)
        except KeyboardInterrupt:
            say("\nstopping")
        finally:
            plane.stop_all()
    return 0


def show(plane: ControlPlane, keep: bool) -> None:
    say("Three nodes, three agents, one stock kube-scheduler: pods are placed by what the FPGAs report.")
    began = time.monotonic()
    begin("a cluster", "etcd, kube-apiserver, kube-controller-manager, kube-scheduler on this machine")
    plane.start()
    plane.allow_agent()
    plane.kubectl("apply", "-f", RBAC / "namespace.yaml")
    plane.kubectl("apply", "-f", RBAC / "extender.yaml")
    plane.extender_port = free_port()
    plane.start_controllers()
    plane.start_scheduler(plane.write_scheduler_config())
    for name in NODES:
        plane.create_node(name)
    with ExitStack() as running:
        log = plane.folder / "extender.log"
        kubeconfig = plane.kubeconfig("extender-token")
        extender = running.enter_context(run_extender(kubeconfig, plane.extender_port, log))
        account = plane.kubeconfig("agent-token")
        agents = {name: running.enter_context(run_agent(Path("/"), account, name)) for name in NODES}
        say(f"  and beside it an agent for each node and the extender, after {since(began)}")
        report(plane, agents)
        place(plane, extender)
        spread(plane)
        place_plain(plane, extender)
        if not keep:
            say("\nAll of it ends now; make cluster-demo ARGS=--keep leaves it running, to look around.")
            return
        say("\nIt stays until Ctrl-C. Look around:")
        say(f"  kubectl --kubeconfig {plane.kubeconfig('admin-token')} get pods -o wide")
        pod = next(iter(plane.read_places("app=nginx")))
        say(f"  curl '{extender.url}/explain?pod=default/{pod}'")
        for name, agent in agents.items():
            say(f"  curl {agent.url}/status    # the agent of {name}")
        signal.pause()


def since(began: float) -> str:
    return render_seconds(time.monotonic() - began)


def report(plane: ControlPlane, agents: dict[str, Agent]) -> None:
    begin("events", "each agent is told that its FPGA took 10 s to load a bitstream")
    for name, bitstream in NODES.items():
        agent = agents[name]
        at_ms = time.time_ns() // 10**6
        data = f"--data timestamp_ms={at_ms} --data reconfiguration_ms=10000 --data bitstream_identifier={bitstream}"
        answer = agent.post(timestamp_ms=at_ms, reconfiguration_ms=10000, bitstream_identifier=bitstream)
        say(f"    $ curl {agent.url}/ {data}    -> {answer.text}")
    began = time.monotonic()
    wait_for("the annotations appear", lambda: all(KEY in plane.read_annotations(name) for name in NODES), 15)
    begin("annotations", f"{KEY} is on all three Nodes {since(began)} later")
    rows = []
    for name in NODES:
        text = plane.read_annotations(name)[KEY]
        state = json.loads(text)
        loading = render_seconds(state["recentReconfigurationTime"] / 1000)
        has = " ".join(state["recentBitstreamIdentifiers"])
        rows.append((name, has, loading, f"{len(text.encode())} of {STATE_BYTES} bytes"))
    show_rows(("node", "has", "spent on loading", "annotation"), rows)


def place(plane: ControlPlane, extender: Extender) -> None:
    workload = plane.folder / "workload.yaml"
    workload.write_text(DEPLOYMENT)
    began = time.monotonic()
    plane.kubectl("apply", "-f", workload)
    places = wait_for("the pod is placed", lambda: plane.read_places("app=nginx"), 60)
    pod, node = next(iter(places.items()))
    begin(
        "a pod",
        f"a Deployment that needs bitstream def: placed on {paint(node, 'green')} after {since(began)}",
    )
    rows = [
        # What weighed most; what no agent here reports comes after it.
        (
            one["node"],
            f"{one['score']} of 10",
            render_seconds(one["cost_ms"] / 1000),
            one["why"].partition(";")[0],
        )
        for one in extender.explain(f"default/{pod}")["nodes"]
    ]
    show_rows(("node", "score", "expected loss", "why"), rows)


def spread(plane: ControlPlane) -> None:
    plane.kubectl("scale", "deployment", "nginx-deployment", "--replicas=10")
    places = wait_for(
        "all are placed", lambda: len(found := plane.read_places("app=nginx")) == 10 and found, 60
    )
    begin("a wave", "nine more at once, before any annotation could tell: what is on its way is counted")
    rows = [(name, "#" * list(places.values()).count(name)) for name in NODES]
    show_rows(("node", "pods"), rows)


def place_plain(plane: ControlPlane, extender: Extender) -> None:
    plane.submit_pod("plain", {})
    node = plane.wait_placed("plain")
    asked = extender.get("/explain?pod=default/plain").status_code != 404
    begin(
        "a plain pod",
        f"asks for nothing of ours: on {node}, by kube-scheduler {'and us' if asked else 'alone'}",
    )


if __name__ == "__main__":
    sys.exit(main())
