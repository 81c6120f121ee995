"""nodescope adapter: custom and external metrics of Kubernetes, from the windows of the agents."""

import argparse
import asyncio
import os
import signal
import ssl
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nodescope.base.clock import SystemClock
from nodescope.base.errors import (
    HttpFailed,
    KubernetesAway,
    KubernetesRefused,
    RequestRejected,
    SettingsRejected,
)
from nodescope.base.log import Log, set_up_logging
from nodescope.base.settings import Settings
from nodescope.base.settings_load import read_settings
from nodescope.commands.shared.client_tls import build_client_tls
from nodescope.commands.shared.cluster_server import (
    LIVING,
    add_server_options,
    build_gate_for,
    judge_probe,
    wait_for_all,
)
from nodescope.commands.shared.options import gather_flags
from nodescope.kube.account import KubeAccount
from nodescope.kube.client import Client
from nodescope.kube.pod_table import WITH_METADATA, PodTableClient
from nodescope.kube.watch import ObjectWatch
from nodescope.serve.allocator import settle_allocator
from nodescope.serve.connections import Connections, build_families
from nodescope.serve.gate import Gate
from nodescope.serve.prometheus_text import render_families
from nodescope.serve.server import Server, answer_probes, build_server, open_socket, warn_if_open
from nodescope.serve.tls_folder import TlsFolder
from nodescope.use.adapter.agent_client import AgentClient
from nodescope.use.adapter.answers import Answers
from nodescope.use.adapter.api import AdapterApi
from nodescope.use.adapter.callers import Callers, Reviews
from nodescope.use.adapter.label_selector import parse_selector
from nodescope.use.adapter.pages import AdapterPages
from nodescope.use.adapter.pod_index import PodIndex
from nodescope.use.adapter.reports import AGENT_SECONDS, WINDOW_SECONDS, Reports
from nodescope.use.adapter.self_metrics import AdapterCounters, derive_adapter_families
from nodescope.wiring import find_access, settle_process

EXAMPLE = """example:
  nodescope adapter --api-listen 0.0.0.0:6443 --api-tls /etc/nodescope/api
  kubectl get --raw '/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/cpu?labelSelector=app%3Dweb'
"""
LISTEN = "127.0.0.1:8892"
API_LISTEN = "127.0.0.1:8893"
AGENTS = "app.kubernetes.io/name=nodescope,app.kubernetes.io/component=agent"
AGENT_PORT = 9100
# How the API server names its callers may change with an upgrade of the cluster.
PROXY_SECONDS = 60.0
PROXY_AGAIN_SECONDS = 2.0
# The settings that an adapter uses.
OPTIONS = {
    "kubeconfig": "a kubeconfig; without it the pod's own account",
    "token_file": "a bearer token for /metrics of --listen",
    "probe_listen": "HOST:PORT of one more listener, for probes alone",
    "log_level": "debug, info, warning or error",
}
log = Log("adapter")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_server_options(parser, LISTEN, "where /metrics and probes are answered", OPTIONS)
    parser.add_argument(
        "--api-listen",
        default=API_LISTEN,
        metavar="HOST:PORT",
        help=f"where the API server asks, over TLS (default {API_LISTEN})",
    )
    parser.add_argument(
        "--api-tls",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="tls.crt and tls.key of --api-listen, as a Secret mounts them",
    )
    parser.add_argument(
        "--agents", default=AGENTS, metavar="LABELS", help="of the agents' pods, as kubectl -l takes it"
    )
    parser.add_argument(
        "--agents-namespace", default="", metavar="NAME", help="of the agents' pods; any unless given"
    )
    parser.add_argument(
        "--agent-port", type=int, default=AGENT_PORT, metavar="N", help=f"of the agents ({AGENT_PORT})"
    )
    parser.add_argument("--agent-token-file", type=Path, metavar="FILE", help="the agents' token")
    parser.add_argument(
        "--agent-ca",
        type=Path,
        metavar="FILE",
        help="who signed the agents' certificates; asks them over HTTPS",
    )
    parser.add_argument(
        "--agent-cert",
        type=Path,
        metavar="FOLDER",
        help="tls.crt and tls.key to show to agents that ask for a certificate",
    )


def run(options: argparse.Namespace) -> int:
    settle_allocator()
    loaded = read_settings(gather_flags(options), options.config, os.environ, {"listen": (LISTEN,)})
    settings = loaded.settings
    set_up_logging(settings.log_level)
    access = find_access(loaded, os.environ)
    if access.account is None:
        raise SettingsRejected(access.absent)
    try:
        parse_selector(options.agents)
    except RequestRejected as error:
        raise SettingsRejected(f"--agents: {error}") from error
    return serve(settings, access.account, options)


@dataclass(slots=True)
class AgentFleet:
    """Asks the agent of a node, wherever its pod is now."""

    index: PodIndex
    port: int
    tls: ssl.SSLContext | None
    token_file: Path | None
    _clients: dict[str, AgentClient] = field(default_factory=dict)

    async def ask(self, node: str) -> bytes:
        agent = self.index.find_agent(node)
        if agent is None:
            self._forget(node)
            raise HttpFailed(node, "it has no agent, or its pod has no address yet")
        client = self._clients.get(node)
        if client is None or client.address != agent.address:
            self._forget(node)
            client = self._clients[node] = AgentClient(agent.address, self.port, self.tls)
        return await client.get(
            f"/pods?seconds={WINDOW_SECONDS}&form=lines", self._read_token(node), AGENT_SECONDS
        )

    def _read_token(self, node: str) -> str:
        if self.token_file is None:
            return ""
        try:
            return f"Bearer {self.token_file.read_text().strip()}"
        except (OSError, UnicodeDecodeError) as error:
            raise HttpFailed(node, f"--agent-token-file cannot be read: {error}") from error

    def _forget(self, node: str) -> None:
        if before := self._clients.pop(node, None):
            before.close()


def build_agent_tls(authority: Path | None, own: Path | None) -> ssl.SSLContext | None:
    """Agents are asked by address: their certificates carry no name that could be compared."""
    context = build_client_tls("agent", authority, own)
    if context is not None:
        context.check_hostname = False
    return context


def serve(settings: Settings, account: KubeAccount, options: argparse.Namespace) -> int:
    clock = SystemClock()
    index = PodIndex(options.agents, options.agents_namespace)
    watch = ObjectWatch(PodTableClient(account), "/api/v1/pods", {**LIVING, **WITH_METADATA}, index, clock)
    fleet = AgentFleet(
        index,
        options.agent_port,
        build_agent_tls(options.agent_ca, options.agent_cert),
        options.agent_token_file,
    )
    callers = Callers(Client(account), Reviews(clock))
    proxy = ProxyConfig(callers)
    counters, connections = AdapterCounters(), Connections()
    readiness = partial(judge_readiness, watch, proxy)
    tls = TlsFolder(options.api_tls, has_authority=False)
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        warn_if_open(settings.listen, settings)
        sockets = [stack.enter_context(open_socket(address, "--listen")) for address in settings.listen]
        api_socket = stack.enter_context(open_socket(options.api_listen, "--api-listen"))
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        stack.callback(watch.stop)
        watch.start()
        settle_process()
        log.info("adapter started", api=options.api_listen, listen=",".join(settings.listen))

        async def listen() -> None:
            reports = Reports(fleet.ask, clock)

            def render_metrics() -> str:
                families = derive_adapter_families(counters, index, reports.requests, watch.state)
                families += tls.families()
                return render_families([*families, *build_families(connections)], openmetrics=False)

            api = AdapterApi(Answers(index, reports), callers, counters, readiness, connections)
            api_server = build_server(Gate(api, server="adapter"), tls.guard(settings), connections)
            pages = build_server(
                build_gate_for(AdapterPages(readiness, render_metrics), settings, "adapter", LISTEN), settings
            )
            judge = partial(judge_probe, api_server.pulse, readiness)
            keeping = (proxy.keep(api_server), tls.keep_loaded(find_context(api_server)))
            tasks = [asyncio.create_task(one) for one in keeping]
            with answer_probes(settings.probe_listen, judge):
                try:
                    await wait_for_all([pages.serve(sockets=sockets), api_server.serve(sockets=[api_socket])])
                finally:
                    for task in tasks:
                        task.cancel()

        asyncio.run(listen())
    log.info("adapter stopped")
    return 0


def find_context(server: Server) -> ssl.SSLContext:
    context: ssl.SSLContext = server.config.ssl  # type: ignore[assignment] # it has a certificate
    return context


@dataclass(slots=True)
class ProxyConfig:
    """How the API server shows who it is, as the cluster says; asked again now and then."""

    callers: Callers
    reason: str = "the cluster's request-header authority is not known yet"
    """Empty once it is known."""
    _loaded: str = ""

    async def keep(self, server: Server) -> None:
        """Until it is cancelled."""
        while True:
            try:
                found = await asyncio.to_thread(self.callers.load_proxy)
                self._load(find_context(server), found.authority)
                self.reason = ""
            except (KubernetesAway, KubernetesRefused, ssl.SSLError) as error:
                if not self.reason:
                    log.warning("request-header authority not renewed", reason=str(error))
                elif self.reason != str(error):
                    log.warning("request-header authority not known", reason=str(error))
                    self.reason = str(error)
            await asyncio.sleep(PROXY_AGAIN_SECONDS if self.reason else PROXY_SECONDS)

    def _load(self, context: ssl.SSLContext, authority: str) -> None:
        """For connections that are made from now on."""
        if authority and authority != self._loaded:
            context.load_verify_locations(cadata=authority)
            context.verify_mode = ssl.CERT_OPTIONAL
            self._loaded = authority


def judge_readiness(watch: ObjectWatch, proxy: ProxyConfig) -> str:
    """Empty when ready; a watch that was current once keeps what it learned."""
    if not watch.state.lists:
        return f"pods: {watch.state.reason or watch.state.status}"
    return proxy.reason
