"""nodescope top: a live table of containers in the terminal."""

import argparse
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, NodescopeError, RequestRejected
from nodescope.base.quantity import parse_seconds, render_count, render_seconds
from nodescope.base.settings_load import choose_data, read_settings
from nodescope.base.text import clean_text
from nodescope.base.time_range import render_moment
from nodescope.commands.text.top_table import FIGURES, TopRow, render_rows
from nodescope.serve.http_client import HttpClient, parse_endpoint

if TYPE_CHECKING:
    from nodescope.use.answers.container_table import ContainerTable

EXAMPLE = """example:
  nodescope top
  nodescope top http://127.0.0.1:9100 --sort memory
  nodescope top demo --once --json
  nodescope top demo --by-workload --sort memory --range 1h
"""
AGENT = "http://127.0.0.1:9100"
SECONDS = 2.0
# A viewer that rested loads what answers first; a busy machine takes its time.
ANSWER_SECONDS = 15.0
ANSWER_BYTES = 64 * 2**20
ROWS = 500
SORTS = tuple(metric for _, metric, _ in FIGURES)
# A screen that is drawn over: cursor home, and what is left of the old one cleared.
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"

Ask = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class TopLook:
    """One look at a place: its containers by a metric, and how old the newest sample is."""

    read: "Callable[[str], ContainerTable | None]"
    """None where the place does not have the metric."""
    read_workloads: Callable[[str, str], list[dict[str, Any]]]
    """By a metric and the length of a range, the largest first."""
    newest_ms: int | None = None
    now_ms: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "place",
        nargs="?",
        metavar="PATH|URL",
        help="a data folder, an agent, or a viewer; this machine's agent unless given, else its data folder",
    )
    parser.add_argument("--sort", choices=SORTS, default="cpu", help="cpu unless given")
    parser.add_argument(
        "--interval", type=float, default=SECONDS, metavar="S", help="seconds; 2 unless given"
    )
    parser.add_argument("--once", action="store_true", help="one table, then exit; also when piped")
    parser.add_argument(
        "--by-workload", action="store_true", help="one line a workload: what all its pods used over --range"
    )
    parser.add_argument("--range", default="1h", metavar="R", help="of --by-workload; 15m, 1h, 1d, ...")
    parser.add_argument("--json", action="store_true", help="one table as JSON, for scripts")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the token of the agent or viewer")


def run(options: argparse.Namespace) -> int:
    if not 0.5 <= options.interval <= 3600:
        raise RequestRejected(f"--interval {options.interval:g} is not accepted; accepted: 0.5 to 3600")
    try:
        token = options.token_file.read_text().strip() if options.token_file else ""
    except OSError as error:
        raise RequestRejected(f"--token-file {options.token_file}: {error.strerror}") from error
    look = choose_place(options.place, token)
    if options.by_workload:
        sys.stdout.write(render_workloads(look().read_workloads(options.sort, options.range), options))
        return 0
    if options.json:
        sys.stdout.write(json.dumps(to_json(look(), options.sort), ensure_ascii=False, indent=1) + "\n")
        return 0
    if options.once or not sys.stdout.isatty():
        sys.stdout.write(render(look(), options.sort, None))
        return 0
    return repeat(look, options)


def repeat(look: Callable[[], TopLook], options: argparse.Namespace) -> int:
    """Until Ctrl-C; a place that does not answer for a moment is said on the screen."""
    clock, stop = SystemClock(), threading.Event()
    while True:
        try:
            text = render(look(), options.sort, shutil.get_terminal_size())
        except NodescopeError as error:
            text = f"{error}\n"
        lines = [line + CLEAR_LINE for line in text.splitlines()]
        sys.stdout.write(HOME + "\n".join(lines) + "\n" + CLEAR_REST)
        sys.stdout.flush()
        clock.wait_until(clock.mono_ns() + round(options.interval * 1e9), stop)


# -- where it comes from ------------------------------------------------------------


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
    from nodescope.use.answers.wire import parse_containers

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

    if ask("/api/health") is None:
        raise RequestRejected(f"{address} does not answer")
    return TopLook(read, read_workloads)


def local(paths: list[Path], agent: str, token: str) -> Callable[[], TopLook]:
    """Over files or an agent's ring."""
    from nodescope.base.time_range import TimeRange
    from nodescope.read.live.follow import AgentFeed
    from nodescope.use.answers.container_table import Filter, list_containers
    from nodescope.use.answers.ranked.workload_ranking import rank_workloads
    from nodescope.use.answers.refusal import Refused
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.answers.wire import render_workload

    folders = NodeFolders(paths, SystemClock(), AgentFeed(agent, token) if agent else None)

    def look() -> TopLook:
        view = folders.view()
        newest_ms = view.snapshot.to_ms
        if newest_ms is None:
            reason = folders.agent.reason if folders.agent else ""
            raise RequestRejected(reason or "there is no data here yet")
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

        return TopLook(read, read_workloads, newest_ms, view.snapshot.now_ms)

    return look


# -- the table ----------------------------------------------------------------------


def gather(look: TopLook, sort: str) -> list[TopRow]:
    """One row a container with its newest values, the highest first; what was not measured is None."""
    rows: dict[str, TopRow] = {}
    for _, metric, _ in FIGURES:
        table = look.read(metric)
        for one in table.rows if table else ():
            row = rows.setdefault(one.life.id, TopRow(one, {}))
            row.values[metric] = one.figure.last if one.figure else None
    return sorted(rows.values(), key=lambda row: (-(row.values.get(sort) or 0.0), row.life.name))


def render(look: TopLook, sort: str, screen: os.terminal_size | None) -> str:
    """On a terminal running containers, as many as there is room for; when piped, also ended ones."""
    rows = gather(look, sort)
    nodes = sorted({clean_text(row.life.node) for row in rows})
    listed = [row for row in rows if row.state == "running" or screen is None]
    title = f"{', '.join(nodes) or 'nobody'}: {render_count(len(listed), 'container')} by {sort}{render_age(look)}"
    if screen is None:
        return f"{title}\n{render_rows(listed, sort, None)}"
    shown = listed[: max(1, screen.lines - 3)]
    return f"{title[: screen.columns]}\n{render_rows(shown, sort, screen.columns)}"


def render_workloads(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """As sentences: the same ones that the viewer and the MCP server have."""
    if options.json:
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    lines = [f"{place}. {clean_text(str(row['sentence']), 500)}\n" for place, row in enumerate(rows, 1)]
    return "".join(lines) or f"no workload had a sample of {options.sort} in the last {options.range}\n"


def parse_length(text: str) -> int:
    try:
        return round(parse_seconds(text) * 1000)
    except (ValueError, OverflowError):
        raise RequestRejected(
            f"--range {clean_text(text, 40)} is not accepted; accepted: 15m, 1h, 1d"
        ) from None


def render_age(look: TopLook) -> str:
    if look.newest_ms is None:
        return ""
    age = (look.now_ms - look.newest_ms) / 1000
    return f", {render_seconds(age)} ago" if age > 3 else f", {render_moment(look.newest_ms)}"


def to_json(look: TopLook, sort: str) -> list[dict[str, Any]]:
    from nodescope.use.answers.wire import render_container

    kept = ("id", "name", "namespace", "pod", "container", "node", "qos_class", "state")
    rows = [(render_container(row.container), row.values) for row in gather(look, sort)]
    return [{**{key: content[key] for key in kept}, **values} for content, values in rows]
