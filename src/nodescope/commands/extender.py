"""nodescope extender: kube-scheduler asks, the nodes' annotations answer."""

import argparse
import asyncio
import gc
import os
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nodescope.base.clock import SystemClock
from nodescope.base.errors import KubernetesAway, KubernetesRefused, SettingsRejected
from nodescope.base.log import Log, set_up_logging
from nodescope.base.settings import Settings
from nodescope.base.settings_load import read_settings
from nodescope.commands.shared.cluster_server import (
    LIVING,
    add_server_options,
    build_gate_for,
    judge_probe,
    wait_for_all,
)
from nodescope.commands.shared.options import gather_flags
from nodescope.fpga.node_lease import LEASE_LABEL, path_leases
from nodescope.kube.account import KubeAccount
from nodescope.kube.client import Client
from nodescope.kube.watch import ObjectWatch
from nodescope.serve.allocator import share_one_arena
from nodescope.serve.connections import Connections, build_families
from nodescope.serve.gate import Gate
from nodescope.serve.prometheus_text import render_families
from nodescope.serve.server import (
    Server,
    answer_probes,
    build_server,
    open_socket,
    parse_address,
    warn_if_open,
)
from nodescope.serve.tls_folder import TlsFolder
from nodescope.use.scheduler.devices.device_request import PLACEMENTS
from nodescope.use.scheduler.devices.node_capacities import NodeCapacities
from nodescope.use.scheduler.devices.packing import DeviceRoom
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.extender import POLICIES, Extender
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.peers import Peers
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.self_metrics import ExtenderCounters, derive_families
from nodescope.use.scheduler.server import EVERYTHING, QUESTIONS_ONLY, VERBS_ONLY, ExtenderApp
from nodescope.wiring import find_access, settle_process

EXAMPLE = """example:
  nodescope extender --kubeconfig ~/.kube/config
  curl -s 'localhost:8888/explain?pod=default/nginx'
kube-scheduler's side: deploy/scheduler/config.yaml
"""
LISTEN = "127.0.0.1:8888"
# kube-scheduler waits for a hung extender, pod by pod: its liveness fails sooner than an agent's.
HUNG_SECONDS = 3.0
# The settings that an extender uses.
OPTIONS = {
    "kubeconfig": "a kubeconfig; without it the pod's own account",
    "lease_namespace": "where agents write the Leases of their nodes; without it the account's own namespace",
    "token_file": "a bearer token that every request but the probes must carry",
    "tls_cert": "certificate chain (PEM) for HTTPS",
    "tls_key": "its private key",
    "tls_client_ca": "only clients with a certificate of this authority: kube-scheduler can send one",
    "probe_listen": "HOST:PORT of one more listener, for probes alone",
    "log_level": "debug, info, warning or error",
}
# What no answer can do without.
NEEDED = ("nodes", "pods")
# Of resource.k8s.io, the best first.
DEVICE_APIS = ("v1", "v1beta2", "v1beta1")
log = Log("extender")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_server_options(parser, LISTEN, "where to listen", OPTIONS)
    parser.add_argument("--port", type=int, metavar="N", help="short for --listen 127.0.0.1:N")
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="one more name to answer to, such as a Service's; may be repeated",
    )
    parser.add_argument(
        "--verbs-listen",
        metavar="HOST:PORT",
        help="a listener for kube-scheduler alone, over TLS with its certificate; the others then refuse /filter and /prioritize",
    )
    parser.add_argument(
        "--verbs-tls",
        type=Path,
        metavar="FOLDER",
        help="tls.crt, tls.key and the clients' ca.crt of --verbs-listen, as a Secret mounts them",
    )
    parser.add_argument(
        "--peers",
        action="append",
        metavar="HOST:PORT",
        help="a name whose addresses are all replicas, this one among them; may be repeated: /explain asks each for its decision",
    )
    parser.add_argument(
        "--policy",
        metavar="NAME",
        help="cost: expected time lost (default); rank: the original plugin's 1-2-2",
    )
    parser.add_argument(
        "--gpu-placement",
        metavar="WORD",
        help="whole GPUs and claimed devices: pack (default, empty nodes stay whole) or spread (by load)",
    )
    parser.add_argument(
        "--no-kubernetes",
        dest="kubernetes",
        action="store_const",
        const="false",
        help="no watches: kube-scheduler must send whole nodes (nodeCacheCapable: false)",
    )


def run(options: argparse.Namespace) -> int:
    # Of 5,000 nodes a question has 60 KB and an answer 170: they are not mapped anew for each pod.
    share_one_arena()
    policy = options.policy or "cost"
    if policy not in POLICIES:
        raise SettingsRejected(f"--policy {policy!r} is not accepted; accepted: {', '.join(POLICIES)}")
    if (placement := options.gpu_placement or "pack") not in PLACEMENTS:
        raise SettingsRejected(
            f"--gpu-placement {placement!r} is not accepted; accepted: {', '.join(PLACEMENTS)}"
        )
    loaded = read_settings(gather_flags(options), options.config, os.environ, {"listen": (LISTEN,)})
    settings = loaded.settings
    set_up_logging(settings.log_level)
    access = find_access(loaded, os.environ)
    if settings.kubernetes and access.account is None:
        raise SettingsRejected(
            f"{access.absent}; --no-kubernetes answers from the nodes that kube-scheduler sends"
        )
    if bool(options.verbs_listen) != bool(options.verbs_tls):
        raise SettingsRejected("--verbs-listen and --verbs-tls go together; one of them is missing")
    guarded = (
        GuardedVerbs(options.verbs_listen, TlsFolder(options.verbs_tls)) if options.verbs_listen else None
    )
    peers = build_peers(options.peers, settings) if options.peers else None
    return serve(settings, access.account, policy, placement, guarded, peers)


def build_peers(addresses: Sequence[str], settings: Settings) -> Peers:
    """Replicas share one certificate, which has no address in it: it is compared itself."""
    names = tuple(parse_address(address) for address in addresses)
    if settings.tls_cert is None:
        return Peers(names)
    try:
        context = ssl.create_default_context(cafile=str(settings.tls_cert))
    except (OSError, ssl.SSLError) as error:
        raise SettingsRejected(f"tls_cert = {settings.tls_cert}: {error}") from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    if settings.tls_client_ca and settings.tls_key:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    return Peers(names, context)


@dataclass(frozen=True, slots=True)
class GuardedVerbs:
    """The listener of kube-scheduler alone."""

    address: str
    tls: TlsFolder

    def listen(
        self, build_app: Callable[..., ExtenderApp], settings: Settings, stack: ExitStack
    ) -> Coroutine[Any, Any, None]:
        """Opens its socket now; what is returned serves until a signal ends it."""
        connections = Connections()
        gate = Gate(build_app(connections, VERBS_ONLY), server="extender")
        server = build_server(gate, self.tls.guard(settings), connections)
        return self._serve(server, stack.enter_context(open_socket(self.address, "--verbs-listen")))

    async def _serve(self, server: Server, listener: socket.socket) -> None:
        # Its settings were guarded by certificates, so there is a context.
        context: ssl.SSLContext = server.config.ssl  # type: ignore[assignment]
        renewing = asyncio.create_task(self.tls.keep_loaded(context))
        try:
            await server.serve(sockets=[listener])
        finally:
            renewing.cancel()


def build_watches(
    account: KubeAccount, nodes: Nodes, placed: PlacedPods, clock: SystemClock, namespace: str
) -> dict[str, ObjectWatch]:
    """Nodes by their metadata alone: no image lists, no statuses."""
    leases, labelled = path_leases(namespace or account.namespace), {"labelSelector": f"{LEASE_LABEL}=true"}
    return {
        "leases": ObjectWatch(Client(account, metadata_only=True), leases, labelled, nodes.leases, clock),
        "nodes": ObjectWatch(Client(account, metadata_only=True), "/api/v1/nodes", {}, nodes, clock),
        "pods": ObjectWatch(Client(account), "/api/v1/pods", LIVING, placed, clock),
    }


def build_device_watches(
    account: KubeAccount, room: DeviceRoom, clock: SystemClock
) -> dict[str, ObjectWatch]:
    """Claims and slices, where this cluster's API has them."""
    version = find_device_api(Client(account))
    if not version:
        log.info("no resource.k8s.io in this cluster: no claims")
        return {}
    path = f"/apis/resource.k8s.io/{version}"
    return {
        "resourceclaims": ObjectWatch(Client(account), f"{path}/resourceclaims", {}, room.claims, clock),
        "resourceslices": ObjectWatch(Client(account), f"{path}/resourceslices", {}, room.slices, clock),
    }


def find_device_api(client: Client) -> str:
    """The newest version that both sides know; empty where there is none."""
    try:
        found = client.read("/apis/resource.k8s.io").get("versions") or []
    except KubernetesRefused:
        return ""
    except KubernetesAway:
        # The watches will wait for it.
        return DEVICE_APIS[0]
    finally:
        client.close()
    served = {one.get("version") for one in found}
    return next((version for version in DEVICE_APIS if version in served), "")


def judge_readiness(watches: dict[str, ObjectWatch]) -> str:
    """Empty when ready; a watch that was current once keeps what it learned. Without claims it works, too."""
    waiting = [
        f"{name}: {watch.state.reason or watch.state.status}"
        for name, watch in watches.items()
        if name in NEEDED and not watch.state.lists
    ]
    return "; ".join(waiting)


def serve(
    settings: Settings,
    account: KubeAccount | None,
    policy: str,
    placement: str,
    guarded: GuardedVerbs | None = None,
    peers: Peers | None = None,
) -> int:
    clock = SystemClock()
    nodes, counters = Nodes(clock), ExtenderCounters()
    placed = PlacedPods(clock, is_watched=account is not None)
    capacities = NodeCapacities(Client(account) if account else None, clock, placed.asks_devices, nodes.names)
    room = DeviceRoom(placed, capacities)
    watches: dict[str, ObjectWatch] = {}
    if account:
        watches = build_watches(account, nodes, placed, clock, settings.lease_namespace)
        watches |= build_device_watches(account, room, clock)
    connections = Connections()

    def render_metrics() -> str:
        families = derive_families(counters, nodes, placed, watches, clock)
        families += guarded.tls.families() if guarded else []
        return render_families([*families, *build_families(connections)], openmetrics=False)

    extender = Extender(
        nodes, placed, Decisions(), clock, policy, account is not None, room if account else None, placement
    )
    counters.renewals = extender.standing.renewals
    readiness = partial(judge_readiness, watches)
    build_app = partial(ExtenderApp, extender, counters, readiness, render_metrics)
    app = build_app(connections, QUESTIONS_ONLY if guarded else EVERYTHING, peers)
    server = build_server(build_gate_for(app, settings, "extender", LISTEN), settings, connections)
    server.pulse.longest_seconds = HUNG_SECONDS
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        warn_if_open(settings.listen, settings)
        sockets = [stack.enter_context(open_socket(address, "--listen")) for address in settings.listen]
        listening = [server.serve(sockets=sockets)]
        if guarded:
            listening.append(guarded.listen(build_app, settings, stack))
        elif settings.token_file:
            log.warning("kube-scheduler sends no token: its calls are refused; give it --verbs-listen")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        for watch in watches.values():
            stack.callback(watch.stop)
            watch.start()
        stack.callback(capacities.stop)
        capacities.start()
        renewing = extender.standing.make_thread()
        stack.callback(renewing.stop)
        renewing.start()
        settle_process()
        # An answer about a thousand nodes makes some thousand short-lived objects: looking for
        # cycles among them at every seven hundred is a third of its time.
        gc.set_threshold(50_000, 20, 20)
        log.info("extender started", policy=policy, listen=",".join(settings.listen))
        judge = partial(judge_probe, server.pulse, readiness)
        stack.enter_context(answer_probes(settings.probe_listen, judge))
        asyncio.run(wait_for_all(listening))
    log.info("extender stopped", requests=sum(counters.requests.values()))
    return 0
