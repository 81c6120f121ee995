"""
A real control plane for tests: etcd and kube-apiserver, more on request.

No containers and no kubelet: nodes and pods are what a test creates, and a
pod's status is what a test patches. Everything listens on free loopback ports
and ends with the test. The programs come from `make cluster-tools`.
"""

import hashlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from nodescope.base.errors import NodescopeError
from nodescope.kube.account import KubeAccount, find_account
from nodescope.kube.client import Client

HERE = Path(__file__).parent
SCHEDULER = HERE.parents[1] / "deploy" / "scheduler"
RBAC = HERE.parents[1] / "deploy" / "rbac"
# What every test needs; kube-scheduler, kube-controller-manager and kubectl are beside them.
LEAST = ("etcd", "kube-apiserver")
# The users of the test cluster, by token; groups give the first one everything.
ADMIN = "admin-token"
TOKENS = {
    ADMIN: 'admin,1,"system:masters"',
    "scheduler-token": "system:kube-scheduler,2",
    "agent-token": "nodescope-agent,3",
    "nobody-token": "nobody,4",
    "extender-token": "system:serviceaccount:nodescope:nodescope-extender,5",
}
# Ready after 4 s on a quiet machine; a busy one gets what it needs.
READY_SECONDS = 120.0
STOP_SECONDS = 20.0
# The account of an agent: names, its own annotations, and Events.
AGENT_RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]},
]


class PlaneClient(Client):
    """A client that closes its connection at the end of a with."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tools_folder() -> Path:
    """Where tools/go-tools puts the programs of this go.sum."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    # As sha256sum writes it, which the script hashes.
    lines = "".join(
        f"{hashlib.sha256((HERE / name).read_bytes()).hexdigest()}  {name}\n" for name in ("go.mod", "go.sum")
    )
    return Path(base, "nodescope-tools", hashlib.sha256(lines.encode()).hexdigest()[:16], "bin")


def find_tools(programs: tuple[str, ...] = LEAST) -> Path:
    """The programs; built on CI, skipped with one line where they are not there."""
    folder = tools_folder()
    if all((folder / name).exists() for name in programs):
        return folder
    if os.environ.get("CI") == "true":
        subprocess.run([HERE.parents[1] / "tools/go-tools", "cluster"], check=True)
        return folder
    pytest.skip("no test control plane: run make cluster-tools (needs Go 1.25, about ten minutes, once)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(what: str, is_true: Callable[[], Any], seconds: float = READY_SECONDS) -> Any:
    """What the question answers once it is no longer empty."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = is_true()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds:g} s")


@dataclass
class ControlPlane:
    """One cluster, and a client with every right."""

    folder: Path
    tools: Path
    etcd_port: int = field(default_factory=free_port)
    api_port: int = field(default_factory=free_port)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    extender_port: int = 0
    """Where the scheduler looks for an extender."""
    api_flags: tuple[str, ...] = ()
    """More of the API server's."""

    def start(self) -> None:
        self._write_keys()
        self.run("etcd", *self._etcd_flags())
        self.start_api()

    def start_api(self) -> None:
        self.run("kube-apiserver", *self._api_flags())
        wait_for("kube-apiserver is ready", self._is_ready)

    def start_scheduler(self, config: Path) -> None:
        port = free_port()
        self.run("kube-scheduler", f"--config={config}", "--bind-address=127.0.0.1", f"--secure-port={port}")

    def write_scheduler_config(
        self, extenders: list[Any] | None = None, requests_per_second: int = 50, **extender: Any
    ) -> Path:
        """
        The shipped configuration, with what a test must have otherwise; [] for no extender.

        Fifty requests a second, and twice that at once, is what kube-scheduler allows itself by default.
        """
        config = yaml.safe_load((SCHEDULER / "config.yaml").read_text())
        config["clientConnection"] = {
            "kubeconfig": str(self.kubeconfig("scheduler-token")),
            "qps": requests_per_second,
            "burst": 2 * requests_per_second,
        }
        config["leaderElection"] = {"leaderElect": False}
        (only,) = config["extenders"]
        # Plain HTTP on loopback unless a test says otherwise.
        plain = {
            "urlPrefix": f"http://127.0.0.1:{self.extender_port}",
            "enableHTTPS": False,
            "tlsConfig": None,
        }
        only.update({**plain, **extender})
        if extenders is not None:
            config["extenders"] = extenders
        path = self.folder / "scheduler.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    def restart_scheduler(self, **extender: Any) -> None:
        self.stop("kube-scheduler")
        self.start_scheduler(self.write_scheduler_config(**extender))

    def start_controllers(self, *more: str) -> None:
        """Deployments and DaemonSets become pods."""
        controllers = ("deployment-controller", "replicaset-controller", "daemonset-controller", *more)
        self.run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            f"--controllers={','.join(controllers)}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self.folder / 'controllers'}",
        )

    def run(self, name: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen([self.tools / name, *flags], stdout=log, stderr=log)

    def stop(self, name: str) -> None:
        program = self.running.pop(name)
        if name == "kube-apiserver":
            # It would wait for open watches, for up to a minute; etcd has all that matters.
            program.kill()
        program.terminate()
        try:
            program.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def stop_all(self) -> None:
        for name in reversed(list(self.running)):
            self.stop(name)

    def kubeconfig(self, token: str) -> Path:
        """A kubeconfig of one of the users."""
        # A token of an account is longer than a file's name may be.
        path = self.folder / f"{hashlib.sha256(token.encode()).hexdigest()[:16]}.kubeconfig"
        # Renamed into place: a program that is just starting reads it while the next test, or a thread, asks for it.
        whole = path.with_suffix(f".new-{threading.get_ident()}")
        whole.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
            "contexts: [{name: test, context: {cluster: test, user: test}}]\n"
            f"clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{self.api_port}',"
            " certificate-authority: pki/apiserver.crt}}]\n"
            f"users: [{{name: test, user: {{token: {token}}}}}]\n"
        )
        return whole.rename(path)

    def account(self, user: str = ADMIN) -> KubeAccount:
        account = find_account(str(self.kubeconfig(user)), {})
        assert account is not None
        return account

    def client(self, user: str = ADMIN) -> PlaneClient:
        return PlaneClient(self.account(user))

    # -- what tests create ------------------------------------------------

    def create_node(self, name: str, **labels: str) -> None:
        with self.client() as client:
            about = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
            client.create("/api/v1/nodes", {"metadata": about})
            room = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
            ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "a test's node"}
            status = {"capacity": room, "allocatable": room, "conditions": [ready]}
            client.patch(f"/api/v1/nodes/{name}/status", {"status": status})

    def create_pod(self, name: str, node: str, container_id: str = "", **about: Any) -> dict[str, Any]:
        """A pod on a node, running where a container id is given."""
        with self.client() as client:
            spec = {"nodeName": node, "containers": [{"name": "app", "image": "nginx:1.17.10"}]}
            made = client.create(
                "/api/v1/namespaces/default/pods", {"metadata": {"name": name, **about}, "spec": spec}
            )
            if container_id:
                status = {
                    "phase": "Running",
                    "containerStatuses": [
                        {
                            "name": "app",
                            "containerID": f"containerd://{container_id}",
                            "restartCount": 2,
                            "ready": True,
                            "image": "sha256:0",
                            "imageID": "sha256:0",
                        }
                    ],
                }
                client.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})
        return made

    def read_annotations(self, node: str) -> dict[str, str]:
        with self.client() as client:
            found: dict[str, str] = client.read(f"/api/v1/nodes/{node}")["metadata"].get("annotations") or {}
        return found

    def kubectl(self, *words: str | Path, user: str = ADMIN) -> str:
        """What kubectl prints; AssertionError with its words when it fails."""
        made = self.run_kubectl(*words, user=user)
        assert made.returncode == 0, made.stderr
        return made.stdout

    def run_kubectl(self, *words: str | Path, user: str = ADMIN) -> "subprocess.CompletedProcess[str]":
        command = [self.tools / "kubectl", f"--kubeconfig={self.kubeconfig(user)}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def annotate(self, node: str, **annotations: str | None) -> None:
        """Keys are given as key_of_the_annotation, or whole in a dict."""
        with self.client() as client:
            client.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}})

    def issue_token(self, account: str, node: str | None) -> str:
        """A token of an account in nodescope, as the kubelet asks for: bound to a pod on a node."""
        if node is None:
            return self.issue_bound_token(account, {})
        spec = {
            "nodeName": node,
            "serviceAccountName": account,
            "containers": [{"name": "agent", "image": "nodescope"}],
        }
        with self.client() as client:
            pod = {"metadata": {"name": f"{account}-{node}"}, "spec": spec}
            made = client.create("/api/v1/namespaces/nodescope/pods", pod)
        return self.issue_bound_token(account, made["metadata"])

    def issue_bound_token(self, account: str, pod: Mapping[str, Any]) -> str:
        """Bound to the pod with this metadata; to none where it has no uid."""
        spec: dict[str, Any] = {"expirationSeconds": 3600}
        if "uid" in pod:
            spec["boundObjectRef"] = {
                "kind": "Pod",
                "apiVersion": "v1",
                "name": pod["name"],
                "uid": pod["uid"],
            }
        with self.client() as client:
            path = f"/api/v1/namespaces/nodescope/serviceaccounts/{account}/token"
            issued = client.create(path, {"spec": spec})
        token: str = issued["status"]["token"]
        return token

    def clear(self) -> None:
        """No nodes, no workloads: what an earlier test left is in nobody's way."""
        kinds = "deployments,replicasets,daemonsets,pods"
        self.kubectl(
            "delete", kinds, "--all", "--all-namespaces", "--grace-period=0", "--force", "--wait=true"
        )
        self.kubectl("delete", "nodes", "--all", "--wait=true")

    def submit_pod(self, name: str, labels: dict[str, str], **spec: Any) -> None:
        """A pod for the scheduler to place."""
        containers = [{"name": "app", "image": "nginx:1.17.10"}]
        with self.client() as client:
            client.create(
                "/api/v1/namespaces/default/pods",
                {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, **spec}},
            )

    def read_places(self, selector: str = "") -> dict[str, str]:
        """Pod -> node, of the pods that have one."""
        with self.client() as client:
            query = {"labelSelector": selector} if selector else {}
            pods = client.read("/api/v1/namespaces/default/pods", query)["items"]
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")
        }

    def wait_placed(self, name: str, seconds: float = 60.0) -> str:
        found: str = wait_for(f"pod {name} is placed", lambda: self.read_places().get(name), seconds)
        return found

    def allow_agent(self) -> None:
        """The rights of an agent for the user of agent-token."""
        with self.client() as client:
            role = {"metadata": {"name": "test-agent"}, "rules": AGENT_RULES}
            binding = {
                "metadata": {"name": "test-agent"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "test-agent",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nodescope-agent"}
                ],
            }
            client.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
            client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

    # -- flags ------------------------------------------------------------

    def _write_keys(self) -> None:
        openssl = shutil.which("openssl") or "openssl"
        key, public = self.folder / "account.key", self.folder / "account.pub"
        subprocess.run([openssl, "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        subprocess.run(
            [openssl, "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True
        )
        lines = [f"{token},{user}\n" for token, user in TOKENS.items()]
        (self.folder / "tokens.csv").write_text("".join(lines))

    def _etcd_flags(self) -> list[str]:
        peer = "http://127.0.0.1:2380"
        client = f"http://127.0.0.1:{self.etcd_port}"
        return [
            "--name=test",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            "--listen-peer-urls=http://127.0.0.1:0",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_flags(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--cert-dir={self.folder / 'pki'}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.api_port}",
            # As every installer sets it; otherwise a DaemonSet with PCM is refused.
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'account.pub'}",
            f"--service-account-signing-key-file={self.folder / 'account.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            # Nobody here would take their taints away or make their accounts.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--endpoint-reconciler-type=none",
            *self.api_flags,
        ]

    def _is_ready(self) -> bool:
        if self.running["kube-apiserver"].poll() is not None:
            last = (self.folder / "kube-apiserver.log").read_text()[-2000:]
            raise AssertionError(f"kube-apiserver ended:\n{last}")
        try:
            with self.client() as client:
                client.read("/api/v1/namespaces/default")
                # The bootstrap roles come last; without them nobody but the admin may do anything.
                client.read("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node")
        except NodescopeError:
            return False
        return True


def run_control_plane(folder: Path, *more: str, api_flags: tuple[str, ...] = ()) -> Iterator[ControlPlane]:
    """For a fixture: `yield from run_control_plane(folder)`; `more` programs are asked for by name."""
    plane = ControlPlane(folder, find_tools((*LEAST, *more)), api_flags=api_flags)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop_all()
