"""
Streamable HTTP at /mcp, both protocol eras on the one endpoint, and probes that tell the truth.

No sessions are kept: any replica answers any request. Host and Origin are
checked (a page in somebody's browser must not reach a server on loopback),
bodies are bounded, a token is asked for where one is set.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from nodescope import __version__
from nodescope.base.text import clean_text
from nodescope.serve.connections import Connections
from nodescope.serve.gate import PROBES, Admits, Gate, parse_host
from nodescope.serve.json_response import make_error, make_json
from nodescope.serve.probes import LoopPulse
from nodescope.serve.turns import Turns, answer_in_turn
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.message import MESSAGE_BYTES
from nodescope.use.mcp.protocol.request_body import RequestBody

PATHS = PROBES | {"/mcp"}
# A probe comes every few seconds, often from several sides.
READY_NS = 2_000_000_000
READY_SECONDS = 2.0
# Calls being answered at once, by turns of the addresses that ask; each asks up to sixteen nodes.
CALLS_MOST = 16
WAIT_SECONDS = 30.0
HINTS = {421: "start it with --allow-host NAME"}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Readiness:
    """Whether a question would be answered now; looked up at most every other second."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._until_mono_ns = -1
        self._known: dict[str, Any] = {}

    async def judge(self) -> dict[str, Any]:
        mono_ns = self._fleet.clock.mono_ns()
        if mono_ns >= self._until_mono_ns:
            self._known = await self._look()
            self._until_mono_ns = self._fleet.clock.mono_ns() + READY_NS
        return self._known

    def judge_probe(self, pulse: LoopPulse, path: str) -> tuple[bool, dict[str, Any]]:
        """
        From the thread of probes, which must not wait for nodes: what was found out last.

        A probe of readiness asks for the next one's answer.
        """
        reason = pulse.describe()
        if path != "/readyz" or reason or pulse.loop is None:
            return not reason, {"live": not reason, "version": __version__, "reason": reason or "ok"}
        asyncio.run_coroutine_threadsafe(self.judge(), pulse.loop)
        known = self._known or {"ready": False, "reason": "the nodes are being asked for the first time"}
        return known["ready"], known

    async def _look(self) -> dict[str, Any]:
        try:
            entries = self._fleet.choose(None)
        except ToolMisused as error:
            return {"ready": False, "reason": str(error), "nodes": 0}
        replies = await self._fleet.ask(entries, lambda backend: backend.read_about(), READY_SECONDS)
        return {
            "ready": bool(replies.answers),
            "nodes": len(entries),
            "nodes_ready": len(replies.answers),
            "not_ready": {
                node: clean_text(reason, 200) for node, reason in list(replies.missing.items())[:20]
            },
            "reason": clean_text(self._fleet.directory.trouble(), 400)
            or ("" if replies.answers else "no node answers"),
        }


def build_app(
    server: Server[Any],
    readiness: Readiness,
    hosts: Sequence[str],
    admits: Admits | None,
    connections: Connections | None = None,
) -> ASGIApp:
    """The whole application; `server.session_manager.run()` must be entered around serving it."""

    async def health(_: Request) -> Response:
        return make_json({"live": True, "version": __version__})

    async def ready(_: Request) -> Response:
        content = await readiness.judge()
        return make_json(content, 200 if content["ready"] else 503)

    app = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=MESSAGE_BYTES,
        transport_security=build_security(hosts),
        custom_starlette_routes=[Route(path, ready if path == "/readyz" else health) for path in PROBES],
    )
    turns = Turns(CALLS_MOST, connections or Connections(), WAIT_SECONDS)

    async def take_turn(scope: Scope, receive: Receive, send: Send) -> None:
        """Behind the reading of the body: a slow sender holds no turn, nor does a stream that stays open."""
        if scope["type"] == "http" and scope["method"] == "POST":
            await answer_in_turn(turns, app, scope, receive, send)
        else:
            await app(scope, receive, send)

    # Origins are checked by the SDK, which knows those that may call from a browser.
    gate = Gate(RequestBody(take_turn), admits, same_origin=False)
    # The SDK refuses a name in three words; this says what would help.
    names = frozenset(parse_host(name).lower() for name in hosts)
    named = Gate(gate, hosts=names, hints=HINTS, same_origin=False, server="MCP server")

    async def refuse_unknown(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PATHS:
            # A probe comes under any name.
            await (named if scope.get("path") == "/mcp" else gate)(scope, receive, send)
            return
        detail = f"no {clean_text(scope['path'], 80)}; there are: /mcp /healthz /readyz"
        await make_error(404, "not found", detail, "the MCP endpoint is /mcp")(scope, receive, send)

    return refuse_unknown


def build_security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Loopback always; further names as given, with any port or with the one they name."""
    names = [*LOOPBACK, *hosts]
    allowed = [form for name in names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{form}" for scheme in ("http", "https") for form in allowed]
    return TransportSecuritySettings(allowed_hosts=allowed, allowed_origins=origins)
