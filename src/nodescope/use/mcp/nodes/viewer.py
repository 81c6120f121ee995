"""
A node behind its viewer: the same questions, put to the viewer's HTTP API.

Connections are kept and shared by the threads that ask; every request has a
deadline of its own for the whole answer, because a viewer that sends a byte
now and then must not hold a thread for ever. What a viewer says about tenants
is cleaned here, whatever the viewer did.
"""

import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from nodescope import __version__
from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected, SettingsRejected
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.use.mcp.nodes.backend import (
    About,
    ArchivedLife,
    Levels,
    MetricLevel,
    MetricRow,
    NodeEvent,
    StudyAnswer,
    Thing,
    clean_name,
    parts_of,
)
from nodescope.use.mcp.protocol.errors import NodeAway
from nodescope.use.studies import correlation

# A list of 1,000 containers with their curves is 1.5 MB.
ANSWER_BYTES = 16 * 2**20
# What one request of the viewer accepts.
SERIES_AT_ONCE = 64
STUDIES_AT_ONCE = 16
# Who there is, without a look at any sample.
NO_METRIC = "none"
# One figure for the whole span, and no look at limits, which costs as much again.
ONE_FIGURE = {"max_points": "1", "limits": "off"}
ROWS = 1000
EVENTS = 2000
# Idle connections that are kept to one viewer.
KEPT = 2
# The list of metrics changes with the agent's version.
METRICS_NS = 120_000_000_000
PIECE_BYTES = 65536
LIVES_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Address:
    """Where a viewer is, and how it is asked."""

    scheme: str
    host: str
    port: int
    path: str = ""
    tls: ssl.SSLContext | None = None
    token: Callable[[], str] = field(default=lambda: "")

    def render(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def parse_address(
    text: str, tls: ssl.SSLContext | None = None, token: Callable[[], str] = lambda: ""
) -> Address:
    """http://HOST:PORT, with a path where the viewer is behind a gateway."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise SettingsRejected(f"{text!r} is not a viewer's address; accepted: http://HOST:8050")
    if parts.scheme == "https" and tls is None:
        tls = ssl.create_default_context()
    port = port or (443 if parts.scheme == "https" else 8050)
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), tls, token)


class ViewerNode:
    """One node of one viewer."""

    def __init__(self, node: str, address: Address, clock: Clock, deadline_seconds: float) -> None:
        self._node = node
        self._address = address
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._lock = Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._only: dict[str, str] | None = None
        self._metrics: tuple[int, list[MetricRow]] | None = None
        self._lives: tuple[int, list[ArchivedLife]] | None = None

    # -- the questions ----------------------------------------------------------

    def read_about(self) -> About:
        found = self._ask("/api/instance", {})
        self._choose_node(found)
        return About(
            self._node,
            clean_text(str(found.get("version") or "")),
            milliseconds(found.get("from")),
            milliseconds(found.get("to")),
            int(found.get("containers") or 0),
            tuple(clean_text(str(one.get("reason"))) for one in found.get("problems") or ()),
        )

    def read_metrics(self) -> list[MetricRow]:
        mono_ns = self._clock.mono_ns()
        if self._metrics is None or mono_ns - self._metrics[0] > METRICS_NS:
            found = self._ask("/api/metrics", self._narrowed())
            self._metrics = (mono_ns, [parse_metric(row) for row in found["metrics"]])
        return self._metrics[1]

    def read_lives(self, span: TimeRange | None) -> list[ArchivedLife]:
        lives = self._read_all_lives()
        if span is None:
            return lives
        return [life for life in lives if life.first_ms <= span.to_ms and life.last_ms >= span.from_ms]

    def _read_all_lives(self) -> list[ArchivedLife]:
        """A question asks for them several times over; they are kept for as long as one takes."""
        mono_ns = self._clock.mono_ns()
        if self._lives is None or mono_ns - self._lives[0] > LIVES_NS:
            query = {"metric": NO_METRIC, "limit": str(ROWS), "sort": "last_seen", "range": "all"}
            found = self._ask("/api/containers", {**query, **self._narrowed()})
            lives = [parse_life(row, self._node) for row in found["containers"]]
            self._lives = (
                mono_ns,
                sorted(lives, key=lambda life: (life.namespace, life.name, life.first_ms)),
            )
        return self._lives[1]

    def read_levels(self, metric: str, span: TimeRange, containers: Sequence[str] | None) -> Levels:
        """Exact figures of the whole span: a series of one bucket each."""
        if containers is None:
            containers = [life.container_id for life in self.read_lives(span)]
        unit, rows = "", []
        for some in parts_of(containers, SERIES_AT_ONCE):
            query = {
                "metric": metric,
                "containers": ",".join(some),
                **ONE_FIGURE,
                **render_span(span),
                **self._narrowed(),
            }
            found = self._ask("/api/timeseries", query)
            unit = clean_text(str(found.get("unit") or ""))
            rows += [level for one in found["series"] if (level := parse_level(one))]
        return Levels(unit, tuple(rows))

    def read_things(self, metric: str, span: TimeRange) -> tuple[str, list[Thing]]:
        query = {"metric": metric, **ONE_FIGURE, **render_span(span), **self._narrowed()}
        return parse_things(self._ask("/api/timeseries", query), self._node)

    def study(self, name: str, metric: str, containers: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        if name == correlation.NAME:
            containers = self._neighbours(metric, containers[0], span)
        answers: list[StudyAnswer] = []
        for some in parts_of(containers, STUDIES_AT_ONCE):
            query = {
                "metric": metric,
                "containers": ",".join(some),
                **render_span(span),
                **self._narrowed(),
            }
            found = self._ask(f"/api/study/{quote(name)}", query)
            answers += [{**one, "id": one["series"].get("id")} for one in found["results"]]
        if name == correlation.NAME:
            return [one for one in answers if one["id"] == containers[0]]
        return answers

    def _neighbours(self, metric: str, container: str, span: TimeRange) -> list[str]:
        """The container, then those that use the most: as many as one study takes."""
        query = {"metric": metric, "sort": "value", "limit": str(STUDIES_AT_ONCE)}
        found = self._ask("/api/containers", {**query, **render_span(span), **self._narrowed()})
        others = [str(row["id"]) for row in found["containers"] if row["id"] != container]
        return [container, *others[: STUDIES_AT_ONCE - 1]]

    def read_events(self, span: TimeRange) -> list[NodeEvent]:
        query = {"limit": str(EVENTS), **render_span(span), **self._narrowed()}
        found = self._ask("/api/events", query)
        return [parse_event(one) for one in found["events"]]

    # -- which node of the viewer -------------------------------------------------

    def _choose_node(self, instance: Mapping[str, Any]) -> None:
        """A viewer of one node is that node, whatever it is called here; of several, the name chooses."""
        names = [str(name) for name in instance.get("nodes") or ()]
        if len(names) <= 1:
            self._only = {}
        elif self._node in names:
            self._only = {"node": self._node}
        else:
            listed = ", ".join(clean_text(name, 60) for name in names[:5])
            raise NodeAway(f"its viewer serves {len(names)} nodes ({listed}), none of that name")

    def _narrowed(self) -> dict[str, str]:
        if self._only is None:
            self._choose_node(self._ask("/api/instance", {}))
        return self._only or {}

    # -- the wire -----------------------------------------------------------------

    def _ask(self, path: str, query: Mapping[str, str]) -> Any:
        until_mono_ns = self._clock.mono_ns() + round(self._deadline_seconds * 1e9)
        target = self._address.path + path + (f"?{urlencode(query)}" if query else "")
        status, body = self._exchange(target, until_mono_ns)
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if status == 200 and isinstance(content, dict):
            return content
        said = content if isinstance(content, dict) else {}
        detail = clean_text(f"{said.get('detail') or ''} {said.get('hint') or ''}".strip(), 300)
        if status in (400, 404, 413, 422) and detail:
            raise RequestRejected(detail)
        if status == 401:
            given = "does not take the token that was given" if self._address.token() else "wants a token"
            raise NodeAway(f"its viewer {given}: start nodescope mcp with the right --viewer-token-file")
        raise NodeAway(f"its viewer answered {status}{f': {detail}' if detail else ' and no JSON'}")

    def _exchange(self, target: str, until_mono_ns: int) -> tuple[int, bytes]:
        """Status and body; a kept connection that the viewer closed meanwhile is made anew, once."""
        kept = self._take()
        if kept is not None:
            try:
                return self._send(kept, target, until_mono_ns)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                pass
            except (OSError, http.client.HTTPException) as error:
                raise NodeAway(tell_error(error)) from error
        try:
            return self._send(self._connect(), target, until_mono_ns)
        except (OSError, http.client.HTTPException) as error:
            raise NodeAway(tell_error(error)) from error

    def _send(
        self, connection: http.client.HTTPConnection, target: str, until_mono_ns: int
    ) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "User-Agent": f"nodescope/{__version__}"}
        if token := self._address.token():
            headers["Authorization"] = f"Bearer {token}"
        try:
            self._limit(connection, until_mono_ns)
            connection.request("GET", target, headers=headers)
            self._limit(connection, until_mono_ns)
            answer = connection.getresponse()
            body = self._read_body(connection, answer, until_mono_ns)
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._give_back(connection)
        return answer.status, body

    def _read_body(
        self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, until_mono_ns: int
    ) -> bytes:
        pieces, size = [], 0
        while piece := answer.read1(PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > ANSWER_BYTES:
                raise http.client.HTTPException(f"an answer of more than {ANSWER_BYTES} bytes")
            self._limit(connection, until_mono_ns)
        # read1 leaves a whole body's response open, and with it the connection taken.
        answer.close()
        return b"".join(pieces)

    def _limit(self, connection: http.client.HTTPConnection, until_mono_ns: int) -> None:
        left_seconds = (until_mono_ns - self._clock.mono_ns()) / 1e9
        if left_seconds <= 0:
            raise TimeoutError
        connection.timeout = left_seconds
        if connection.sock is not None:
            connection.sock.settimeout(left_seconds)

    def _connect(self) -> http.client.HTTPConnection:
        address = self._address
        if address.tls is None:
            return http.client.HTTPConnection(address.host, address.port)
        return http.client.HTTPSConnection(address.host, address.port, context=address.tls)

    def _take(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()


def tell_error(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "its viewer did not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "its viewer is not there: connection refused"
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"its viewer cannot be reached: {clean_text(str(said), 200).lower()}"


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def render_span(span: TimeRange) -> dict[str, str]:
    return {"from": f"{span.from_ms / 1000:.3f}", "to": f"{span.to_ms / 1000:.3f}"}


def parse_metric(row: Mapping[str, Any]) -> MetricRow:
    return MetricRow(
        clean_text(str(row["name"])),
        clean_text(str(row.get("unit") or "")),
        str(row.get("kind") or "gauge"),
        clean_text(str(row.get("help") or "")),
        bool(row.get("plain")),
        clean_text(str(row.get("scope") or "")),
    )


def parse_life(row: Mapping[str, Any], node: str) -> ArchivedLife:
    service = row.get("name") if row.get("scope") == "service" else ""
    return ArchivedLife(
        str(row["id"]),
        node,
        clean_name(row.get("namespace")),
        clean_name(row.get("pod")),
        clean_name(row.get("container") or service),
        clean_name(row.get("qos_class")),
        round(row["first_seen"] * 1000),
        round(row["last_seen"] * 1000),
        clean_name(row.get("image")),
        int(row.get("restarts") or 0),
    )


def parse_event(row: Mapping[str, Any]) -> NodeEvent:
    return NodeEvent(round(row["at"] * 1000), clean_text(str(row["kind"]), 40), str(row["container"]))


def parse_level(series: Mapping[str, Any]) -> MetricLevel | None:
    """The buckets of a series (one, or the samples themselves of a short span) as one row."""
    means = [value for value in series.get("mean") or () if value is not None]
    lows = [value for value in series.get("min") or () if value is not None]
    highs = [value for value in series.get("max") or () if value is not None]
    samples = int(series.get("samples") or 0)
    if not means or not samples:
        return None
    return MetricLevel(str(series["id"]), sum(means) / len(means), min(lows), max(highs), samples)


# What of a thing's labels an answer shows: what it is, and what tells it apart.
THING_LABELS = ("uuid", "gpu_index", "name", "modelName", "vendor", "device", "pci_bus_id")


def parse_things(found: Mapping[str, Any], node: str) -> tuple[str, list[Thing]]:
    things = []
    for series in found["series"]:
        if level := parse_level(series):
            labels = series.get("labels") or {}
            kept = {key: clean_text(str(labels[key]), 120) for key in THING_LABELS if labels.get(key)}
            name = clean_name(series.get("name") or series["id"])
            things.append(Thing(name.removesuffix(f" on {node}"), level, kept))
    return clean_text(str(found.get("unit") or "")), things
