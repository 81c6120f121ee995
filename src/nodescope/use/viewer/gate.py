"""The viewer's gate: on loopback only loopback names, a cookie for browsers, a policy that loads nothing from elsewhere."""

from starlette.responses import Response

from nodescope.base.text import clean_text
from nodescope.serve.json_response import make_error

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
HINTS = {
    401: "in a browser, open /?token=TOKEN once",
    414: "ask for less at once",
    421: "start it with --allow-host NAME, or --host 0.0.0.0",
}


def is_question(path: str) -> bool:
    """Answered from data, or about the answers; all else is files of the page and probes."""
    return path not in PROBES and (path.startswith("/api/") or path in ("/api", "/openapi.json"))


def holds_data(path: str) -> bool:
    """Data need the token; the page itself holds none, and so does its health."""
    return path not in PROBES and (path.startswith("/api/") or path == "/openapi.json")


def refuse_method(method: str, accepted: str = "GET") -> Response:
    detail = f"{clean_text(method, 20)} is not accepted here; accepted: {accepted}"
    return make_error(405, "refused", detail, headers={"Allow": accepted})
