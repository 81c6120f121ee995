"""nodescope watch: what is wrong on a node, in the terminal, as it happens."""

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, NodescopeError, RequestRejected
from nodescope.base.findings import NodeFinding, describe_health, parse_finding, rank_findings
from nodescope.base.quantity import render_seconds
from nodescope.base.text import clean_text
from nodescope.base.time_range import render_time_of_day
from nodescope.keep.disk import read_json
from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.watch.finding_store import FILE_NAME

EXAMPLE = """example:
  nodescope watch
  nodescope watch http://127.0.0.1:9100 --once
  nodescope watch ~/.local/state/nodescope --json
  nodescope watch --not-a-problem 4f2a90c1d3
"""
AGENT = "http://127.0.0.1:9100"
ANSWER_SECONDS = 5.0
ANSWER_BYTES = 4 * 2**20
SECONDS = 5.0
# A screen that is drawn over: cursor home, and what is left of the old one cleared.
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
RESOLVED_SHOWN = 5

Ask = Callable[[], dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "place",
        nargs="?",
        metavar="PATH|URL",
        help="an agent or a data folder; this machine's agent unless given",
    )
    parser.add_argument("--once", action="store_true", help="one answer, then exit; also when piped")
    parser.add_argument("--json", action="store_true", help="one answer as JSON, for scripts")
    parser.add_argument(
        "--interval", type=float, default=SECONDS, metavar="S", help="seconds; 5 unless given"
    )
    parser.add_argument(
        "--not-a-problem", metavar="ID", help="keep this finding, and its like, from paging anybody"
    )
    parser.add_argument("--a-problem", metavar="ID", help="take that back")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the token of the agent")


def run(options: argparse.Namespace) -> int:
    if not 0.5 <= options.interval <= 3600:
        raise RequestRejected(f"--interval {options.interval:g} is not accepted; accepted: 0.5 to 3600")
    said = [(options.not_a_problem, "not_a_problem"), (options.a_problem, "a_problem")]
    for identity, verdict in said:
        if identity:
            return judge(options, identity, verdict)
    ask = choose_place(options)
    if options.json:
        sys.stdout.write(json.dumps(ask(), ensure_ascii=False, indent=1) + "\n")
        return 0
    if options.once or not sys.stdout.isatty():
        sys.stdout.write(render(ask()))
        return 0
    return repeat(ask, options.interval)


def repeat(ask: Ask, interval_seconds: float) -> int:
    """Until Ctrl-C; an agent that does not answer for a moment is said on the screen."""
    clock, stop = SystemClock(), threading.Event()
    while True:
        try:
            text = render(ask())
        except NodescopeError as error:
            text = f"{error}\n"
        lines = [line + CLEAR_LINE for line in text.splitlines()]
        sys.stdout.write(HOME + "\n".join(lines) + "\n" + CLEAR_REST)
        sys.stdout.flush()
        clock.wait_until(clock.mono_ns() + round(interval_seconds * 1e9), stop)


# -- where it comes from ------------------------------------------------------------


def choose_place(options: argparse.Namespace) -> Ask:
    place = options.place or AGENT
    if place.startswith(("http://", "https://")):
        client, headers = open_client(place), read_token(options.token_file)
        return lambda: ask_agent(client, headers)
    return lambda: read_folder(Path(place))


def open_client(address: str) -> HttpClient:
    return HttpClient(parse_endpoint(address.rstrip("/")), ANSWER_SECONDS, ANSWER_BYTES)


def read_token(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return {"Authorization": f"Bearer {path.read_text().strip()}"}
    except OSError as error:
        raise RequestRejected(f"--token-file {path}: {error.strerror}") from error


def ask_agent(client: HttpClient, headers: dict[str, str]) -> dict[str, Any]:
    return read_answer(client, *request(client, "GET", headers, None))


def request(
    client: HttpClient, method: str, headers: dict[str, str], body: bytes | None
) -> tuple[int, bytes]:
    answer = client.request(method, "/findings", headers, body)
    return answer.status, answer.body


def read_answer(client: HttpClient, status: int, body: bytes) -> dict[str, Any]:
    """What the agent said; its own words where it refused."""
    address = client.endpoint.render()
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpFailed(address, f"it says {status}, and no JSON", status) from error
    if not isinstance(content, dict):
        raise HttpFailed(address, f"it says {status}, and no object", status)
    if status != 200:
        raise HttpFailed(address, clean_text(str(content.get("detail") or f"it says {status}")), status)
    return content


def read_folder(folder: Path) -> dict[str, Any]:
    """What the agent of a data folder found last; it may no longer run."""
    content = read_json(folder / FILE_NAME)
    if not isinstance(content.get("findings"), list):
        raise RequestRejected(
            f"{folder} has no {FILE_NAME}; accepted: a data folder whose agent ran with its watcher, or an agent's URL"
        )
    findings = parse_rows(content)
    node = clean_text(str(content.get("node", "")))
    rows = [one.to_json() for one in rank_findings(findings)]
    return {"node": node, "sentence": describe_health(findings, node), "findings": rows}


def judge(options: argparse.Namespace, identity: str, verdict: str) -> int:
    place = options.place or AGENT
    if not place.startswith(("http://", "https://")):
        raise RequestRejected(f"a verdict goes to an agent, not to {place}; accepted: its URL")
    client = open_client(place)
    body = json.dumps({"id": identity, "verdict": verdict}).encode()
    headers = {**read_token(options.token_file), "Content-Type": "application/json"}
    content = read_answer(client, *request(client, "POST", headers, body))
    who = parse_finding(content)
    name = clean_text(who.who) if who else identity
    sys.stdout.write(f"kept: {verdict.replace('_', ' ')}, {content.get('kind', '')} of {name}\n")
    return 0


# -- how it reads -------------------------------------------------------------------


def parse_rows(content: dict[str, Any]) -> list[NodeFinding]:
    rows = content.get("findings")
    found = [parse_finding(row) for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)]
    return [one for one in found if one is not None]


def render(content: dict[str, Any]) -> str:
    """The one line first, then what is told, then what is suspected, then what is over."""
    findings = rank_findings(parse_rows(content))
    lines = [clean_text(str(content.get("sentence", ""))), ""]
    lines += render_part("", [one for one in findings if one.is_confirmed])
    lines += render_part("suspected, nobody was told:", [one for one in findings if one.state == "born"])
    over = [one for one in findings if not one.is_open and one.confirmed is not None]
    lines += render_part("over:", over[:RESOLVED_SHOWN])
    return "\n".join(lines).rstrip() + "\n"


def render_part(title: str, findings: Sequence[NodeFinding]) -> Iterator[str]:
    if not findings:
        return
    if title:
        yield title
    for one in findings:
        yield from render_finding(one)
    yield ""


def render_finding(one: NodeFinding) -> Iterator[str]:
    left = one.time_to_limit_seconds
    limit = f"  limit in {render_seconds(left)}" if left is not None else ""
    said = "  (not a problem)" if one.feedback else ""
    since = render_time_of_day(one.onset)
    yield f"{one.severity:8} {one.kind:16} {clean_text(one.who)}  since {since}{limit}  [{one.id}]{said}"
    yield f"         {clean_text(one.sentence, 600)}"
    if one.is_confirmed and one.advice:
        yield f"         look at: {clean_text(one.advice, 300)}"
