"""
nodescope viewer: the web page and its API over data folders, files, and an agent's live tail.

A page that nobody looks at costs the memory of a small server. What answers
questions is loaded for the first of them; after some minutes without one the
process runs its program anew, which gives that memory back.
"""

import argparse
import asyncio
import os
import signal
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp

from nodescope import __version__
from nodescope.base.clock import SystemClock
from nodescope.base.errors import SettingsRejected
from nodescope.base.log import set_up_logging
from nodescope.base.quantity import parse_seconds
from nodescope.base.settings import Settings
from nodescope.base.settings_load import LoadedSettings, choose_data
from nodescope.commands.shared.exec_anew import (
    STOP_SIGNALS,
    exec_anew,
    find_own_words,
    hear_signals,
    hold_signals,
    take_kept,
)
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
from nodescope.commands.shared.own_address import find_own_address, name_reachable
from nodescope.commands.shared.places import find_folder, is_store
from nodescope.commands.shared.ports import VIEWER_PORT
from nodescope.read.files.given_paths import check_given, has_data
from nodescope.serve.connections import Connections
from nodescope.serve.gate import Gate, is_local
from nodescope.serve.probes import judge_by_pulse
from nodescope.serve.server import (
    Server,
    adopt_socket,
    answer_probes,
    build_server,
    open_socket,
    warn_if_open,
)
from nodescope.serve.token import Token, is_admitted, make_secret
from nodescope.use.viewer.front import Front, guard

if TYPE_CHECKING:
    # Arrow and FastAPI are loaded for the first question.
    from nodescope.read.files.store_listing import StoreListing
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.cluster.gatherer import Gatherer
    from nodescope.use.viewer.request import Viewer

EXAMPLE = """example:
  nodescope viewer ~/.local/state/nodescope --agent http://127.0.0.1:9100
  nodescope viewer demo
  nodescope viewer metrics-20260101T000000Z.parquet
  nodescope viewer s3://bucket/archive --days 2
  nodescope viewer --kubernetes --kubeconfig ~/.kube/config
  nodescope viewer --viewer worker-1=http://10.0.0.5:8050 --viewer worker-2=http://10.0.0.6:8050
"""
# A page that is open asks all the time; who comes back after this waits a second.
REST = "5m"
# A page of many nodes is asked again after a while, and what they said is worth keeping.
CLUSTER_REST = "1h"
# A node's cells come from its rollups: what takes longer than this hangs.
NODE_DEADLINE = "5s"
# Of an object store. Each file that is shown costs a request and some 20 KiB of memory.
STORE_DAYS = 2
DAYS_MOST = 90
# What the page of many nodes shows first is gathered so often, while somebody has looked within a
# quarter of an hour.
GATHER_SECONDS, LOOKED_SECONDS = 60.0, 900.0
# Somebody who is connected may be about to ask.
LOOK_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "path",
        nargs="*",
        metavar="PATH",
        help="a data folder, a folder of such, a fleet's copy (a folder, s3://, gs://, abfs://, file://), or Parquet files; "
        "this machine's data folder unless given",
    )
    parser.add_argument(
        "--days",
        type=int,
        metavar="N",
        help=f"of an object store, the newest days that are shown; {STORE_DAYS} unless given",
    )
    parser.add_argument("--agent", metavar="URL", help="an agent whose live tail is shown, http://HOST:9100")
    parser.add_argument("--agent-token-file", type=Path, metavar="FILE", help="the agent's token")
    parser.add_argument("--agent-ca", type=Path, metavar="FILE", help="who signed the agent's certificate")
    parser.add_argument(
        "--rest",
        metavar="T",
        help=f"give memory back after so long without a question; {REST} unless given "
        f"({CLUSTER_REST} with other viewers), 0 for never",
    )
    add_nodes(parser)
    add_deadline(parser, NODE_DEADLINE)
    add_address(parser, VIEWER_PORT)
    add_no_token(parser)


def add_no_token(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-token",
        action="store_true",
        help="with --host: anybody who can connect may read. Without this, --token-file and --tls-client-ca, "
        "a token is made and printed",
    )


def run(options: argparse.Namespace) -> int:
    share_one_heap()
    check_kubernetes(options)
    stores = [text for text in options.path if is_store(text)]
    options.path = [find_folder(text) for text in options.path if not is_store(text)]
    loaded = read_guards(options, "kubeconfig")
    settings = loaded.settings
    set_up_logging(settings.log_level)
    others = find_others(options, loaded, find_stores(stores, options.days))
    # An agent alone is enough to look at: its ring holds the last minutes. So are other viewers.
    paths = options.path or ([] if options.agent or others else [choose_data(settings, os.environ)])
    options.rest = options.rest or (CLUSTER_REST if others else REST)
    rest_seconds = read_quantity(options, "rest", parse_seconds, "30s, 5m, or 0 for never")
    return serve(options, settings, paths, rest_seconds, others)


@dataclass(frozen=True, slots=True)
class OtherViewers:
    """Nodes that are behind other viewers or in object stores, and by when these have to answer."""

    directories: Sequence[Any]
    deadline_seconds: float
    stores: "Stores | None" = None


@dataclass(frozen=True, slots=True)
class Stores:
    """Object stores whose newest days are shown."""

    urls: Sequence[str]
    days: int

    def open(self, deadline_seconds: float) -> "list[StoreListing]":
        """Each is listed from now on."""
        from nodescope.read.files.store_listing import StoreListing

        found = [
            StoreListing(url.rstrip("/"), self.days, deadline_seconds, SystemClock()) for url in self.urls
        ]
        for one in found:
            one.start()
        return found


def find_stores(urls: Sequence[str], days: int | None) -> Stores | None:
    if not urls:
        if days is not None:
            raise SettingsRejected("--days goes with the address of an object store, s3://BUCKET/PATH")
        return None
    if days is not None and not 1 <= days <= DAYS_MOST:
        raise SettingsRejected(f"--days {days} is not accepted; accepted: 1 to {DAYS_MOST}")
    from nodescope.keep.copy.object_store import check_url

    for url in urls:
        check_url(url)
    return Stores(urls, days or STORE_DAYS)


def find_others(
    options: argparse.Namespace, loaded: LoadedSettings, stores: Stores | None
) -> OtherViewers | None:
    """None where neither --viewer nor --kubernetes nor a store was given."""
    deadline_seconds = read_quantity(options, "deadline", parse_deadline, "100ms to 5m")
    if not (options.viewer or options.kubernetes):
        return OtherViewers((), deadline_seconds, stores) if stores else None
    from nodescope.use.cluster.asked_node import RemoteNode

    access = read_access(options, deadline_seconds)
    found = build_viewers(options, loaded, access, lambda node, endpoint: RemoteNode(node, endpoint, access))
    return OtherViewers(found, deadline_seconds, stores)


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """The agent whose newest frames are shown."""

    address: str
    token: str
    tls: ssl.SSLContext | None


@dataclass(slots=True)
class Answering:
    """What answers questions: named at the start, loaded for the first of them."""

    paths: Sequence[Path]
    agent: AgentPlace | None = None
    others: OtherViewers | None = None
    connections: Connections = field(default_factory=Connections)
    is_stopping: bool = False
    _viewer: "Viewer | None" = None

    def load(self) -> ASGIApp:
        from nodescope.commands.shared.comparing import build_compare
        from nodescope.read.live.follow import AgentFeed
        from nodescope.use.answers.snapshots import NodeFolders
        from nodescope.use.viewer.app import build_api
        from nodescope.use.viewer.many.forward import Forwarder
        from nodescope.use.viewer.request import Viewer

        feed = AgentFeed(self.agent.address, self.agent.token, self.agent.tls) if self.agent else None
        others = self.others
        stores = others.stores.open(others.deadline_seconds) if others and others.stores else []
        folders = NodeFolders(self.paths, SystemClock(), feed, stores)
        self._viewer = Viewer(
            folders,
            connections=self.connections,
            stopping=self.is_stopping,
            compare=build_compare(folders),
        )
        gatherer = build_gatherer(folders, self.others)
        self._viewer.cluster, self._viewer.has_others = (gatherer, SystemClock()), self.others is not None
        api = build_api(self._viewer)
        return Forwarder(api, gatherer) if self.others else api

    def gather(self) -> None:
        """What the page of many nodes shows first."""
        from nodescope.use.cluster.wall import draw_wall, find_measure

        if self._viewer and self._viewer.cluster:
            draw_wall(*self._viewer.cluster, find_measure("cpu"), ("", "", ""), 1)

    def stop(self) -> None:
        """Open live tails end by themselves; the server then stops at once."""
        self.is_stopping = True
        if self._viewer:
            self._viewer.stopping = True


@dataclass(frozen=True, slots=True)
class Listeners:
    """Of the page and, where the settings say so, of probes."""

    page: socket.socket
    probes: socket.socket | None

    def duplicate(self) -> dict[str, int]:
        """For the next program: the server closes its own when it ends."""
        named = {"page": self.page, "probes": self.probes}
        return {name: os.dup(one.fileno()) for name, one in named.items() if one}


@dataclass(slots=True)
class Rest:
    """Ends the server once nobody has asked for some time; 0 for never."""

    front: Front
    server: Server
    listeners: Listeners
    seconds: float
    kept: dict[str, int] = field(default_factory=dict)
    """What the next program of this process goes on with; empty unless there is to be one."""

    async def wait(self) -> None:
        await self.front.woken.wait()
        while left := self._left_seconds():  # noqa: ASYNC110 - time passes, nothing tells
            await asyncio.sleep(left)
        self.kept = self.listeners.duplicate()
        self.server.stop_accepting()
        self.server.should_exit = True

    def _left_seconds(self) -> float:
        """Until it is worth a look again; 0 when nobody has asked for so long, and nobody is connected."""
        connections = self.server.connections
        least = LOOK_SECONDS if len(connections.served) + len(connections.waiting) else 0.0
        return max(least, self.seconds - self.front.idle_seconds())


def serve(
    options: argparse.Namespace,
    settings: Settings,
    paths: Sequence[Path],
    rest_seconds: float = 0.0,
    others: OtherViewers | None = None,
) -> int:
    """Answers until it is stopped; prints the address once it listens."""
    kept = take_kept()
    if not kept:
        check_given(paths)
    answering = Answering(paths, find_agent(options), others)
    front = Front(answering.load, home="/cluster" if others and not paths else "/")
    secret = choose_secret(options, settings, kept)
    server = build_server(guard_front(front, options, settings, secret), settings, answering.connections)
    listeners = open_listeners(options, settings, kept, secret)
    # Where an agent was named, there is something to look at.
    if not kept and not getattr(options, "agent", None):
        say_empty(getattr(options, "path", ()))
    rest = Rest(front, server, listeners, rest_seconds)

    def leave(number: int, frame: object) -> None:
        answering.stop()
        server.handle_exit(number, None)
        del frame

    async def main() -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, leave)
        hear_signals()
        waiting = asyncio.create_task(rest.wait()) if rest.seconds else None
        gathering = asyncio.create_task(keep_gathering(front, answering)) if others else None
        judge = partial(judge_by_pulse, server.pulse)
        with answer_probes(settings.probe_listen, judge, listeners.probes):
            await server._serve(sockets=[listeners.page])  # noqa: SLF001 - serve() would take the signals from us
        for task in (waiting, gathering):
            if task:
                task.cancel()

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        answering.stop()
    finally:
        listeners.page.close()
    if rest.kept:
        hold_signals()
        if not answering.is_stopping:
            exec_anew(find_own_words(), {**rest.kept, "secret": secret}, rest.kept.values())
    return 0


async def keep_gathering(front: Front, answering: Answering) -> None:
    """At once, so that the first who looks need not wait for the nodes; then while somebody looks."""
    await front.wake()
    while True:
        await asyncio.to_thread(answering.gather)
        await asyncio.sleep(GATHER_SECONDS)
        while front.idle_seconds() > LOOKED_SECONDS:  # noqa: ASYNC110 - time passes, nothing tells
            await asyncio.sleep(LOOK_SECONDS)


def build_gatherer(folders: "NodeFolders", others: OtherViewers | None) -> "Gatherer":
    """Nodes of folders here, and those behind other viewers."""
    from nodescope.use.cluster.folder_directory import FolderDirectory
    from nodescope.use.cluster.gatherer import Gatherer
    from nodescope.use.nodes.directory import JoinedDirectory

    directories = [*(others.directories if others else ()), FolderDirectory(folders)]
    deadline_seconds = others.deadline_seconds if others else parse_seconds(NODE_DEADLINE)
    return Gatherer(JoinedDirectory(directories), SystemClock(), deadline_seconds)


def say_empty(paths: Sequence[Path]) -> None:
    """Of folders that were named: an agent may write there later, or the name was wrong."""
    for path in paths:
        if not has_data(path):
            sys.stderr.write(
                f"nodescope viewer: there is no data in {path} yet; it is shown once an agent writes there\n"
            )


def choose_secret(options: argparse.Namespace, settings: Settings, kept: Mapping[str, Any]) -> str:
    """A token for this run where others could connect and nothing was said about who may; empty elsewhere."""
    if settings.token_file or settings.tls_client_ca or options.no_token or is_local(options.host):
        return ""
    return str(kept.get("secret") or make_secret())


def guard_front(front: Front, options: argparse.Namespace, settings: Settings, secret: str) -> Gate:
    admits = Token(settings.token_file).admits if settings.token_file else None
    if secret:
        admits = partial(is_admitted, secret=secret.encode())
    return guard(
        front,
        admits,
        only_local=is_local(options.host),
        hosts=tuple(options.allow_host),
    )


def open_listeners(
    options: argparse.Namespace, settings: Settings, kept: Mapping[str, Any], secret: str
) -> Listeners:
    """Those of the program before this one; told once where they are."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    page = adopt_socket(kept.get("page")) or open_socket(f"{host}:{options.port}", "--port")
    probes = adopt_socket(kept.get("probes"))
    if probes is None and settings.probe_listen:
        probes = open_socket(settings.probe_listen)
    if not kept:
        if not secret:
            warn_if_open((f"{host}:{options.port}",), settings)
        scheme = "https" if settings.tls_cert else "http"
        place = f"{host}:{page.getsockname()[1]}"
        if secret:
            # Who opens it is elsewhere, where 0.0.0.0 means nothing.
            place = f"{name_reachable(place, find_own_address())}/?token={secret}"
        sys.stdout.write(f"nodescope {__version__} viewer  {scheme}://{place}\n")
        if secret:
            sys.stdout.write(
                "this token is for this run; --token-file FILE keeps one, --no-token asks for none\n"
            )
        sys.stdout.flush()
    return Listeners(page, probes)


def find_agent(options: argparse.Namespace) -> AgentPlace | None:
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
    return AgentPlace(address.rstrip("/"), token, tls)
