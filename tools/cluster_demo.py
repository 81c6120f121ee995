"""
`make cluster-demo`: three agents as three nodes on one machine, and pods placed by what they report.

    make cluster-demo              the walk-through, then everything ends
    make cluster-demo ARGS=--keep  the same, and it stays until Ctrl-C

A real control plane (make cluster-tools builds it once): etcd, kube-apiserver,
kube-controller-manager, kube-scheduler with deploy/scheduler/config.yaml.
"""

import argparse
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.control_plane import RBAC, ControlPlane, free_port, tools_folder, wait_for
from tests.cluster.programs import Agent, Extender, run_agent, run_extender

from nodescope.base.fpga_state import KEY

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


def say(text: str) -> None:
    print(text, flush=True)


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
    say("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler")
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
        agents = {
            name: running.enter_context(run_agent(Path("/"), plane.kubeconfig("agent-token"), name))
            for name in NODES
        }
        report(plane, agents)
        place(plane, extender)
        say(f"\nwhy: curl '{extender.url}/explain?pod=default/NAME'")
        if keep:
            say(f"kubectl --kubeconfig {plane.kubeconfig('admin-token')} get pods -o wide")
            say("Ctrl-C ends all of it")
            signal.pause()


def report(plane: ControlPlane, agents: dict[str, Agent]) -> None:
    for name, bitstream in NODES.items():
        agent = agents[name]
        at_ms = time.time_ns() // 10**6
        data = f"--data timestamp_ms={at_ms} --data reconfiguration_ms=10000 --data bitstream_identifier={bitstream}"
        say(f"  curl --request POST --url {agent.url}/ {data}")
        agent.post(timestamp_ms=at_ms, reconfiguration_ms=10000, bitstream_identifier=bitstream)
    began = time.monotonic()
    wait_for("the annotations appear", lambda: all(KEY in plane.read_annotations(name) for name in NODES), 15)
    say(f"annotations after {time.monotonic() - began:.1f} s:")
    for name in NODES:
        say(f"  {name:14}{plane.read_annotations(name)[KEY][:110]}...")


def place(plane: ControlPlane, extender: Extender) -> None:
    workload = plane.folder / "workload.yaml"
    workload.write_text(DEPLOYMENT)
    plane.kubectl("apply", "-f", workload)
    places = wait_for("the pod is placed", lambda: plane.read_places("app=nginx"), 60)
    pod, node = next(iter(places.items()))
    say(f"\na pod that needs bitstream def went to {node}:")
    for one in extender.explain(f"default/{pod}")["nodes"]:
        say(f"  {one['node']:14}score {one['score']:2}  cost {one['cost_ms']:8.0f} ms  {one['why'][:70]}")
    plane.kubectl("scale", "deployment", "nginx-deployment", "--replicas=10")
    places = wait_for(
        "all are placed", lambda: len(found := plane.read_places("app=nginx")) == 10 and found, 60
    )
    counts = {name: list(places.values()).count(name) for name in NODES}
    say(f"\nnine more at once, before any annotation could change: {counts}")


if __name__ == "__main__":
    sys.exit(main())
