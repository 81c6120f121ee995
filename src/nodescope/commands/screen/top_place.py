"""Where `nodescope top` looks: a data folder, an agent, or a viewer."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, RequestRejected
from nodescope.base.quantity import parse_seconds
from nodescope.base.settings_load import choose_data, read_settings
from nodescope.base.text import clean_text
from nodescope.serve.http_client import HttpClient, parse_endpoint

if TYPE_CHECKING:
    from nodescope.use.answers.container_table import ContainerRow, ContainerTable
    from nodescope.use.answers.timeseries import Timeseries

AGENT = "http://127.0.0.1:9100"
# A viewer that rested loads what answers first; a busy machine takes its time.
ANSWER_SECONDS = 15.0
ANSWER_BYTES = 64 * 2**20
ROWS = 500
# As many as a viewer lists at once.
CONTAINERS_MOST = 1000

Ask = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class TopLook:
    """One look at a place: its containers by a metric, and how old the newest sample is."""

    read: "Callable[[str], ContainerTable | None]"
    """None where the place does not have the metric."""
    read_workloads: Callable[[str, str], list[dict[str, Any]]]
    """By a metric and the length of a range, the largest first."""
    read_containers: "Callable[[], tuple[ContainerRow, ...]]"
    """Every container over all its lives, with restarts and kills over all that was recorded; no figures."""
    read_curve: "Callable[[str, str, int, int], Timeseries | None]"
    """By metric, a life's id, seconds and points: of all lives of that container; None where it is not measured."""
    newest_ms: int | None = None
    now_ms: int = 0


def choose_place(place: str | None, token: str) -> Callable[[], TopLook]:
    """What is called for every look."""
    if place and place.startswith(("http://", "https://")):
        address = place.rstrip("/")
        ask = partial(read_body, open_client(address), token)
        return partial(remote, address, ask) if is_viewer(ask) else local([], address, token)
    if place:
        return local([Path(place)], "", token)
    if read_body(open_client(AGENT), token, "/healthz") is not None:
        return local([], AGENT, token)
    data = choose_data(read_settings({}, None, os.environ).settings, os.environ)
    if not data.exists():
        raise RequestRejected(
            f"no agent answers at {AGENT}, and there is no {data}; start one with: nodescope up"
        )
    return local([data], "", token)


def open_client(address: str) -> HttpClient:
    return HttpClient(parse_endpoint(address), ANSWER_SECONDS, ANSWER_BYTES)


def read_body(client: HttpClient, token: str, target: str) -> bytes | None:
    """None when it was refused, or nobody answered."""
    try:
        return client.read(target, {"Authorization": f"Bearer {token}"} if token else {}).body
    except HttpFailed:
        return None


def is_viewer(ask: Ask) -> bool:
    found = ask("/api/health")
    return found is not None and b'"status"' in found


def remote(address: str, ask: Ask) -> TopLook:
    from nodescope.use.answers.wire import TIMESERIES, parse_containers

    def read(metric: str) -> "ContainerTable | None":
        query = urlencode({"metric": metric, "range": "15s", "limit": ROWS})
        body = ask(f"/api/containers?{query}")
        # Without an answer it lacks the metric: that it is there was seen before.
        return None if body is None else parse_containers(json.loads(body))

    def read_workloads(metric: str, length: str) -> list[dict[str, Any]]:
        body = ask(f"/api/workloads?{urlencode({'metric': metric, 'range': length, 'limit': ROWS})}")
        if body is None:
            raise RequestRejected(
                f"{address} has no answer for {metric} over {length}; it may be an older viewer"
            )
        return list(json.loads(body)["workloads"])

    def read_containers() -> "tuple[ContainerRow, ...]":
        query = {"metric": "none", "lives": "joined", "range": "all", "limit": CONTAINERS_MOST}
        body = ask(f"/api/containers?{urlencode(query)}")
        return parse_containers(json.loads(body)).rows if body else ()

    def read_curve(metric: str, life: str, seconds: int, points: int) -> "Timeseries | None":
        query = {"metric": metric, "containers": life, "lives": "joined", "max_points": points}
        body = ask(f"/api/timeseries?{urlencode({**query, 'range': f'{seconds}s'})}")
        return TIMESERIES.parse(json.loads(body)) if body else None

    if ask("/api/health") is None:
        raise RequestRejected(f"{address} does not answer")
    return TopLook(read, read_workloads, read_containers, read_curve)


def local(paths: list[Path], agent: str, token: str) -> Callable[[], TopLook]:
    """Over files or an agent's ring."""
    from nodescope.base.time_range import TimeRange
    from nodescope.read.live.follow import AgentFeed
    from nodescope.use.answers.container_table import NO_METRIC, Filter, list_containers
    from nodescope.use.answers.over_lives.table import list_whole_containers
    from nodescope.use.answers.ranked.workload_ranking import rank_workloads
    from nodescope.use.answers.refusal import Refused
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.answers.timeseries import TimeseriesRequest, read_timeseries
    from nodescope.use.answers.wire import render_workload

    folders = NodeFolders(paths, SystemClock(), AgentFeed(agent, token) if agent else None)

    def look() -> TopLook:
        view = folders.view()
        newest_ms = view.snapshot.to_ms
        if newest_ms is None:
            reason = folders.agent.reason if folders.agent else ""
            raise RequestRejected(reason or f"there is no data in {', '.join(map(str, paths))} yet")
        span = TimeRange(newest_ms - 15_000, newest_ms)

        def read(metric: str) -> "ContainerTable | None":
            try:
                return list_containers(view, metric, span, Filter(), "value", ROWS)
            except Refused:
                return None

        def read_workloads(metric: str, length: str) -> list[dict[str, Any]]:
            oldest_ms = view.snapshot.from_ms or 0
            over = TimeRange(max(oldest_ms, newest_ms - parse_length(length)), newest_ms)
            rows = rank_workloads(folders, view, metric, over)[:ROWS]
            return [render_workload(row) for row in rows]

        def read_containers() -> "tuple[ContainerRow, ...]":
            oldest = TimeRange(view.snapshot.from_ms or 0, newest_ms)
            return list_whole_containers(view, NO_METRIC, oldest, Filter(), "name", CONTAINERS_MOST).rows

        def read_curve(metric: str, life: str, seconds: int, points: int) -> "Timeseries | None":
            lives = tuple(one for one in view.lives() if one.id == life)
            over = TimeRange(newest_ms - 1000 * seconds, newest_ms)
            try:
                return read_timeseries(
                    view, TimeseriesRequest(metric, over, points, lives=lives, is_whole=True)
                )
            except Refused:
                return None

        now_ms = view.snapshot.now_ms
        return TopLook(read, read_workloads, read_containers, read_curve, newest_ms, now_ms)

    return look


def parse_length(text: str) -> int:
    try:
        return round(parse_seconds(text) * 1000)
    except (ValueError, OverflowError):
        raise RequestRejected(
            f"--range {clean_text(text, 40)} is not accepted; accepted: 15m, 1h, 1d"
        ) from None
