"""nodescope advise: which pods should run on another node, and why. It moves nothing."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.clock import SystemClock
from nodescope.base.errors import SettingsRejected
from nodescope.base.settings_load import read_settings
from nodescope.commands.shared.options import add_json, add_span
from nodescope.kube.client import Client
from nodescope.wiring import find_access

if TYPE_CHECKING:
    from nodescope.use.answers.moving.advice import Advice
    from nodescope.use.answers.moving.node_state import NodeState

EXAMPLE = """example:
  nodescope advise --kubeconfig ~/.kube/config
  nodescope advise /var/lib/nodescope/*

Of a cluster it reads what agents write (--annotate window,workloads) and where pods are; of data folders
the last hour of each node. It says which pods to move and why, and what it does not know. It moves nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "path", type=Path, nargs="*", metavar="PATH", help="data folders of several nodes; none: a cluster"
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="a kubeconfig; without it the pod's own account")
    parser.add_argument(
        "--lease-namespace",
        metavar="NAME",
        help="where agents have their Leases; the account's own unless given",
    )
    add_span(parser, "-1h")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from nodescope.serve.json_text import render_json
    from nodescope.use.answers.moving.advice import advise

    unread: list[str] = []
    states = read_archives(options) if options.path else read_cluster(options, unread)
    advice = advise(states)
    if options.json:
        content = {**asdict(advice), "nodes": len(states), "unread": unread}
        sys.stdout.buffer.write(render_json(content) + b"\n")
    else:
        sys.stdout.write(render_text(advice, len(states), unread))
    return 0


def read_archives(options: argparse.Namespace) -> "list[NodeState]":
    from nodescope.commands.incidents import choose_span
    from nodescope.commands.shared.archive import open_view
    from nodescope.use.answers.moving.from_archive import join_states
    from nodescope.use.answers.node_summary.summary import summarize_nodes
    from nodescope.use.answers.rightsizing.measure import read_needs

    view = open_view(options.path)
    span = choose_span(view, options)
    summaries = {one.node: one for one in summarize_nodes(view, span)}
    return join_states(summaries, {one.node: one for one in read_needs(view, span, None)})


def read_cluster(options: argparse.Namespace, unread: list[str]) -> "list[NodeState]":
    from nodescope.use.answers.moving.from_cluster import ClusterStates

    flags = {"kubeconfig": options.kubeconfig} if options.kubeconfig else {}
    access = find_access(read_settings(flags, None, os.environ, {}), os.environ)
    if access.account is None:
        raise SettingsRejected(f"{access.absent}; or name data folders of several nodes")
    client = Client(access.account)
    try:
        namespace = options.lease_namespace or access.account.namespace
        reading = ClusterStates(client, namespace, SystemClock())
        states = reading.read()
        unread += reading.unread
        return states
    finally:
        client.close()


def render_text(advice: "Advice", nodes: int, unread: Sequence[str]) -> str:
    from nodescope.use.answers.moving.sentence import render_headline, render_move

    lines = [
        render_headline(advice),
        *(f"{number}. {render_move(one)}" for number, one in enumerate(advice.moves, 1)),
    ]
    lines += [f"Crowded: {one}." for one in advice.crowded]
    lines += [f"Stays: {one}." for one in advice.stays]
    lines += [f"Not known: {one}." for one in (*unread, *advice.unknown)]
    if nodes < 2:
        lines.append(f"Not known: there is {nodes} node here; a pod can be moved only where there are two.")
    return "".join(f"{line}\n" for line in lines)
