"""What the servers for a whole cluster share: options, gate, probes, and how they end."""

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from nodescope.base.settings import Settings
from nodescope.commands.shared.options import name_option
from nodescope.serve.gate import Gate, listens_locally, name_hosts
from nodescope.serve.probes import LoopPulse
from nodescope.serve.token import Token

# Pods that have ended take nothing.
LIVING = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


def add_server_options(
    parser: argparse.ArgumentParser, listen: str, what: str, settings: Mapping[str, str]
) -> None:
    """`settings`: those that the server uses, each with its sentence."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with settings")
    parser.add_argument(
        "--listen",
        action="append",
        metavar="HOST:PORT",
        help=f"{what}; may be repeated (default {listen})",
    )
    for name, line in settings.items():
        parser.add_argument(name_option(name), dest=name, metavar="VALUE", help=line)


def judge_probe(
    pulse: LoopPulse, readiness: Callable[[], str], path: str
) -> tuple[bool, Mapping[str, object]]:
    reason = pulse.describe() or (readiness() if path == "/readyz" else "")
    return not reason, {"live": not pulse.describe(), "reason": reason or "ok"}


def build_gate_for(app: ASGIApp, settings: Settings, server: str, usual: str) -> Gate:
    """`usual`: the address that it has unless it is told otherwise."""
    port = usual.rpartition(":")[2]
    return Gate(
        app,
        Token(settings.token_file).admits if settings.token_file else None,
        hosts=name_hosts(settings.listen, settings.allow_host),
        any_address=not listens_locally(settings.listen),
        hints={421: f"start it with --allow-host NAME, or --listen 0.0.0.0:{port}"},
        server=server,
    )


async def wait_for_all(listening: Sequence[Coroutine[Any, Any, None]]) -> None:
    """A signal ends the server that began last, which hands it on to the one before."""
    await asyncio.gather(*listening)
