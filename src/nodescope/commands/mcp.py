"""nodescope mcp: answers for agents, over data folders, viewers, or the viewers of a cluster."""

import argparse
import asyncio
import logging
import os
import signal
import ssl
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope import __version__
from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected, SettingsRejected
from nodescope.base.log import set_up_logging
from nodescope.base.quantity import parse_seconds
from nodescope.base.settings import Settings
from nodescope.base.settings_load import LoadedSettings, choose_data
from nodescope.commands.shared.one_heap import share_one_heap
from nodescope.commands.shared.options import add_address, read_guards, read_quantity
from nodescope.serve.connections import Connections
from nodescope.serve.server import answer_probes, open_socket, warn_if_open
from nodescope.serve.server import build_server as build_http
from nodescope.serve.token import Token
from nodescope.wiring import find_access

if TYPE_CHECKING:
    from nodescope.use.mcp.nodes.fleet import Fleet, NodeDirectory
    from nodescope.use.mcp.nodes.viewer import ViewerAccess

EXAMPLE = """example:
  nodescope mcp ~/.local/state/nodescope --stdio
  nodescope mcp demo --port 8080
  nodescope mcp --viewer worker-1=http://10.0.0.5:8050 --viewer worker-2=http://10.0.0.6:8050
  nodescope mcp --kubernetes --host 0.0.0.0 --allow-host nodescope-mcp.monitoring
"""
PORT = 8080


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "path",
        type=Path,
        nargs="*",
        metavar="PATH",
        help="data folders; this machine's unless a viewer or --kubernetes is given",
    )
    parser.add_argument(
        "--stdio", action="store_true", help="speak on stdin and stdout: for an agent's own config"
    )
    add_address(parser, PORT)
    add_nodes(parser)
    add_deadline(parser)


def add_deadline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deadline", default="10s", metavar="T", help="for a node's answer; 10s unless given"
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


def run(options: argparse.Namespace) -> int:
    share_one_heap()
    check_kubernetes(options)
    loaded = read_guards(options, "kubeconfig")
    settings = loaded.settings
    set_up_logging(settings.log_level)
    # The SDK tells every request, and repeats what strangers sent.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    fleet = build_fleet(options, loaded)
    return serve_stdio(fleet) if options.stdio else serve_http(options, settings, fleet)


def check_kubernetes(options: argparse.Namespace) -> None:
    """What only discovery uses is refused without it: it would do nothing."""
    if options.kubernetes:
        return
    for name in ("kubeconfig", "namespace", "selector", "viewer_port"):
        if getattr(options, name) is not None:
            raise SettingsRejected(f"--{name.replace('_', '-')} goes with --kubernetes")


def build_fleet(options: argparse.Namespace, loaded: LoadedSettings) -> "Fleet":
    from nodescope.use.mcp.nodes.fleet import Fleet, JoinedDirectory

    deadline_seconds = read_quantity(options, "deadline", parse_deadline, "100ms to 5m")
    directories: list[NodeDirectory] = []
    if options.viewer:
        directories.append(build_static(options, deadline_seconds))
    if options.kubernetes:
        directories.append(build_discovery(options, loaded, deadline_seconds))
    if options.path or not directories:
        directories.append(build_local(options.path or [choose_data(loaded.settings, os.environ)]))
    return Fleet(JoinedDirectory(directories), SystemClock(), deadline_seconds)


def parse_deadline(text: str) -> float:
    seconds = parse_seconds(text)
    if not 0.1 <= seconds <= 300:
        raise ValueError(text)
    return seconds


def build_local(paths: list[Path]) -> "NodeDirectory":
    from nodescope.use.mcp.nodes.local import LocalFolders

    for path in paths:
        if not path.exists():
            raise RequestRejected(
                f"no such file or folder: {path}; nodescope demo --no-serve writes one to try"
            )
    folders = LocalFolders(paths, SystemClock())
    if trouble := folders.trouble():
        sys.stderr.write(f"nodescope mcp: {trouble}\n")
    return folders


def build_static(options: argparse.Namespace, deadline_seconds: float) -> "NodeDirectory":
    from nodescope.use.mcp.nodes.fleet import NodeEntry, StaticDirectory
    from nodescope.use.mcp.nodes.viewer import ViewerNode, parse_address

    access = read_access(options, deadline_seconds)
    entries: dict[str, NodeEntry] = {}
    for text in options.viewer:
        node, _, url = text.partition("=")
        if not node or not url:
            raise SettingsRejected(
                f"--viewer {text} is not accepted; accepted: NODE=URL such as worker-1=http://10.0.0.5:8050"
            )
        if node in entries:
            raise SettingsRejected(f"--viewer names {node} twice")
        endpoint = parse_address(url, access.tls)
        entries[node] = NodeEntry(node, ViewerNode(node, endpoint, access), endpoint.render())
    return StaticDirectory(entries)


def build_discovery(
    options: argparse.Namespace, loaded: LoadedSettings, deadline_seconds: float
) -> "NodeDirectory":
    from nodescope.kube.client import Client
    from nodescope.use.mcp.nodes.discovery import SELECTOR, PodDirectory
    from nodescope.use.mcp.nodes.viewer import VIEWER_PORT

    cluster = find_access(loaded, os.environ)
    if cluster.account is None:
        raise SettingsRejected(f"--kubernetes: {cluster.absent}")
    access = read_access(options, deadline_seconds)
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
    )
    directory.watch.start()
    return directory


def read_access(options: argparse.Namespace, deadline_seconds: float) -> "ViewerAccess":
    from nodescope.use.mcp.nodes.viewer import ViewerAccess

    try:
        tls = ssl.create_default_context(cafile=str(options.viewer_ca)) if options.viewer_ca else None
    except (OSError, ssl.SSLError) as error:
        raise SettingsRejected(f"--viewer-ca {options.viewer_ca}: {error.strerror or error}") from error
    path: Path | None = options.viewer_token_file
    if path is None:
        return ViewerAccess(SystemClock(), deadline_seconds, tls)
    if not path.is_file():
        raise SettingsRejected(f"--viewer-token-file {path}: no such file")
    return ViewerAccess(SystemClock(), deadline_seconds, tls, lambda: path.read_text().strip())


def serve_stdio(fleet: "Fleet") -> int:
    from nodescope.use.mcp.protocol.server import build_server
    from nodescope.use.mcp.protocol.stdio import serve_lines

    server = build_server(fleet)

    # An agent that ends closes our stdin or sends a signal; both are an orderly end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(serve_lines(server, sys.stdin.buffer, fleet.longest_seconds))
    except KeyboardInterrupt:
        pass
    return 0


def serve_http(options: argparse.Namespace, settings: Settings, fleet: "Fleet") -> int:
    from nodescope.use.mcp.protocol.http import Readiness, build_app
    from nodescope.use.mcp.protocol.server import build_server

    token = Token(settings.token_file) if settings.token_file else None
    server = build_server(fleet)
    host = f"[{options.host}]" if ":" in options.host else options.host
    own = () if host in ("0.0.0.0", "[::]") else (host,)  # noqa: S104 - compared, not bound
    readiness = Readiness(fleet)
    hosts = (*own, *options.allow_host)
    connections = Connections()
    app = build_app(server, readiness, hosts, token.admits if token else None, connections)
    http = build_http(app, settings, connections)
    warn_if_open((f"{host}:{options.port}",), settings)
    listener = open_socket(f"{host}:{options.port}", "--port")
    scheme = "https" if settings.tls_cert else "http"
    address = f"{scheme}://{host}:{listener.getsockname()[1]}/mcp"

    def leave(number: int, _: object) -> None:
        http.handle_exit(number, None)

    async def main() -> None:
        async with server.session_manager.run():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, leave)
            sys.stdout.write(f"nodescope {__version__} mcp  {address}\n")
            sys.stdout.flush()
            with answer_probes(settings.probe_listen, partial(readiness.judge_probe, http.pulse)):
                await http._serve(sockets=[listener])  # noqa: SLF001 - serve() would raise the signal again, inside the SDK

    try:
        asyncio.run(main())
    finally:
        listener.close()
    return 0
