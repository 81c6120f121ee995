"""
Asking the viewer of a node over HTTP: its address, its token, and what a refusal means.

Only addresses that were given or discovered are asked; redirects are not
followed (serve/http_client.py), so that no node can send a question elsewhere.
"""

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nodescope.base.clock import Clock
from nodescope.base.errors import HttpFailed, NodescopeError, RequestRejected, SettingsRejected
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.serve.date import measure_ahead
from nodescope.serve.http_client import Endpoint, HttpClient, parse_endpoint

VIEWER_PORT = 8050
# A list of 1,000 containers with their curves is 1.5 MB.
ANSWER_BYTES = 16 * 2**20
# Idle connections that are kept to one viewer.
KEPT = 2


class NodeAway(NodescopeError):
    """A node did not answer; the others' answers stand."""


def parse_address(text: str, tls: ssl.SSLContext | None = None) -> Endpoint:
    """http://HOST:PORT, with a path where the viewer is behind a gateway."""
    url = text if "://" in text else f"http://{text}"
    try:
        return parse_endpoint(url, tls, 0 if url.startswith("https:") else VIEWER_PORT)
    except HttpFailed:
        raise SettingsRejected(
            f"{text!r} is not a viewer's address; accepted: http://HOST:{VIEWER_PORT}"
        ) from None


@dataclass(frozen=True, slots=True)
class ViewerAccess:
    """How viewers are asked: by when, whom to trust, and the token as it is in its file now."""

    clock: Clock
    deadline_seconds: float
    tls: ssl.SSLContext | None = None
    token: Callable[[], str] = lambda: ""


class ViewerClient:
    """The viewer that answers for one node."""

    def __init__(self, node: str, endpoint: Endpoint, access: ViewerAccess) -> None:
        self._node = node
        self._clock = access.clock
        self._token = access.token
        self.http = HttpClient(endpoint, access.deadline_seconds, ANSWER_BYTES, kept=KEPT, clock=access.clock)
        self._only: dict[str, str] | None = None
        self.ahead_seconds: float | None = None
        """How far its clock is ahead of this machine's, by its last answer."""

    def choose_node(self, instance: Mapping[str, Any]) -> None:
        """A viewer of one node is that node, whatever it is called here; of several, the name chooses."""
        names = [str(name) for name in instance.get("nodes") or ()]
        if len(names) <= 1:
            self._only = {}
        elif self._node in names:
            self._only = {"node": self._node}
        else:
            listed = ", ".join(clean_text(name, 60) for name in names[:5])
            raise NodeAway(f"its viewer serves {len(names)} nodes ({listed}), none of that name")

    def name_node(self) -> Mapping[str, str]:
        """What of a request's parameters chooses this node of its viewer."""
        if self._only is None:
            self.choose_node(self.ask("/api/instance", {}))
        return self._only or {}

    def ask_node(self, path: str, query: Mapping[str, str]) -> Any:
        return self.ask(path, {**query, **self.name_node()})

    def ask_by_name(self, path: str, query: Mapping[str, str]) -> Any:
        """The same where viewers usually know the node by this name: one request, two where it has another."""
        if self._only is not None:
            return self.ask_node(path, query)
        try:
            content = self.ask(path, {**query, "node": self._node})
        except RequestRejected:
            return self.ask_node(path, query)
        self._only = {"node": self._node}
        return content

    def headers(self, accept: str = "application/json") -> dict[str, str]:
        token = self._token()
        return {"Accept": accept, **({"Authorization": f"Bearer {token}"} if token else {})}

    def ask(self, path: str, query: Mapping[str, str]) -> Any:
        headers = self.headers()
        begun_ns = self._clock.wall_ns()
        try:
            answer = self.http.request("GET", f"{path}?{urlencode(query)}" if query else path, headers)
        except HttpFailed as error:
            raise NodeAway(render_failure(error)) from error
        self.ahead_seconds = measure_ahead(answer.headers.get("Date"), begun_ns, self._clock.wall_ns())
        content = parse_object(answer.body)
        if answer.status == 200 and content is not None:
            return content
        detail = render_detail(content or {})
        if answer.status in (400, 404, 413, 422) and detail:
            raise RequestRejected(detail)
        if answer.status == 401:
            raise NodeAway(f"its viewer {render_unwelcome(headers)}")
        raise NodeAway(f"its viewer answered {answer.status}{f': {detail}' if detail else ' and no JSON'}")

    def close(self) -> None:
        self.http.close()


def parse_object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def render_detail(said: Mapping[str, Any]) -> str:
    return clean_text(f"{said.get('detail') or ''} {said.get('hint') or ''}".strip(), 300)


def render_unwelcome(headers: Mapping[str, str]) -> str:
    given = "does not take the token that was given" if "Authorization" in headers else "wants a token"
    return f"{given}: start nodescope with the right --viewer-token-file"


def render_failure(error: HttpFailed) -> str:
    if error.timed_out:
        return "its viewer did not answer in time"
    reason = clean_text(error.reason, 200).lower()
    where = "is not there" if reason == "connection refused" else "cannot be reached"
    return f"its viewer {where}: {reason}"


def render_span(span: TimeRange) -> dict[str, str]:
    return {"from": f"{span.from_ms / 1000:.3f}", "to": f"{span.to_ms / 1000:.3f}"}
