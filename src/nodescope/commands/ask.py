"""nodescope ask: a question in plain words, answered by the tool that the table of questions names."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from nodescope.base.errors import RequestRejected
from nodescope.base.log import set_up_logging
from nodescope.base.text import clean_text
from nodescope.commands.mcp import build_fleet
from nodescope.commands.shared.node_options import add_deadline, add_nodes, check_kubernetes
from nodescope.commands.shared.options import add_json, read_guards
from nodescope.serve.json_text import render_json

if TYPE_CHECKING:
    from nodescope.use.answers.questions import Understood
    from nodescope.use.mcp.nodes.backend import Backend
    from nodescope.use.mcp.nodes.fleet import Fleet
    from nodescope.use.mcp.protocol.answer import ToolAnswer

EXAMPLE = """example:
  nodescope ask "who uses the most memory?" demo
  nodescope ask "does the cache on demo-1 leak?" demo
  nodescope ask "what happened at 14:05?" --viewer worker-1=http://10.0.0.5:8050
"""
# A terminal has room for every finding of an answer.
SHOWN = 12
CAN_BE_ASKED = (
    "what is wrong, who uses the most of something, leaks, spikes, throttling, OOM kills, restarts, noisy neighbours, "
    "right sizes, what changed and when, comparisons, how a node or a container is doing"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("question", metavar="QUESTION", help="in plain words, in quotation marks")
    parser.add_argument(
        "path",
        type=Path,
        nargs="*",
        metavar="PATH",
        help="data folders; this machine's unless a viewer or --kubernetes is given",
    )
    add_nodes(parser)
    add_deadline(parser)
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with settings")
    parser.add_argument("--node", metavar="NAME", help="only this node; the question may name it as well")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    check_kubernetes(options)
    loaded = read_guards(options, "kubeconfig")
    set_up_logging(loaded.settings.log_level)
    fleet = build_fleet(options, loaded)
    understood, answer = anyio.run(ask, fleet, options.question, options.node)
    if understood.missing:
        sys.stderr.write(
            f"nodescope ask: {understood.missing} would answer this and is not in this version; "
            f"this is what {understood.tool} says\n"
        )
    if understood.mistyped:
        taken = understood.arguments["container"]
        sys.stderr.write(
            f'nodescope ask: no container is called "{clean_text(understood.mistyped, 80)}"; "{taken}" was taken\n'
        )
    if options.json:
        call = {"tool": understood.tool, "arguments": understood.arguments}
        sys.stdout.buffer.write(render_json({"call": call, "answer": answer.to_json()}) + b"\n")
    else:
        sys.stdout.write(f"{answer.render(SHOWN)}\n{render_asked(understood)}\n")
    return 0


def render_asked(understood: "Understood") -> str:
    """Which call the question was taken for, so that another one can be asked."""
    from nodescope.use.mcp.protocol.answer import NextCall

    return f"Asked: {NextCall(understood.tool, understood.arguments, understood.why).render()}"


async def ask(fleet: "Fleet", question: str, node: str | None) -> tuple["Understood", "ToolAnswer"]:
    """The call that the question means, and its answer."""
    from nodescope.use.answers.questions import Understood, find_name, find_unknown_node, understand
    from nodescope.use.mcp.protocol.argument import check_arguments
    from nodescope.use.mcp.tools import TOOLS

    nodes = fleet.choose(None)
    node = node or find_name(question, nodes) or None
    names = await read_names(fleet, node)
    if node is None and (unknown := find_unknown_node(question, nodes, names)):
        # An answer about the others would be taken for one about it.
        fleet.choose(unknown)
    understood = understand(question, TOOLS, names)
    if understood is None and node:
        understood = Understood("summarize_node", {}, "how the node is doing")
    if understood is None:
        raise RequestRejected(
            f'"{clean_text(question, 80)}" is no question that is known; one can ask about: {CAN_BE_ASKED}'
        )
    if understood.tool not in TOOLS:
        raise RequestRejected(f"{understood.tool} would answer this and is not in this version")
    tool = TOOLS[understood.tool]
    if node and any(one.name == "node" for one in tool.arguments):
        understood.arguments["node"] = node
    return understood, await tool.run(fleet, check_arguments(tool.name, tool.arguments, understood.arguments))


async def read_names(fleet: "Fleet", node: str | None) -> set[str]:
    """Containers and pods that a question may name."""

    def read(backend: "Backend") -> list[Any]:
        return backend.read_lives(None)

    replies = await fleet.ask_all(node, read)
    lives = [life for found in replies.answers.values() for life in found]
    return {name for life in lives for name in (life.container_name, life.pod, life.workload.name) if name}
