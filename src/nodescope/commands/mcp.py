"""nodescope mcp: answers for agents, over data folders, viewers, or the viewers of a cluster."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope import __version__
from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.base.log import set_up_logging
from nodescope.base.settings import Settings
from nodescope.base.settings_load import LoadedSettings, choose_data
from nodescope.commands.shared.node_options import (
    add_deadline,
    add_nodes,
    build_viewers,
    check_kubernetes,
    parse_deadline,
    read_access,
)
from nodescope.commands.shared.one_heap import share_one_heap
from nodescope.commands.shared.options import add_address, read_guards, read_quantity
from nodescope.serve.connections import Connections
from nodescope.serve.server import answer_probes, open_socket, warn_if_open
from nodescope.serve.server import build_server as build_http
from nodescope.serve.token import Token

if TYPE_CHECKING:
    from nodescope.use.mcp.nodes.fleet import Fleet, NodeDirectory

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


def run(options: argparse.Namespace) -> int:
    share_one_heap()
    check_kubernetes(options)
    loaded = read_guards(options, "kubeconfig")
    settings = loaded.settings
    set_up_logging(settings.log_level)
    # The SDK tells every request, and repeats what strangers sent.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    fleet = build_fleet(options, loaded)
    is_local = options.path or not (options.viewer or options.kubernetes)
    if is_local and (trouble := fleet.directory.trouble()):
        # Told at the start, and served nevertheless: an agent may be about to write there.
        sys.stderr.write(f"nodescope mcp: {trouble}\n")
    return serve_stdio(fleet) if options.stdio else serve_http(options, settings, fleet)


def build_fleet(options: argparse.Namespace, loaded: LoadedSettings) -> "Fleet":
    from nodescope.use.mcp.nodes.fleet import Fleet, JoinedDirectory

    deadline_seconds = read_quantity(options, "deadline", parse_deadline, "100ms to 5m")
    directories: list[NodeDirectory] = []
    if options.viewer or options.kubernetes:
        from nodescope.use.mcp.nodes.viewer import ViewerNode

        access = read_access(options, deadline_seconds)
        directories += build_viewers(
            options, loaded, access, lambda node, endpoint: ViewerNode(node, endpoint, access)
        )
    if options.path or not directories:
        directories.append(build_local(options.path or [choose_data(loaded.settings, os.environ)]))
    return Fleet(JoinedDirectory(directories), SystemClock(), deadline_seconds)


def build_local(paths: list[Path]) -> "NodeDirectory":
    from nodescope.use.mcp.nodes.local import LocalFolders
    from nodescope.use.studies.ready import start_making_ready

    for path in paths:
        if not path.exists():
            raise RequestRejected(
                f"no such file or folder: {path}; nodescope demo --no-serve writes one to try"
            )
    folders = LocalFolders(paths, SystemClock())
    # Studies run where the files are.
    start_making_ready(folders.make_ready)
    return folders


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
