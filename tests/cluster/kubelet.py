"""
Containers of a Deployment as a kubelet would start them, without a container runtime.

The command, the environment, the files of Secrets and ConfigMaps at their paths,
and the account's token are those of the object that the API server holds. Files
are put in place in a mount namespace of the process, where /etc and /run are
copies; names of Services resolve there to loopback. Ports are the rendered ones:
a test chooses free ones by the chart's values.
"""

import base64
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.cluster.control_plane import ControlPlane
from tests.cluster.programs import NODESCOPE, end_program

ACCOUNT = "run/secrets/kubernetes.io/serviceaccount"
MOUNT = 'mount --bind "$0/etc" /etc && mount --bind "$0/run" /run && exec "$@"'


def can_mount() -> bool:
    return os.geteuid() == 0 and bool(shutil.which("unshare"))


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

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane = plane
        self._namespace = namespace
        self._folder = folder
        self._started = 0

    @contextmanager
    def run(self, deployment: str) -> "Iterator[subprocess.Popen[bytes]]":
        """The first container of a Deployment's pod; ended with the context."""
        template = self._read(f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment}")
        pod = template["spec"]["template"]["spec"]
        container = pod["containers"][0]
        self._started += 1
        disk = self._folder / f"{deployment}-{self._started}"
        self._write_files(disk, pod, container)
        command = container.get("command") or list(NODESCOPE)
        if container.get("command"):
            command = [str(self._plane.tools / command[0]), *command[1:]]
        words = ["unshare", "-m", "--", "sh", "-c", MOUNT, str(disk), *command, *container.get("args", [])]
        with (self._folder / f"{deployment}.log").open("ab") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, env=self._environment(pod, container))
        try:
            yield process
        finally:
            end_program(process)

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
        kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "HOME") if key in os.environ}
        kept |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self._plane.api_port)}
        if pod.get("enableServiceLinks", True):
            kept |= derive_service_links(self._list("services"))
        values = {"metadata.namespace": self._namespace, "metadata.name": "pod", "spec.nodeName": "node"}
        for one in container.get("env", []):
            source = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            kept[one["name"]] = values[source] if source else one.get("value", "")
        return kept

    def _list(self, resource: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._read(f"/api/v1/namespaces/{self._namespace}/{resource}")["items"]
        return found

    def _write_files(self, disk: Path, pod: Mapping[str, Any], container: Mapping[str, Any]) -> None:
        shutil.copytree("/etc", disk / "etc", symlinks=True, ignore_dangling_symlinks=True)
        names = [f"{one['metadata']['name']}.{self._namespace}.svc" for one in self._list("services")]
        (disk / "etc/hosts").write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
        account = disk / ACCOUNT
        account.mkdir(parents=True)
        (account / "token").write_text(self._plane.issue_token(pod["serviceAccountName"], None))
        (account / "namespace").write_text(self._namespace)
        shutil.copy(self._plane.folder / "pki/apiserver.crt", account / "ca.crt")
        mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
        for volume in pod.get("volumes", []):
            for name, content in self._read_volume(volume).items():
                target = disk / mounts[volume["name"]].lstrip("/") / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)

    def _read_volume(self, volume: Mapping[str, Any]) -> dict[str, bytes]:
        where = f"/api/v1/namespaces/{self._namespace}"
        if "secret" in volume:
            data = self._read(f"{where}/secrets/{volume['secret']['secretName']}")["data"]
            return {key: base64.b64decode(value) for key, value in data.items()}
        if "configMap" in volume:
            data = self._read(f"{where}/configmaps/{volume['configMap']['name']}")["data"]
            return {key: value.encode() for key, value in data.items()}
        return {}
