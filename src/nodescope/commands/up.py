"""nodescope up: agent, viewer and consolidator on this machine, no set-up."""

import argparse
import json
import os
import re
import shlex
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from nodescope import __version__
from nodescope.base.errors import HttpFailed
from nodescope.base.log import set_up_logging
from nodescope.base.quantity import render_bytes
from nodescope.base.settings_load import LoadedSettings, choose_data, read_settings
from nodescope.collect.files.roots import open_root
from nodescope.collect.sources.container.cgroup_tree import find_hierarchies
from nodescope.commands.shared.children import Child, Children
from nodescope.commands.shared.options import add_settings, gather_flags, render_flags
from nodescope.commands.shared.own_address import find_own_address, name_reachable
from nodescope.commands.shared.ports import (
    AGENT_PORT,
    FLAGS,
    LOCAL,
    VIEWER_PORT,
    add_ports,
    claim,
    claim_next,
)
from nodescope.commands.system.notify import notify, report_in
from nodescope.keep.disk import make_folders
from nodescope.serve.gate import is_local
from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.serve.server import open_socket, parse_address
from nodescope.serve.token import make_secret

EXAMPLE = """example:
  nodescope up
  nodescope up --port 8060 --agent-port 9200
  nodescope up --host 0.0.0.0            from other machines, with a token that it prints
"""
NODESCOPE = (sys.executable, "-m", "nodescope")
# The first sample takes a second, a busy machine's start some more.
READY_SECONDS = 60.0
LOOK_SECONDS = 0.1
ANSWER_SECONDS = 2.0
# /metrics of thousands of containers, which the banner counts.
ANSWER_BYTES = 64 * 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_settings(parser, port=False)
    add_ports(parser)
    parser.add_argument(
        "--host",
        default=LOCAL,
        help=f"the viewer's address; {LOCAL} unless given. On another one it asks for a token: "
        "--token-file, or one that is made and printed",
    )


def run(options: argparse.Namespace) -> int:
    flags = gather_flags(options)
    viewer = choose_viewer(options)
    loaded = read_settings(flags, options.config, os.environ, {"log_level": "warning"})
    listen = choose_agent(options, loaded)
    if listen != loaded.settings.listen:
        flags["listen"] = list(listen)
        loaded = read_settings(flags, options.config, os.environ, {"log_level": "warning"})
    set_up_logging(loaded.settings.log_level)
    children = Children(say)
    try:
        with make_token(loaded, options.host) as token_file:
            return UpPlace(loaded, viewer, token_file).bring_up(children, flags, options.config)
    finally:
        children.stop()


def choose_viewer(options: argparse.Namespace) -> str:
    """HOST:PORT as asked, or the usual port or the next that is free."""
    if options.viewer_port is not None:
        return claim(options.host, options.viewer_port, FLAGS["viewer"])
    found = claim_next(options.host, VIEWER_PORT, FLAGS["viewer"])
    if parse_address(found)[1] != VIEWER_PORT:
        say(f"port {VIEWER_PORT} is in use; the viewer takes {parse_address(found)[1]}")
    return found


def choose_agent(options: argparse.Namespace, loaded: LoadedSettings) -> tuple[str, ...]:
    """The agent's listeners; only a port that nobody asked for gives way to the next."""
    listen = loaded.settings.listen
    if options.agent_port is not None:
        given = listen if "listen" in gather_flags(options) else ()
        return (claim(LOCAL, options.agent_port, FLAGS["agent"]), *given)
    if loaded.origins["listen"] != "default":
        for address in listen:
            open_socket(address, f"{FLAGS['agent']} or --listen").close()
        return listen
    found = claim_next(LOCAL, AGENT_PORT, FLAGS["agent"])
    if found not in listen:
        say(f"port {AGENT_PORT} is in use (node_exporter has the same); the agent takes {found}")
    return (found,)


@contextmanager
def make_token(loaded: LoadedSettings, host: str) -> Iterator[Path | None]:
    """The viewer's token: as set; where others could connect and none is set, one for this run."""
    settings = loaded.settings
    if settings.token_file or settings.tls_client_ca or is_local(host):
        yield settings.token_file
        return
    with tempfile.NamedTemporaryFile("w", prefix="nodescope-token-", encoding="ascii") as file:
        file.write(make_secret())
        file.flush()
        yield Path(file.name)


def say(line: str) -> None:
    sys.stderr.write(f"nodescope up: {line}\n")
    sys.stderr.flush()


class UpPlace:
    """The addresses and the folder of the three, and how they are started and probed."""

    def __init__(self, loaded: LoadedSettings, viewer: str, token_file: Path | None = None) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self.viewer = viewer
        self.token_file = token_file
        self.scheme = "https" if self.settings.tls_cert else "http"
        self.agent = f"{self.scheme}://{name_reachable(self.settings.listen[0], LOCAL)}"
        self.data = choose_data(self.settings, os.environ).absolute()

    def bring_up(self, children: Children, flags: dict[str, Any], config: Path | None) -> int:
        with_config = ["--config", str(config)] if config else []
        words = [*render_flags(flags), *with_config]
        if self.loaded.origins["log_level"] == "default":
            words += ["--log-level", self.settings.log_level]
        agent = Child("agent", [*NODESCOPE, "agent", *words])
        viewer = Child("viewer", [*NODESCOPE, "viewer", *self.viewer_words(), *with_config], quiet=True)
        children.start(agent)
        if self.settings.archive:
            # It reads the folder that the agent makes.
            make_folders(self.data)
        children.start(viewer)
        code = self.await_all(children, agent, viewer)
        if code is not None:
            return code
        if self.settings.archive:
            words = [*NODESCOPE, "consolidate", "--data", str(self.data), *with_config]
            children.start(Child("consolidator", words, quiet=True))
        sys.stdout.write(render_banner(self))
        sys.stdout.flush()
        notify(os.environ, f"READY=1\nSTATUS=viewer {self.scheme}://{self.viewer}")
        end = report_in(os.environ, lambda: self.answers(self.agent, "/healthz"))
        try:
            return children.watch()
        finally:
            end.set()
            notify(os.environ, "STOPPING=1")

    def viewer_words(self) -> list[str]:
        settings = self.settings
        host, _, port = self.viewer.rpartition(":")
        words = ["--host", host.strip("[]"), "--port", port, "--agent", self.agent]
        # A listener for probes that the settings name is the agent's.
        words += ["--probe-listen", ""]
        if settings.archive:
            words.insert(0, str(self.data))
        for option, value in (
            ("--token-file", self.token_file),
            ("--agent-token-file", settings.token_file),
            ("--tls-cert", settings.tls_cert),
            ("--tls-key", settings.tls_key),
            ("--tls-client-ca", settings.tls_client_ca),
            ("--agent-ca", settings.tls_cert),
        ):
            words += [option, str(value)] if value else []
        for name in settings.allow_host:
            words += ["--allow-host", name]
        return words

    def await_all(self, children: Children, *wanted: Child) -> int | None:
        """None once both answer; the exit code of the first that ends instead."""
        deadline_ns = children.clock.mono_ns() + round(READY_SECONDS * 1e9)
        waiting = {
            "agent": (self.agent, "/readyz"),
            "viewer": (f"{self.scheme}://{name_reachable(self.viewer, LOCAL)}", "/api/health"),
        }
        while waiting and children.clock.mono_ns() < deadline_ns:
            for child in wanted:
                if child.process is not None and child.process.poll() is not None:
                    return child.process.returncode or 1
            waiting = {name: probe for name, probe in waiting.items() if not self.answers(*probe)}
            if waiting and children.is_stopped(LOOK_SECONDS):
                return 0
        for name in waiting:
            say(f"the {name} does not answer yet; going on without waiting")
        return None

    def answers(self, address: str, path: str) -> bool:
        """Whether a probe says yes; where only certificates of clients are let in, whether it listens."""
        if self.settings.tls_client_ca:
            endpoint = parse_endpoint(address)
            try:
                socket.create_connection((endpoint.host, endpoint.port), ANSWER_SECONDS).close()
            except OSError:
                return False
            return True
        return self.ask(address, path) is not None

    def ask(self, address: str, path: str) -> bytes | None:
        """The body of a 200 answer, or None."""
        headers = {}
        if self.settings.token_file:
            headers["Authorization"] = f"Bearer {self.settings.token_file.read_text().strip()}"
        tls = ssl.create_default_context() if self.scheme == "https" else None
        if tls:
            # Our own process on loopback; its certificate names the outside.
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        try:
            with closing(HttpClient(parse_endpoint(address, tls), ANSWER_SECONDS, ANSWER_BYTES)) as client:
                return client.read(path, headers).body
        except HttpFailed:
            return None


def render_viewer(place: UpPlace, environment: Mapping[str, str]) -> Iterator[str]:
    """Where the page is, as somebody at this machine or elsewhere opens it."""
    host, port = parse_address(place.viewer)
    address = f"{place.scheme}://{name_reachable(place.viewer, find_own_address())}"
    if place.token_file and place.token_file != place.settings.token_file:
        yield f"  viewer   {address}/?token={place.token_file.read_text().strip()}"
        yield "           this token is for this run; --token-file FILE keeps one"
        return
    yield f"  viewer   {address}"
    if is_local(host) and not has_display(environment):
        user = shlex.quote(f"{environment.get('USER') or 'root'}@{socket.gethostname()}")
        yield f"           from your own machine: ssh -L {port}:{host}:{port} {user}, then open the address there"


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a browser can be opened here."""
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in environment
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def render_banner(place: UpPlace) -> str:
    settings = place.settings
    status = json.loads(place.ask(place.agent, "/status") or b"{}")
    counts = render_counts(place, status)
    lines = [
        f"nodescope {__version__} on {status.get('node') or settings.node or socket.gethostname()}{counts}",
        *render_viewer(place, os.environ),
        f"  metrics  {place.agent}/metrics",
    ]
    if settings.archive:
        kept = f"{settings.retention_days:g} days, {render_bytes(settings.retention_bytes)} at most"
        lines.append(f"  data     {shorten_home(place.data)}   ({kept})")
    sources: dict[str, dict[str, str]] = status.get("sources", {})
    lines += [
        f"  {name:<8} failed: {source['reason']}"
        for name, source in sources.items()
        if source["state"] == "failed"
    ]
    if sources.get("pcm", {}).get("state") == "absent":
        lines.append(f"  pcm      absent: {sources['pcm']['reason']}")
    absent = [name for name, source in sources.items() if source["state"] == "absent" and name not in UNSAID]
    if absent:
        lines.append(f"  absent   {', '.join(absent)}; `nodescope sources` says why")
    return "\n".join([*lines, "Ctrl-C stops.", ""])


# Not listed: pcm has a line of its own, host says nothing new.
UNSAID = ("pcm", "host")


def shorten_home(path: Path) -> str:
    """As people write it; a user of systemd's own making has no home (RuntimeError)."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def render_counts(place: UpPlace, status: dict[str, Any]) -> str:
    """`: 84 containers, 8 cores, cgroup v2`, as far as the agent says."""
    text = (place.ask(place.agent, "/metrics") or b"").decode("utf-8", "replace")
    if not status:
        return ""
    containers = len(re.findall(r"^container_info{", text, re.MULTILINE))
    cores = len(set(re.findall(r'^node_cpu_seconds_total{cpu="(\d+)"', text, re.MULTILINE)))
    words = [f"{containers} containers" if containers else "no containers"]
    if cores:
        words.append(f"{cores} cores")
    names = [hierarchy.name for hierarchy in find_hierarchies(open_root(place.settings.root, None))]
    return ": " + ", ".join([*words, f"cgroup {'v2' if names == ['v2'] else 'v1'}"])
