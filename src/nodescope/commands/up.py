"""nodescope up: everything on this machine, no set-up."""

import argparse
import os
import sys

from nodescope import __version__
from nodescope.base.log import set_up_logging
from nodescope.base.quantity import render_bytes
from nodescope.collect.cgroups import find_hierarchies
from nodescope.commands.agent import serve
from nodescope.commands.options import add_settings, gather_flags
from nodescope.wiring import Parts, build_parts, choose_data, read_settings

EXAMPLE = """example:
  nodescope up
  nodescope up --agent-port 9200
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_settings(parser)
    parser.add_argument("--agent-port", type=int, metavar="N", help="the agent's port, 9100 unless given")


def run(options: argparse.Namespace) -> int:
    flags = gather_flags(options)
    if options.agent_port is not None:
        flags["listen"] = [f"127.0.0.1:{options.agent_port}"]
    loaded = read_settings(flags, options.config, os.environ, {"log_level": "warning"})
    set_up_logging(loaded.settings.log_level)
    return serve(build_parts(loaded, environment=os.environ), announce)


def announce(parts: Parts) -> None:
    """What a person needs, and nothing else, once the first sample is there."""
    while parts.sampler.tally.ticks == 0:
        parts.clock.wait_until(parts.clock.mono_ns() + 20_000_000, parts.sampler.stopping)
    sys.stdout.write(render_banner(parts))
    sys.stdout.flush()


def render_banner(parts: Parts) -> str:
    settings = parts.loaded.settings
    scheme = "https" if settings.tls_cert else "http"
    address = settings.listen[0]
    lines = [
        f"nodescope {__version__} on {parts.node}: {render_counts(parts)}",
        f"  metrics  {scheme}://{address}/metrics",
        f"  window   {scheme}://{address}/metrics?window_seconds=20",
        f"  status   {scheme}://{address}/status",
    ]
    if settings.archive:
        kept = f"{settings.retention_days:g} days, {render_bytes(settings.retention_bytes)} at most"
        lines.append(f"  data     {choose_data(settings, os.environ)}   ({kept})")
    outcomes = parts.sampler.outcomes
    lines += [
        f"  {name:<8} failed: {outcome.reason}"
        for name, outcome in outcomes.items()
        if outcome.state == "failed"
    ]
    absent = [name for name, outcome in outcomes.items() if outcome.state == "absent"]
    if absent:
        lines.append(f"  absent   {', '.join(absent)}; `nodescope sources` says why")
    return "\n".join([*lines, "Ctrl-C stops.", ""])


def render_counts(parts: Parts) -> str:
    latest = parts.ring.latest()
    scopes: dict[str, int] = {}
    for table in ("container", "cpu.cpu"):
        for entity in latest[table].block.entities if table in latest else ():
            scopes[entity.scope] = scopes.get(entity.scope, 0) + 1
    cgroup = "v2" if [h.name for h in find_hierarchies(parts.context.root)] == ["v2"] else "v1"
    words = [f"{scopes.get('container', 0)} containers"]
    if scopes.get("service"):
        words = [f"no containers, {scopes['service']} services"]
    if scopes.get("cpu"):
        words.append(f"{scopes['cpu']} cores")
    return ", ".join([*words, f"cgroup {cgroup}"])
