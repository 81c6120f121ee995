"""Which nodes a command asks, where they are behind viewers: the options, and the directory that they give."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nodescope.base.clock import SystemClock
from nodescope.base.errors import SettingsRejected
from nodescope.base.quantity import parse_seconds
from nodescope.base.settings_load import LoadedSettings
from nodescope.commands.shared.client_tls import build_client_tls
from nodescope.serve.http_client import Endpoint

if TYPE_CHECKING:
    from nodescope.use.nodes.directory import NodeDirectory
    from nodescope.use.nodes.discovery import Closable
    from nodescope.use.nodes.viewer_client import ViewerAccess

Answerer_ = TypeVar("Answerer_", bound="Closable")
DEADLINE = "10s"


def add_deadline(parser: argparse.ArgumentParser, default: str = DEADLINE) -> None:
    parser.add_argument(
        "--deadline", default=default, metavar="T", help=f"for a node's answer; {default} unless given"
    )


def add_nodes(parser: argparse.ArgumentParser) -> None:
    """Where the nodes come from, where it is no folder."""
    parser.add_argument(
        "--viewer",
        action="append",
        default=[],
        metavar="NODE=URL",
        help="a node's viewer, http://HOST:8050; may be repeated",
    )
    parser.add_argument(
        "--kubernetes", action="store_true", help="the viewers of a cluster, found by their pods' label"
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="of the cluster; else the pod's own account")
    parser.add_argument("--namespace", metavar="NAME", help="of the viewers' pods; all unless given")
    parser.add_argument("--selector", metavar="LABELS", help="of the viewers' pods, as kubectl -l takes it")
    parser.add_argument(
        "--viewer-port", type=int, metavar="N", help='8050 unless given, or the port a pod names "viewer"'
    )
    parser.add_argument("--viewer-token-file", type=Path, metavar="FILE", help="the viewers' token")
    parser.add_argument("--viewer-ca", type=Path, metavar="FILE", help="who signed the viewers' certificates")
    parser.add_argument(
        "--viewer-cert",
        type=Path,
        metavar="FOLDER",
        help="tls.crt and tls.key to show to viewers that ask for a certificate",
    )


def check_kubernetes(options: argparse.Namespace) -> None:
    """What only discovery uses is refused without it: it would do nothing."""
    if options.kubernetes:
        return
    for name in ("kubeconfig", "namespace", "selector", "viewer_port"):
        if getattr(options, name) is not None:
            raise SettingsRejected(f"--{name.replace('_', '-')} goes with --kubernetes")


def parse_deadline(text: str) -> float:
    seconds = parse_seconds(text)
    if not 0.1 <= seconds <= 300:
        raise ValueError(text)
    return seconds


def build_viewers(
    options: argparse.Namespace,
    loaded: LoadedSettings,
    access: "ViewerAccess",
    make: Callable[[str, Endpoint], Answerer_],
) -> "list[NodeDirectory[Answerer_]]":
    """Those that were given, then those of the cluster; none where neither was asked for."""
    found: list[NodeDirectory[Answerer_]] = []
    if options.viewer:
        found.append(build_static(options, access, make))
    if options.kubernetes:
        found.append(build_discovery(options, loaded, access, make))
    return found


def build_static(
    options: argparse.Namespace, access: "ViewerAccess", make: Callable[[str, Endpoint], Answerer_]
) -> "NodeDirectory[Answerer_]":
    from nodescope.use.nodes.directory import NodeEntry, StaticDirectory
    from nodescope.use.nodes.viewer_client import parse_address

    entries: dict[str, NodeEntry[Answerer_]] = {}
    for text in options.viewer:
        node, _, url = text.partition("=")
        if not node or not url:
            raise SettingsRejected(
                f"--viewer {text} is not accepted; accepted: NODE=URL such as worker-1=http://10.0.0.5:8050"
            )
        if node in entries:
            raise SettingsRejected(f"--viewer names {node} twice")
        endpoint = parse_address(url, access.tls)
        entries[node] = NodeEntry(node, make(node, endpoint), endpoint.render())
    return StaticDirectory(entries)


def build_discovery(
    options: argparse.Namespace,
    loaded: LoadedSettings,
    access: "ViewerAccess",
    make: Callable[[str, Endpoint], Answerer_],
) -> "NodeDirectory[Answerer_]":
    from nodescope.kube.client import Client
    from nodescope.use.nodes.discovery import SELECTOR, PodDirectory
    from nodescope.use.nodes.viewer_client import VIEWER_PORT

    # It knows the whole agent, which a viewer that nobody asks has no use for.
    from nodescope.wiring import find_access

    cluster = find_access(loaded, os.environ)
    if cluster.account is None:
        raise SettingsRejected(f"--kubernetes: {cluster.absent}")
    if access.tls is not None:
        # A pod's address is in no certificate; that our own authority signed it has to do.
        access.tls.check_hostname = False
    directory = PodDirectory(
        Client(cluster.account),
        Client(cluster.account),
        options.namespace or "",
        options.selector or SELECTOR,
        options.viewer_port or VIEWER_PORT,
        access,
        make,
    )
    directory.watch.start()
    return directory


def read_access(options: argparse.Namespace, deadline_seconds: float) -> "ViewerAccess":
    from nodescope.use.nodes.viewer_client import ViewerAccess

    tls = build_client_tls("viewer", options.viewer_ca, options.viewer_cert)
    path: Path | None = options.viewer_token_file
    if path is None:
        return ViewerAccess(SystemClock(), deadline_seconds, tls)
    if not path.is_file():
        raise SettingsRejected(f"--viewer-token-file {path}: no such file")
    return ViewerAccess(SystemClock(), deadline_seconds, tls, lambda: path.read_text().strip())
