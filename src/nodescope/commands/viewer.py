"""nodescope viewer: the web page and its API over data folders, files, and an agent's live tail."""

import argparse
import asyncio
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope import __version__
from nodescope.base.clock import SystemClock
from nodescope.base.errors import SettingsRejected
from nodescope.base.log import set_up_logging
from nodescope.base.settings import Settings
from nodescope.commands.shared.one_heap import share_one_heap
from nodescope.commands.shared.options import add_address, read_guards
from nodescope.commands.shared.ports import VIEWER_PORT
from nodescope.serve.gate import is_local
from nodescope.serve.probes import judge_by_pulse
from nodescope.serve.server import answer_probes, build_server, open_socket, warn_if_open
from nodescope.serve.token import Token
from nodescope.wiring import choose_data

if TYPE_CHECKING:
    # Arrow is loaded when the command runs, after it was told where its memory comes from.
    from nodescope.read.live.follow import AgentFeed

EXAMPLE = """example:
  nodescope viewer ~/.local/state/nodescope --agent http://127.0.0.1:9100
  nodescope viewer demo
  nodescope viewer metrics-20260101T000000Z.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "path",
        type=Path,
        nargs="*",
        metavar="PATH",
        help="a data folder, a folder of such, or Parquet files; this machine's data folder unless given",
    )
    parser.add_argument("--agent", metavar="URL", help="an agent whose live tail is shown, http://HOST:9100")
    parser.add_argument("--agent-token-file", type=Path, metavar="FILE", help="the agent's token")
    parser.add_argument("--agent-ca", type=Path, metavar="FILE", help="who signed the agent's certificate")
    add_address(parser, VIEWER_PORT)


def run(options: argparse.Namespace) -> int:
    share_one_heap()
    settings = read_guards(options).settings
    set_up_logging(settings.log_level)
    # An agent alone is enough to look at: its ring holds the last minutes.
    paths = options.path or ([] if options.agent else [choose_data(settings, os.environ)])
    return serve(options, settings, paths)


def serve(options: argparse.Namespace, settings: Settings, paths: Sequence[Path]) -> int:
    """Answers until it is stopped; prints the address once it listens."""
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.viewer.app import build_app
    from nodescope.use.viewer.request import Viewer

    token = Token(settings.token_file) if settings.token_file else None
    viewer = Viewer(NodeFolders(paths, SystemClock(), make_feed(options)))
    host = f"[{options.host}]" if ":" in options.host else options.host
    app = build_app(
        viewer,
        token.admits if token else None,
        only_local=is_local(options.host),
        hosts=tuple(options.allow_host),
    )
    server = build_server(app, settings, viewer.connections)
    warn_if_open((f"{host}:{options.port}",), settings)
    listener = open_socket(f"{host}:{options.port}", "--port")
    scheme = "https" if settings.tls_cert else "http"
    address = f"{scheme}://{host}:{listener.getsockname()[1]}"

    def leave(number: int, frame: object) -> None:
        # Open live tails end by themselves; the server then stops at once.
        viewer.stopping = True
        server.handle_exit(number, None)
        del frame

    async def main() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, leave)
        sys.stdout.write(f"nodescope {__version__} viewer  {address}\n")
        sys.stdout.flush()
        with answer_probes(settings.probe_listen, partial(judge_by_pulse, server.pulse)):
            await server._serve(sockets=[listener])  # noqa: SLF001 - serve() would take the signals from us

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
    finally:
        viewer.stopping = True
        listener.close()
    return 0


def make_feed(options: argparse.Namespace) -> "AgentFeed | None":
    if not getattr(options, "agent", None):
        if getattr(options, "agent_token_file", None) or getattr(options, "agent_ca", None):
            raise SettingsRejected("--agent-token-file and --agent-ca go with --agent URL")
        return None
    address = options.agent if "://" in options.agent else f"http://{options.agent}"
    if not address.startswith(("http://", "https://")):
        raise SettingsRejected(f"--agent {options.agent} is not accepted; accepted: http://HOST:PORT")
    try:
        token = options.agent_token_file.read_text().strip() if options.agent_token_file else ""
        tls = ssl.create_default_context(cafile=str(options.agent_ca)) if options.agent_ca else None
    except OSError as error:
        raise SettingsRejected(f"--agent-token-file or --agent-ca: {error.strerror or error}") from error
    from nodescope.read.live.follow import AgentFeed

    return AgentFeed(address.rstrip("/"), token, tls)
