"""nodescope extender: kube-scheduler asks, the nodes' annotations answer."""

import argparse
import asyncio
import gc
import os
import signal
from functools import partial
from pathlib import Path

from nodescope.base.clock import SystemClock
from nodescope.base.errors import SettingsRejected
from nodescope.base.log import Log, set_up_logging
from nodescope.base.settings import Settings
from nodescope.kube.account import KubeAccount
from nodescope.kube.client import Client
from nodescope.kube.watch import ObjectWatch
from nodescope.publish.self_metrics import OwnFamily, histogram_samples, render_families
from nodescope.serve.server import build_server, open_socket
from nodescope.serve.token import Token
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.extender import POLICIES, Extender
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.self_metrics import ExtenderTally, derive_families
from nodescope.use.scheduler.server import ExtenderApp
from nodescope.wiring import find_access, read_settings, settle_process

EXAMPLE = """example:
  nodescope extender --kubeconfig ~/.kube/config
  curl -s 'localhost:8888/explain?pod=default/nginx'
kube-scheduler's side: deploy/scheduler/config.yaml
"""
LISTEN = "127.0.0.1:8888"
# Pods that ended are none of our business; the server leaves them out.
LIVING = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
# Of the settings, what an extender has a use for.
OPTIONS = {
    "kubeconfig": "a kubeconfig; without it the pod's own account",
    "token_file": "a bearer token that every request but the probes must carry",
    "tls_cert": "certificate chain (PEM) for HTTPS",
    "tls_key": "its private key",
    "tls_client_ca": "only clients with a certificate of this authority: kube-scheduler can send one",
    "log_level": "debug, info, warning or error",
}
log = Log("extender")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with settings")
    parser.add_argument(
        "--listen",
        action="append",
        metavar="HOST:PORT",
        help=f"where to listen; may be repeated (default {LISTEN})",
    )
    parser.add_argument("--port", type=int, metavar="N", help="short for --listen 127.0.0.1:N")
    parser.add_argument(
        "--policy",
        metavar="NAME",
        help="cost: expected time lost (default); rank: the original plugin's 1-2-2",
    )
    parser.add_argument(
        "--no-kubernetes",
        dest="kubernetes",
        action="store_const",
        const="false",
        help="no watches: kube-scheduler must send whole nodes (nodeCacheCapable: false)",
    )
    for name, line in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar="VALUE", help=line)


def run(options: argparse.Namespace) -> int:
    policy = options.policy or "cost"
    if policy not in POLICIES:
        raise SettingsRejected(f"--policy {policy!r} is not accepted; accepted: {', '.join(POLICIES)}")
    flags = {name: getattr(options, name) for name in (*OPTIONS, "kubernetes", "listen")}
    given = {name: value for name, value in flags.items() if value is not None}
    if options.port is not None:
        given["listen"] = [*given.get("listen", []), f"127.0.0.1:{options.port}"]
    loaded = read_settings(given, options.config, os.environ, {"listen": (LISTEN,)})
    settings = loaded.settings
    set_up_logging(settings.log_level)
    access = find_access(loaded, os.environ)
    if settings.kubernetes and access.account is None:
        raise SettingsRejected(
            f"{access.absent}; --no-kubernetes answers from the nodes that kube-scheduler sends"
        )
    return serve(settings, access.account, policy)


def build_watches(
    account: KubeAccount, nodes: Nodes, ledger: PlacedPods, clock: SystemClock
) -> dict[str, ObjectWatch]:
    """Nodes by their metadata alone: no image lists, no statuses."""
    return {
        "nodes": ObjectWatch(Client(account, metadata_only=True), "/api/v1/nodes", {}, nodes, clock),
        "pods": ObjectWatch(Client(account), "/api/v1/pods", LIVING, ledger, clock),
    }


def judge_readiness(watches: dict[str, ObjectWatch]) -> str:
    """Empty when ready; a watch that was current once keeps what it learned."""
    waiting = [
        f"{name}: {watch.state.reason or watch.state.status}"
        for name, watch in watches.items()
        if not watch.state.lists
    ]
    return "; ".join(waiting)


def serve(settings: Settings, account: KubeAccount | None, policy: str) -> int:
    clock = SystemClock()
    nodes, ledger, tally = Nodes(clock), PlacedPods(clock), ExtenderTally()
    watches = build_watches(account, nodes, ledger, clock) if account else {}
    token = Token(settings.token_file) if settings.token_file else None

    def render_metrics() -> str:
        families = derive_families(tally, nodes, ledger, watches, clock, histogram_samples)
        return render_families((OwnFamily(*family) for family in families), openmetrics=False)

    app = ExtenderApp(
        Extender(nodes, ledger, Decisions(), clock, policy),
        tally,
        partial(judge_readiness, watches),
        render_metrics,
        token.admits if token else None,
    )
    server = build_server(app, settings)
    sockets = [open_socket(address) for address in settings.listen]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for watch in watches.values():
            watch.start()
        settle_process()
        # An answer about a thousand nodes makes some thousand short-lived objects: looking for
        # cycles among them at every seven hundred is a third of its time.
        gc.set_threshold(50_000, 20, 20)
        log.info("extender started", policy=policy, listen=",".join(settings.listen))
        asyncio.run(server.serve(sockets=sockets))
    except KeyboardInterrupt:
        pass
    finally:
        for watch in watches.values():
            watch.stop()
        for listener in sockets:
            listener.close()
    log.info("extender stopped", requests=sum(tally.requests.values()))
    return 0
