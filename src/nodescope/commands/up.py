"""nodescope up: agent, viewer and consolidator on this machine, no set-up."""

import argparse
import json
import os
import re
import socket
import ssl
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from nodescope import __version__
from nodescope.base.errors import HttpFailed
from nodescope.base.log import set_up_logging
from nodescope.base.quantity import render_bytes
from nodescope.base.settings_load import LoadedSettings
from nodescope.collect.files.roots import open_root
from nodescope.collect.sources.container.cgroup_tree import find_hierarchies
from nodescope.commands.shared.children import Child, Children
from nodescope.commands.shared.options import add_settings, gather_flags, render_flags
from nodescope.commands.viewer import PORT, claim
from nodescope.keep.disk import make_folders
from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.serve.server import parse_address
from nodescope.wiring import choose_data, read_settings

EXAMPLE = """example:
  nodescope up
  nodescope up --port 8060 --agent-port 9200
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
    parser.add_argument(
        "--port",
        dest="viewer_port",
        type=int,
        default=PORT,
        metavar="N",
        help=f"the viewer's port, {PORT} unless given",
    )
    parser.add_argument("--agent-port", type=int, metavar="N", help="the agent's port, 9100 unless given")


def run(options: argparse.Namespace) -> int:
    flags = gather_flags(options)
    if options.agent_port is not None:
        # Port 0, any that is free, is chosen here: the viewer must know it.
        flags["listen"] = [claim(f"127.0.0.1:{options.agent_port}"), *flags.get("listen", [])]
    loaded = read_settings(flags, options.config, os.environ, {"log_level": "warning"})
    set_up_logging(loaded.settings.log_level)
    place = UpPlace(loaded, claim(f"127.0.0.1:{options.viewer_port}"))
    for address in loaded.settings.listen:
        claim(address)
    children = Children(say)
    try:
        return place.bring_up(children, flags, options.config)
    finally:
        children.stop()


def say(line: str) -> None:
    sys.stderr.write(f"nodescope up: {line}\n")
    sys.stderr.flush()


class UpPlace:
    """The addresses and the folder of the three, and how they are started and probed."""

    def __init__(self, loaded: LoadedSettings, viewer: str) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self.viewer = viewer
        self.scheme = "https" if self.settings.tls_cert else "http"
        host, port = parse_address(self.settings.listen[0])
        # An agent that listens on all addresses is asked on loopback.
        host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
        self.agent = f"{self.scheme}://[{host}]:{port}" if ":" in host else f"{self.scheme}://{host}:{port}"
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
        return children.watch()

    def viewer_words(self) -> list[str]:
        settings = self.settings
        host, _, port = self.viewer.rpartition(":")
        words = ["--host", host.strip("[]"), "--port", port, "--agent", self.agent]
        # A listener for probes that the settings name is the agent's.
        words += ["--probe-listen", ""]
        if settings.archive:
            words.insert(0, str(self.data))
        for option, value in (
            ("--token-file", settings.token_file),
            ("--agent-token-file", settings.token_file),
            ("--tls-cert", settings.tls_cert),
            ("--tls-key", settings.tls_key),
            ("--tls-client-ca", settings.tls_client_ca),
            ("--agent-ca", settings.tls_cert),
        ):
            words += [option, str(value)] if value else []
        return words

    def await_all(self, children: Children, *wanted: Child) -> int | None:
        """None once both answer; the exit code of the first that ends instead."""
        deadline_ns = children.clock.mono_ns() + round(READY_SECONDS * 1e9)
        waiting = {
            "agent": (self.agent, "/readyz"),
            "viewer": (f"{self.scheme}://{self.viewer}", "/api/health"),
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


def render_banner(place: UpPlace) -> str:
    settings = place.settings
    status = json.loads(place.ask(place.agent, "/status") or b"{}")
    counts = render_counts(place, status)
    lines = [
        f"nodescope {__version__} on {status.get('node') or settings.node or socket.gethostname()}{counts}",
        f"  viewer   {place.scheme}://{place.viewer}",
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
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
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
