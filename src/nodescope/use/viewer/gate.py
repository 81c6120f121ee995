"""
In front of the viewer: who may ask, in which name, how much, and what a browser may do with the answer.

A page of another site must not read this machine through the visitor's
browser: on loopback only loopback names are answered (DNS rebinding), no
cross-origin header is ever sent, and the policy below lets our page load
nothing from elsewhere.
"""

from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodescope.use.viewer.render import render_json

QUERY_CHARACTERS = 8192
PROBES = frozenset({"/api/health", "/healthz", "/readyz"})
COOKIE = "nodescope_token"
# uPlot sets sizes through element.style, which is allowed; inline <style> and
# <script> are not. data: images are the page's icon and PNG export.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def make_error(status: int, error: str, detail: str, hint: str = "") -> Response:
    content = render_json({"error": error, "detail": detail, "hint": hint})
    return Response(content, status, media_type="application/json")


def host_of(text: str) -> str:
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


class ViewerGate:
    """Token, Host, query length; and the headers of every answer."""

    def __init__(
        self,
        app: ASGIApp,
        admits: Callable[[str], bool] | None = None,
        *,
        only_local: bool = True,
        hosts: tuple[str, ...] = (),
    ) -> None:
        self._app = app
        self._admits = admits
        self._only_local = only_local
        self._hosts = frozenset(name.lower() for name in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if len(scope.get("query_string", b"")) > QUERY_CHARACTERS:
            return make_error(
                414,
                "query too long",
                f"at most {QUERY_CHARACTERS} characters are accepted",
                "ask for less at once",
            )
        name = host_of(headers.get(b"host", ""))
        if self._only_local and not is_local(name) and name.lower() not in self._hosts:
            return make_error(
                421,
                "host not accepted",
                f"this viewer answers to localhost and 127.0.0.1, not to {name[:80]!r}",
                "start it with --allow-host NAME, or --host 0.0.0.0",
            )
        return self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: dict[bytes, str]) -> Response | None:
        """Data need the token; the page itself holds none, and so does its health."""
        path = scope["path"]
        if self._admits is None or path in PROBES:
            return None
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if path == "/" and given:
            return self._welcome(given)
        if not path.startswith("/api/") and path != "/openapi.json":
            return None
        if self._admits(headers.get(b"authorization", "")) or self._admits(f"Bearer {cookie_of(headers)}"):
            return None
        refusal = make_error(
            401,
            "token required",
            "send the header Authorization: Bearer TOKEN",
            "in a browser, open /?token=TOKEN once",
        )
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    def _welcome(self, given: str) -> Response:
        """/?token=... becomes a cookie that scripts cannot read; the address forgets it."""
        if not (self._admits and self._admits(f"Bearer {given}")):
            return make_error(401, "token refused", "this is not the token")
        answer = Response(status_code=303, headers={"Location": "/", "Cache-Control": "no-store"})
        answer.set_cookie(COOKIE, given, httponly=True, samesite="strict", path="/")
        return answer


def cookie_of(headers: dict[bytes, str]) -> str:
    try:
        jar = SimpleCookie(headers.get(b"cookie", ""))
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""
