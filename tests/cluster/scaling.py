"""
Autoscaling on a real control plane: aggregation layer, adapter, HPA controller, agents.

No kubelet: a thread plays what one does for pods of a Deployment. It puts them
on a node, says that they run, and makes their cgroup in the root of the agent
that stands for this node, with a CPU counter that grows as a test says.
"""

import base64
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.cluster.control_plane import ADMIN, ControlPlane, free_port, wait_for
from tests.cluster.programs import Program, run_program
from tests.nodes.pods import WEB

PROXY = "front-proxy-client"
SERVICE = "nodescope-adapter"
NAMESPACE = "nodescope"
APIS = ("v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io")
AGENT_LABELS = {"app.kubernetes.io/name": "nodescope", "app.kubernetes.io/component": "agent"}


def make_authority(folder: Path, name: str) -> None:
    run_openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt")  # fmt: skip


def sign(folder: Path, authority: str, name: str, *, usage: str, host: str = "localhost") -> None:
    """NAME.crt and NAME.key, for what `usage` says: clientAuth or serverAuth."""
    request = folder / f"{name}.csr"
    run_openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", request)  # fmt: skip
    extensions = folder / f"{name}.ext"
    extensions.write_text(f"extendedKeyUsage={usage}\nsubjectAltName=DNS:{host}\n")
    run_openssl("x509", "-req", "-in", request, "-CA", folder / f"{authority}.crt", "-CAkey",
                folder / f"{authority}.key", "-CAcreateserial", "-days", "2", "-extfile", extensions,
                "-out", folder / f"{name}.crt")  # fmt: skip


def run_openssl(*words: str | Path) -> None:
    subprocess.run([shutil.which("openssl") or "openssl", *words], check=True, capture_output=True)


def make_aggregation(folder: Path) -> tuple[str, ...]:
    """Keys of the aggregation layer, and the API server's flags for them, as kubeadm sets them."""
    make_authority(folder, "front-proxy-ca")
    sign(folder, "front-proxy-ca", PROXY, usage="clientAuth")
    return (
        f"--requestheader-client-ca-file={folder / 'front-proxy-ca.crt'}",
        f"--requestheader-allowed-names={PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={folder / f'{PROXY}.crt'}",
        f"--proxy-client-key-file={folder / f'{PROXY}.key'}",
    )


def make_serving_certificate(folder: Path) -> Path:
    """The adapter's, in a folder as a Secret mounts it."""
    mounted = folder / "api-tls"
    mounted.mkdir()
    make_authority(folder, "serving-ca")
    sign(folder, "serving-ca", "serving", usage="serverAuth", host=f"{SERVICE}.{NAMESPACE}.svc")
    for source, target in (
        ("serving.crt", "tls.crt"),
        ("serving.key", "tls.key"),
        ("serving-ca.crt", "ca.crt"),
    ):
        shutil.copy(folder / source, mounted / target)
    return mounted


class Adapter(Program):
    """nodescope adapter; `url` is that of its plain pages."""

    def __init__(self, url: str, process: "subprocess.Popen[bytes]", api_port: int) -> None:
        super().__init__(url, process)
        self.api_port = api_port


@contextmanager
def run_adapter(plane: ControlPlane, kubeconfig: Path, tls: Path, *flags: str) -> Iterator[Adapter]:
    """Registered with the API server, which reaches it by a Service that is a name for this machine."""
    port, api_port = free_port(), free_port()
    command = ["adapter", "--kubeconfig", str(kubeconfig), "--listen", f"127.0.0.1:{port}"]
    command += ["--api-listen", f"127.0.0.1:{api_port}", "--api-tls", str(tls), *flags]
    with run_program(command, plane.folder / "adapter.log") as process:
        adapter = Adapter(f"http://127.0.0.1:{port}", process, api_port)
        wait_for("the adapter is ready", adapter.is_ready, 60)
        register(plane, api_port, tls)
        yield adapter


def register(plane: ControlPlane, api_port: int, tls: Path) -> None:
    bundle = base64.b64encode((tls / "ca.crt").read_bytes()).decode()
    with plane.client() as client:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": api_port}]},
        }
        client.create(f"/api/v1/namespaces/{NAMESPACE}/services", service)
        for name in APIS:
            version, _, group = name.partition(".")
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": api_port},
                "caBundle": bundle,
            }
            client.create(
                "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": name}, "spec": spec}
            )
    wait_available(plane)


def wait_available(plane: ControlPlane) -> None:
    for name in APIS:
        wait_for(f"{name} is available", partial(is_available, plane, name), 90)


def is_available(plane: ControlPlane, name: str) -> bool:
    with plane.client() as client:
        found = client.read(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


def create_agent_pod(plane: ControlPlane, node: str, address: str) -> None:
    """The pod of an agent, as its DaemonSet would have it."""
    pod = {
        "metadata": {"name": f"agent-{node}", "labels": AGENT_LABELS},
        "spec": {"nodeName": node, "containers": [{"name": "agent", "image": "nodescope"}]},
    }
    with plane.client() as client:
        client.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/agent-{node}/status"
        client.patch(path, {"status": status})


class PlayedKubelet:
    """Pods of a label run on one node, and use as many cores as a test says."""

    def __init__(self, plane: ControlPlane, node: str, root: Path, selector: str) -> None:
        self._plane, self._node, self._selector = plane, node, selector
        self._top = root / "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice"
        (self._pattern,) = self._top.glob(
            f"*{WEB.uid.replace('-', '_')}.slice/cri-containerd-{WEB.container('app')}.scope"
        )
        self.cores = 0.0
        """Of each pod."""
        self.folders: dict[str, Path] = {}
        self._used: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(0.25):
            self._start_new()
            now = time.monotonic()
            for uid, folder in self.folders.items():
                self._used[uid] += round(self.cores * (now - before) * 1e6)
                write_usage(folder, self._used[uid])
            before = now

    def _start_new(self) -> None:
        with self._plane.client() as client:
            pods = client.read("/api/v1/namespaces/default/pods", {"labelSelector": self._selector})["items"]
            for pod in pods:
                if pod["metadata"]["uid"] not in self.folders:
                    self._start(client, pod["metadata"]["name"], pod["metadata"]["uid"])

    def _start(self, client: Any, name: str, uid: str) -> None:
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": self._node}}
        client.create(f"/api/v1/namespaces/default/pods/{name}/binding", binding)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 600))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        status = {"phase": "Running", "startTime": now, "conditions": [ready], "podIP": "127.0.0.1"}
        client.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})
        slice_name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        scope = f"cri-containerd-{uid.replace('-', '') * 2}.scope"
        target = self._top / slice_name / scope
        shutil.copytree(self._pattern, target, ignore=shutil.ignore_patterns("init.scope"))
        self._used[uid] = 0
        write_usage(target, 0)
        self.folders[uid] = target


def write_usage(folder: Path, used_usec: int) -> None:
    """In place, as the kernel does it: the agent keeps the file open."""
    used = f"{used_usec:018d}"
    lines = f"usage_usec {used}\nuser_usec {used}\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
    with (folder / "cpu.stat").open("r+b") as file:
        file.write(lines.encode())
        file.truncate()


def read_replicas(plane: ControlPlane, deployment: str) -> int:
    with plane.client() as client:
        found: int = client.read(f"/apis/apps/v1/namespaces/default/deployments/{deployment}")["spec"][
            "replicas"
        ]
    return found


def create_autoscaler(plane: ControlPlane, deployment: str, metric: dict[str, Any], most: int = 8) -> None:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
        "minReplicas": 1,
        "maxReplicas": most,
        "metrics": [metric],
    }
    with plane.client() as client:
        client.create(
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            {"metadata": {"name": deployment}, "spec": spec},
        )


def per_pod(name: str, value: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def ask_raw(plane: ControlPlane, path: str, user: str = ADMIN) -> dict[str, Any]:
    """Through the API server."""
    found: dict[str, Any] = json.loads(plane.kubectl("get", "--raw", path, user=user))
    return found
