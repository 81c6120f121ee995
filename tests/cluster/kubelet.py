"""
Containers of Deployments and of a DaemonSet's pods as a kubelet would start them, without a container runtime.

The command, the environment, the files of Secrets and ConfigMaps at their paths,
the account's token, the user and the capabilities are those of the object that the
API server holds; see sandbox.py. Paths of the node are those of a folder that a test
gives. Names of Services resolve to loopback. Ports are the rendered ones: a test
chooses free ones by the chart's values.
"""

import base64
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.cluster.control_plane import ControlPlane, wait_for
from tests.cluster.programs import NODESCOPE, end_program
from tests.cluster.sandbox import Mount, can_isolate, render_sandbox

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
Running = dict[str, "subprocess.Popen[bytes]"]
"""By container."""


def can_mount() -> bool:
    return can_isolate()


def derive_service_links(services: list[dict[str, Any]]) -> dict[str, str]:
    """The variables that a kubelet makes of Services (pkg/kubelet/envvars), by its documentation."""
    found: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP") or "10.0.0.1"
        if address == "None":
            continue
        name = service["metadata"]["name"].upper().replace("-", "_")
        ports = service["spec"]["ports"]
        found[f"{name}_SERVICE_HOST"] = address
        found[f"{name}_SERVICE_PORT"] = str(ports[0]["port"])
        found[f"{name}_PORT"] = f"tcp://{address}:{ports[0]['port']}"
        for port in ports:
            if port.get("name"):
                found[f"{name}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
            protocol = port.get("protocol", "TCP")
            prefix = f"{name}_PORT_{port['port']}_{protocol}"
            found[prefix] = f"{protocol.lower()}://{address}:{port['port']}"
            found[f"{prefix}_PROTO"] = protocol.lower()
            found[f"{prefix}_PORT"] = str(port["port"])
            found[f"{prefix}_ADDR"] = address
    return found


class Kubelet:
    """Starts containers of pods of one namespace."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        folder: Path,
        node_root: Path | None = None,
        *,
        has_links: bool = False,
    ) -> None:
        self._plane = plane
        self._namespace = namespace
        self._folder = folder
        self._node_root = node_root or folder / "node"
        """What stands for the root of the node that pods run on."""
        self._has_links = has_links
        """Variables of Services for every pod, also where its spec asks for none."""
        self._started = 0

    @contextmanager
    def run(self, deployment: str) -> "Iterator[subprocess.Popen[bytes]]":
        """The first container of a Deployment's pod; ended with the context."""
        template = self._read(f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}")
        pod = {"metadata": {"name": f"{deployment}-pod"}, "spec": template["spec"]["template"]["spec"]}
        process = self._start(pod, pod["spec"]["containers"][0], deployment)
        try:
            yield process
        finally:
            end_program(process)

    @contextmanager
    def run_agent_pod(self, node: str) -> Iterator[Running]:
        """All containers of the DaemonSet's pod on a node, which is bound to it first; its status is told."""
        pod = wait_for(f"the agents' pod of {node}", lambda: self._find_agent_pod(node), 60)
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self._namespace}/pods/{name}"
        with self._plane.client() as client:
            if not pod["spec"].get("nodeName"):
                # The cluster's own scheduler, which is not here.
                target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
                client.create(f"{path}/binding", target)
            pod = client.read(path)
            with ExitStack() as stack:
                running = {}
                for container in pod["spec"]["containers"]:
                    process = self._start(pod, container, container["name"])
                    stack.callback(end_program, process)
                    running[container["name"]] = process
                ready = {"type": "Ready", "status": "True"}
                status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
                client.patch(f"{path}/status", {"status": {**status, "conditions": [ready]}})
                yield running

    def _find_agent_pod(self, node: str) -> dict[str, Any] | None:
        """A DaemonSet's controller says for which node a pod is by its affinity."""
        for pod in self._list("pods"):
            labels = pod["metadata"].get("labels", {})
            if labels.get("app.kubernetes.io/component") == "agent" and find_wanted_node(pod) == node:
                return pod
        return None

    def _start(
        self, pod: Mapping[str, Any], container: Mapping[str, Any], name: str
    ) -> "subprocess.Popen[bytes]":
        self._started += 1
        disk = self._folder / f"{name}-{self._started}"
        mounts = self._prepare(disk, pod, container)
        command = container.get("command") or list(NODESCOPE)
        if container.get("command"):
            command = [str(self._plane.tools / command[0]), *command[1:]]
        script = disk / "start"
        context = container.get("securityContext", {})
        script.write_text(render_sandbox(disk, mounts, context, [self._plane.tools]))
        isolated = ["unshare", "-m", "--propagation", "private", "--", "sh", str(script)]
        words = [*isolated, *command, *container.get("args", [])]
        with (self._folder / f"{name}.log").open("ab") as log:
            environment = self._environment(pod, container)
            return subprocess.Popen(words, stdout=log, stderr=log, env=environment)

    def await_restart(self, deployment: str, port: int, process: "subprocess.Popen[bytes]") -> float:
        """
        Probes its container as the rendered livenessProbe says, until a kubelet would have killed it.

        Seconds from the call on. A probe that times out fails; after as many in a row the container
        is sent SIGTERM, and SIGKILL when its grace period is over.
        """
        template = self._read(f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}")
        pod = template["spec"]["template"]["spec"]
        probe = pod["containers"][0]["livenessProbe"]
        began, failed = time.monotonic(), 0
        while failed < probe["failureThreshold"]:
            started = time.monotonic()
            try:
                url = f"http://127.0.0.1:{port}{probe['httpGet']['path']}"
                is_live = httpx.get(url, timeout=probe["timeoutSeconds"]).status_code < 400
            except httpx.HTTPError:
                is_live = False
            failed = 0 if is_live else failed + 1
            if failed < probe["failureThreshold"]:
                time.sleep(max(0.0, started + probe["periodSeconds"] - time.monotonic()))
        process.terminate()
        usual = pod.get("terminationGracePeriodSeconds", 30)
        try:
            process.wait(probe.get("terminationGracePeriodSeconds", usual))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return time.monotonic() - began

    def read_log(self, deployment: str) -> str:
        return (self._folder / f"{deployment}.log").read_text()

    def _read(self, path: str) -> dict[str, Any]:
        with self._plane.client() as client:
            return client.read(path)

    def _environment(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, str]:
        """Of the machine only where programs and our sources are."""
        kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
        kept |= {"HOME": "/", "KUBERNETES_SERVICE_HOST": "127.0.0.1"}
        kept["KUBERNETES_SERVICE_PORT"] = str(self._plane.api_port)
        if self._has_links or pod["spec"].get("enableServiceLinks", True):
            kept |= derive_service_links(self._list("services"))
        values = {
            "metadata.namespace": self._namespace,
            "metadata.name": pod["metadata"]["name"],
            "spec.nodeName": pod["spec"].get("nodeName", "node"),
        }
        for one in container.get("env", []):
            source = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            kept[one["name"]] = values[source] if source else one.get("value", "")
        return kept

    def _list(self, resource: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._read(f"/api/v1/namespaces/{self._namespace}/{resource}")["items"]
        return found

    def _prepare(self, disk: Path, pod: Mapping[str, Any], container: Mapping[str, Any]) -> list[Mount]:
        """The container's files on this machine, and where it sees them."""
        disk.mkdir(parents=True)
        shutil.copytree("/etc", disk / "etc", symlinks=True, ignore_dangling_symlinks=True)
        names = [f"{one['metadata']['name']}.{self._namespace}.svc" for one in self._list("services")]
        (disk / "etc/hosts").write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
        volumes = {one["name"]: one for one in pod["spec"].get("volumes", [])}
        mounts = [
            Mount(
                self._find_volume(pod["metadata"]["name"], volumes[one["name"]]),
                one["mountPath"],
                bool(one.get("readOnly")),
            )
            for one in container.get("volumeMounts", [])
        ]
        if pod["spec"].get("automountServiceAccountToken", True):
            mounts.append(Mount(self._write_account(disk, pod), ACCOUNT, read_only=True))
        return mounts

    def _write_account(self, disk: Path, pod: Mapping[str, Any]) -> Path:
        folder = disk / "account"
        folder.mkdir()
        token = self._plane.issue_bound_token(pod["spec"]["serviceAccountName"], pod["metadata"])
        (folder / "token").write_text(token)
        (folder / "namespace").write_text(self._namespace)
        shutil.copy(self._plane.folder / "pki/apiserver.crt", folder / "ca.crt")
        return folder

    def _find_volume(self, pod: str, volume: Mapping[str, Any]) -> Path:
        """One folder for all containers of a pod."""
        if "hostPath" in volume:
            path: str = volume["hostPath"]["path"]
            folder = self._node_root / path.lstrip("/")
            # As DirectoryOrCreate does it; what must be there is a fault of the test.
            if volume["hostPath"].get("type") == "DirectoryOrCreate":
                folder.mkdir(parents=True, exist_ok=True)
            return folder
        folder = self._folder.joinpath("volumes", pod, str(volume["name"]))
        folder.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            folder.chmod(0o777)
        for name, content in self._read_volume(volume).items():
            (folder / name).write_bytes(content)
        return folder

    def _read_volume(self, volume: Mapping[str, Any]) -> dict[str, bytes]:
        where = f"/api/v1/namespaces/{self._namespace}"
        if "secret" in volume:
            data = self._read(f"{where}/secrets/{volume['secret']['secretName']}")["data"]
            # Where keys are named, the others stay out.
            paths = {one["key"]: one["path"] for one in volume["secret"].get("items", [])} or {
                key: key for key in data
            }
            return {path: base64.b64decode(data[key]) for key, path in paths.items()}
        if "configMap" in volume:
            data = self._read(f"{where}/configmaps/{volume['configMap']['name']}")["data"]
            return {key: value.encode() for key, value in data.items()}
        return {}


def find_wanted_node(pod: Mapping[str, Any]) -> str:
    """The node that a DaemonSet's controller made a pod for."""
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    name: str = field["values"][0]
    return name
