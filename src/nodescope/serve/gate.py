"""
In front of an application: who may ask, in which name, how much, and what a browser may do with the answer.

A page of another site must not read this machine through the visitor's
browser: where `hosts` is given, only loopback's names and these are answered
(DNS rebinding). No cross-origin header is ever sent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodescope.serve.json_response import make_error

PROBES = frozenset({"/healthz", "/health", "/readyz"})
LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})

Admits = Callable[[str], bool]


def is_no_probe(path: str) -> bool:
    return path not in PROBES


@dataclass(frozen=True, slots=True)
class Gate:
    """Token, Host and query length of every request, headers of every answer."""

    app: ASGIApp
    admits: Admits | None = None
    """Whether an Authorization header carries the token; None where there is no token."""
    query_characters: int = 4096
    needs_token: Callable[[str], bool] = is_no_probe
    """By path."""
    hosts: frozenset[str] | None = None
    """Names that are answered beside loopback's; None for all."""
    cookie: str = ""
    """A browser sends the token in this cookie, which /?token=TOKEN sets; empty where no browser comes."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of every answer."""
    hints: Mapping[int, str] = field(default_factory=dict)
    """By status, for refusals made here."""
    server: str = "server"
    """What this is, in words."""
    make_refusal: Callable[..., Response] = make_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.headers:
            send = partial(self._send_with_headers, send)
        await (self._refuse(scope) or self.app)(scope, receive, send)

    async def _send_with_headers(self, send: Send, message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(self.headers)
        await send(message)

    def _refuse(self, scope: Scope) -> Response | None:
        if len(scope.get("query_string", b"")) > self.query_characters:
            return self._make(
                414, "query too long", f"at most {self.query_characters} characters are accepted"
            )
        if self.hosts is None and self.admits is None:
            return None
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        return self._check_host(headers) or self._check_token(scope, headers)

    def _make(self, status: int, error: str, detail: str) -> Response:
        return self.make_refusal(status, error, detail, self.hints.get(status, ""))

    def _check_host(self, headers: Mapping[bytes, str]) -> Response | None:
        name = parse_host(headers.get(b"host", ""))
        if self.hosts is None or is_local(name) or name.lower() in self.hosts:
            return None
        detail = f"this {self.server} answers to localhost and 127.0.0.1, not to {name[:80]!r}"
        return self._make(421, "host not accepted", detail)

    def _check_token(self, scope: Scope, headers: Mapping[bytes, str]) -> Response | None:
        if self.admits is None:
            return None
        if self.cookie and scope["path"] == "/" and (given := parse_token(scope)):
            return self._log_in(given, self.admits)
        if not self.needs_token(scope["path"]) or self.admits(headers.get(b"authorization", "")):
            return None
        if self.cookie and self.admits(f"Bearer {parse_cookie(headers.get(b'cookie', ''), self.cookie)}"):
            return None
        refusal = self._make(401, "token required", "send the header Authorization: Bearer TOKEN")
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    def _log_in(self, given: str, admits: Admits) -> Response:
        """/?token=... becomes a cookie that scripts cannot read; the address forgets it."""
        if not admits(f"Bearer {given}"):
            return self.make_refusal(401, "token refused", "this is not the token")
        answer = Response(status_code=303, headers={"Location": "/", "Cache-Control": "no-store"})
        answer.set_cookie(self.cookie, given, httponly=True, samesite="strict", path="/")
        return answer


def parse_host(text: str) -> str:
    """The name in a Host header, without its port."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.rpartition(":")[2].isdigit() and ":" in text else text


def is_local(name: str) -> bool:
    if name.lower() in LOCAL_NAMES:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def parse_token(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def parse_cookie(text: str, name: str) -> str:
    try:
        jar = SimpleCookie(text)
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""
