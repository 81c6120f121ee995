"""
In front of an application: who may ask, in which name, how much, and what a browser may do with the answer.

A page of another site must not read this machine through the visitor's
browser, nor send it anything: where `hosts` is given, only loopback's names,
addresses and these names are answered (DNS rebinding); a request that a browser
makes for another site's page is refused. No cross-origin header is ever sent.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodescope.base.text import clean_text
from nodescope.serve.json_response import make_error

PROBES = frozenset({"/healthz", "/health", "/readyz"})
# What browsers say of a page that is not of this server.
OTHER_SITES = frozenset({"cross-site", "same-site"})
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
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
    any_address: bool = False
    """Whether every plain address is answered, too: a page has a name, and brings that along."""
    same_origin: bool = True
    """Whether a browser's requests for pages of other sites are refused."""
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
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        return (
            self._check_host(headers) or self._check_site(scope, headers) or self._check_token(scope, headers)
        )

    def _make(self, status: int, error: str, detail: str) -> Response:
        return self.make_refusal(status, error, detail, self.hints.get(status, ""))

    def _check_host(self, headers: Mapping[bytes, str]) -> Response | None:
        name = parse_host(headers.get(b"host", ""))
        if self.hosts is None or is_local(name) or name.lower() in self.hosts:
            return None
        if self.any_address and is_address(name):
            return None
        detail = f"this {self.server} answers to localhost and 127.0.0.1, not to {clean_text(name, 80)!r}"
        return self._make(421, "host not accepted", detail)

    def _check_site(self, scope: Scope, headers: Mapping[bytes, str]) -> Response | None:
        """What only browsers send; other clients have neither header."""
        if not self.same_origin:
            return None
        site, origin = headers.get(b"sec-fetch-site", ""), headers.get(b"origin", "")
        if site in OTHER_SITES and not is_opened(scope["method"], headers):
            return self._make(403, "another site's request", f"Sec-Fetch-Site {site} is not accepted")
        if origin and not is_same_origin(origin, headers.get(b"host", "")):
            return self._make(
                403, "another site's request", f"Origin {clean_text(origin, 80)!r} is not accepted"
            )
        return None

    def _check_token(self, scope: Scope, headers: Mapping[bytes, str]) -> Response | None:
        if self.admits is None:
            return None
        if self.cookie and scope["path"] == "/" and (given := parse_token(scope)):
            return self._log_in(given, self.admits, is_secure=scope.get("scheme") == "https")
        if not self.needs_token(scope["path"]) or self.admits(headers.get(b"authorization", "")):
            return None
        if self.cookie and self.admits(f"Bearer {parse_cookie(headers.get(b'cookie', ''), self.cookie)}"):
            return None
        refusal = self._make(401, "token required", "send the header Authorization: Bearer TOKEN")
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    def _log_in(self, given: str, admits: Admits, *, is_secure: bool) -> Response:
        """/?token=... becomes a cookie that scripts cannot read; the address forgets it."""
        if not admits(f"Bearer {given}"):
            return self.make_refusal(401, "token refused", "this is not the token")
        answer = Response(status_code=303, headers={"Location": "/", "Cache-Control": "no-store"})
        answer.set_cookie(self.cookie, given, httponly=True, secure=is_secure, samesite="strict", path="/")
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


def is_opened(method: str, headers: Mapping[bytes, str]) -> bool:
    """Whether somebody followed a link: the page that has it sees nothing of the answer."""
    mode, target = headers.get(b"sec-fetch-mode", ""), headers.get(b"sec-fetch-dest", "")
    return method in ("GET", "HEAD") and mode == "navigate" and target == "document"


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a page's origin is the server that it asks; the scheme may be a proxy's."""
    scheme, _, place = origin.partition("://")
    port = DEFAULT_PORTS.get(scheme, "")
    return bool(place) and place.removesuffix(port).lower() == host.removesuffix(port).lower()


def listens_locally(addresses: Iterable[str]) -> bool:
    """Whether HOST:PORT are all of loopback."""
    return all(is_local(parse_host(address)) for address in addresses)


def name_hosts(addresses: Iterable[str], allowed: Iterable[str]) -> frozenset[str] | None:
    """
    The names that a server on these addresses is asked for; None for all.

    Outside of loopback its network and its token decide, unless names are given.
    """
    names = frozenset(name.lower() for name in allowed)
    return names if names or listens_locally(addresses) else None


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def parse_token(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def parse_cookie(text: str, name: str) -> str:
    try:
        jar = SimpleCookie(text)
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""
