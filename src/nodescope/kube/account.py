"""
Who we are to the API server: the pod's own account, or a kubeconfig.

    in a cluster   KUBERNETES_SERVICE_HOST/PORT, token and ca.crt in the
                   account's folder; the token is replaced about once an hour,
                   so it is read again for every request
    elsewhere      a kubeconfig: server, authority, and of the user a token, a
                   token file or a client certificate

A user that wants a program run (exec) or a plug-in asked (auth-provider) is
refused: an agent on every node runs no programs named by a file.
"""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodescope.base.errors import HttpFailed, SettingsRejected
from nodescope.serve.http_client import Endpoint, parse_endpoint

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NO_ACCOUNT = "no account: not in a pod of a cluster, and no --kubeconfig FILE or KUBECONFIG"
# Where nodescope is installed, unless somebody chose another.
NAMESPACE = "nodescope"
# A kubeconfig of a hundred clusters is some hundred KiB.
KUBECONFIG_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class KubeAccount:
    """Where the API server is, and how we authenticate."""

    endpoint: Endpoint
    """Plain HTTP for a local proxy that adds the credentials."""
    origin: str
    """Where this account was found, in words."""
    token: str = ""
    token_file: Path | None = None
    namespace: str = NAMESPACE
    """That it belongs to, or that its kubeconfig names."""

    def read_token(self) -> str:
        """The current token; empty where a client certificate is used."""
        if self.token_file is None:
            return self.token
        return self.token_file.read_text().strip()


@dataclass(frozen=True, slots=True)
class Access:
    """An account, or why there is none."""

    account: KubeAccount | None = None
    absent: str = NO_ACCOUNT


def find_account(
    kubeconfig: str, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT
) -> KubeAccount | None:
    """The account of a kubeconfig if one is named, else the pod's own, else none."""
    if kubeconfig:
        paths = [Path(part).expanduser() for part in kubeconfig.split(os.pathsep) if part]
        return build_account(read_kubeconfig(paths), os.pathsep.join(map(str, paths)))
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    if not host or not (folder / "token").exists():
        return None
    port = int(environment.get("KUBERNETES_SERVICE_PORT", "443"))
    endpoint = Endpoint(host, port, build_tls("the pod's account", cafile=folder / "ca.crt"))
    origin, token = f"the pod's account in {folder}", folder / "token"
    return KubeAccount(endpoint, origin, token_file=token, namespace=read_namespace(folder))


def read_namespace(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text().strip() or NAMESPACE
    except OSError:
        return NAMESPACE


def read_kubeconfig(paths: list[Path]) -> dict[str, Any]:
    """The files merged as kubectl does: the first entry of a name counts."""
    merged: dict[str, Any] = {"clusters": {}, "contexts": {}, "users": {}, "current-context": ""}
    for path in paths:
        content = parse_yaml(read_limited(path), str(path))
        merged["current-context"] = merged["current-context"] or str(content.get("current-context") or "")
        for kind in ("clusters", "contexts", "users"):
            for item in content.get(kind) or []:
                if isinstance(item, dict) and isinstance(item.get(kind[:-1]), dict):
                    # Paths inside a kubeconfig are relative to its folder.
                    one = {**item[kind[:-1]], "folder": path.parent}
                    merged[kind].setdefault(str(item.get("name")), one)
    return merged


def read_limited(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(KUBECONFIG_BYTES + 1)
        if len(content) > KUBECONFIG_BYTES:
            raise SettingsRejected(f"kubeconfig {path}: longer than {KUBECONFIG_BYTES} bytes")
        return content.decode()
    except OSError as error:
        raise SettingsRejected(f"kubeconfig {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsRejected(f"kubeconfig {path}: not text") from error


def parse_yaml(text: str, path: str) -> dict[str, Any]:
    # Imported only where there is a kubeconfig: 3 MiB and 30 ms.
    import yaml  # noqa: PLC0415

    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsRejected(
            f"kubeconfig {path}: not YAML: {' '.join(str(error).split())[:200]}"
        ) from error
    if not isinstance(content, dict):
        raise SettingsRejected(f"kubeconfig {path}: not a kubeconfig")
    return content


def build_account(config: Mapping[str, Any], path: str) -> KubeAccount:
    """The account of the current context; SettingsRejected says what is missing."""
    context = choose(config, "contexts", config["current-context"], path)
    cluster = choose(config, "clusters", str(context.get("cluster")), path)
    # A server without authentication needs no user.
    user = choose(config, "users", str(context.get("user")), path) if context.get("user") else {}
    refuse_programs(user, path)
    try:
        endpoint = parse_endpoint(str(cluster.get("server", "")))
    except HttpFailed as error:
        raise SettingsRejected(
            f"kubeconfig {path}: server {cluster.get('server')!r} is no https:// address"
        ) from error
    if endpoint.tls:
        name = str(cluster.get("tls-server-name") or "")
        endpoint = replace(endpoint, tls=build_cluster_tls(cluster, user, path), server_name=name)
    token, token_file = str(user.get("token") or ""), user.get("tokenFile")
    file = user["folder"] / token_file if token_file and not token else None
    namespace = str(context.get("namespace") or NAMESPACE)
    return KubeAccount(endpoint, f"kubeconfig {path}", token, file, namespace)


def choose(config: Mapping[str, Any], kind: str, name: str, path: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = config[kind]
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise SettingsRejected(f"kubeconfig {path}: no {kind[:-1]} {name!r}; there are: {known}")
    return found[name]


def refuse_programs(user: Mapping[str, Any], path: str) -> None:
    for key in ("exec", "auth-provider"):
        if user.get(key):
            program = user[key].get("command") or user[key].get("name") if isinstance(user[key], dict) else ""
            raise SettingsRejected(
                f"kubeconfig {path}: its user needs {key} ({program}), which nodescope does not run;"
                " accepted: a token, a tokenFile or a client certificate (kubectl create token makes a token)"
            )


def build_cluster_tls(cluster: Mapping[str, Any], user: Mapping[str, Any], path: str) -> ssl.SSLContext:
    folder = cluster["folder"]
    data = cluster.get("certificate-authority-data")
    file = cluster.get("certificate-authority")
    tls = build_tls(
        f"kubeconfig {path}",
        cafile=folder / file if file and not data else None,
        cadata=decode(data, path).decode("latin-1") if data else None,
    )
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    load_certificate(tls, user, path)
    return tls


def build_tls(origin: str, cafile: Path | None = None, cadata: str | None = None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(cafile) if cafile else None, cadata=cadata)
    except (OSError, ValueError) as error:
        raise SettingsRejected(f"{origin}: the certificate authority cannot be used: {error}") from error


def load_certificate(tls: ssl.SSLContext, user: Mapping[str, Any], path: str) -> None:
    """The client certificate, if the user has one; ssl takes files only."""
    with tempfile.TemporaryDirectory(prefix="nodescope-") as scratch:
        files: list[Path] = []
        for key in ("client-certificate", "client-key"):
            if user.get(f"{key}-data"):
                # The folder is readable by us alone, and gone a moment later.
                file = Path(scratch, key)
                file.write_bytes(decode(user[f"{key}-data"], path))
                files.append(file)
            elif user.get(key):
                files.append(user["folder"] / user[key])
        if not files:
            return
        if len(files) == 1:
            raise SettingsRejected(f"kubeconfig {path}: client-certificate and client-key go together")
        try:
            tls.load_cert_chain(files[0], files[1])
        except (OSError, ValueError) as error:
            raise SettingsRejected(
                f"kubeconfig {path}: the client certificate cannot be used: {error}"
            ) from error


def decode(data: object, path: str) -> bytes:
    try:
        return base64.b64decode(str(data), validate=True)
    except binascii.Error as error:
        raise SettingsRejected(f"kubeconfig {path}: certificate data is not base64") from error
