"""nodescope watch: what is wrong on a node, in the terminal, as it happens."""

import argparse
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, NodescopeError, RequestRejected
from nodescope.base.findings import NodeFinding, describe_health, parse_finding, rank_findings
from nodescope.base.quantity import parse_seconds, render_seconds
from nodescope.base.text import clean_text
from nodescope.base.time_range import render_time, render_time_of_day
from nodescope.commands.shared.options import add_interval, read_interval
from nodescope.commands.text.terminal import wrap_words
from nodescope.keep.disk import read_json
from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.watch.finding_store import FILE_NAME
from nodescope.watch.silence import LABELS

EXAMPLE = """example:
  nodescope watch
  nodescope watch http://127.0.0.1:9100 --once
  nodescope watch ~/.local/state/nodescope --json
  nodescope watch --not-a-problem 4f2a90c1d3
  nodescope watch silence workload=catalog kind=memory_leak --for 2h --comment "load test"
  nodescope watch silences
  nodescope watch end-silence 7d0c11aa
"""
# Words in the place of a path: what is done about silences.
SILENCE, SILENCES, END_SILENCE = "silence", "silences", "end-silence"
AGENT = "http://127.0.0.1:9100"
ANSWER_SECONDS = 5.0
ANSWER_BYTES = 4 * 2**20
# A screen that is drawn over: cursor home, and what is left of the old one cleared.
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
RESOLVED_SHOWN = 5
INDENT = " " * 9

Ask = Callable[[], dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH|URL",
        help="an agent or a data folder, this machine's agent unless given; "
        f"or {SILENCE} LABEL=VALUE..., {SILENCES}, {END_SILENCE} ID",
    )
    parser.add_argument("--agent", metavar="URL", help=f"whose silences; {AGENT} unless given")
    parser.add_argument(
        "--for", dest="length", metavar="T", help="how long a silence holds, such as 2h or 3d"
    )
    parser.add_argument("--comment", default="", metavar="TEXT", help="why; shown with the silence")
    parser.add_argument("--once", action="store_true", help="one answer, then exit; also when piped")
    parser.add_argument("--json", action="store_true", help="one answer as JSON, for scripts")
    add_interval(parser, "5s")
    parser.add_argument(
        "--not-a-problem", metavar="ID", help="keep this finding, and its like, from paging anybody"
    )
    parser.add_argument("--a-problem", metavar="ID", help="take that back")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the token of the agent")


def run(options: argparse.Namespace) -> int:
    interval_seconds = read_interval(options)
    verb = options.words[0] if options.words else ""
    if verb in (SILENCE, SILENCES, END_SILENCE):
        return tend_silences(options, verb, options.words[1:])
    if len(options.words) > 1:
        raise RequestRejected(f"one agent or data folder at a time, not {len(options.words)}")
    said = [(options.not_a_problem, "not_a_problem"), (options.a_problem, "a_problem")]
    for identity, verdict in said:
        if identity:
            return judge(options, identity, verdict)
    ask = choose_place(options)
    if options.json:
        sys.stdout.write(json.dumps(ask(), ensure_ascii=False, indent=1) + "\n")
        return 0
    if options.once or not sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write("\n".join(render(ask(), columns)) + "\n")
        return 0
    return repeat(ask, interval_seconds)


def repeat(ask: Ask, interval_seconds: float) -> int:
    """Until Ctrl-C; an agent that does not answer for a moment is said on the screen."""
    clock, stop = SystemClock(), threading.Event()
    while True:
        columns, rows = shutil.get_terminal_size()
        try:
            text = render(ask(), columns)
        except NodescopeError as error:
            text = wrap_words(str(error), columns)
        lines = [line + CLEAR_LINE for line in fit(text, rows - 1)]
        sys.stdout.write(HOME + "\n".join(lines) + "\n" + CLEAR_REST)
        sys.stdout.flush()
        clock.wait_until(clock.mono_ns() + round(interval_seconds * 1e9), stop)


# -- where it comes from ------------------------------------------------------------


def choose_place(options: argparse.Namespace) -> Ask:
    place = find_place(options)
    if place.startswith(("http://", "https://")):
        client, headers = open_client(place), read_token(options.token_file)
        return lambda: ask_agent(client, headers)
    return lambda: read_folder(Path(place))


def find_place(options: argparse.Namespace) -> str:
    return str(options.words[0] if options.words else options.agent or AGENT)


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
    place = find_place(options)
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


def tend_silences(options: argparse.Namespace, verb: str, words: Sequence[str]) -> int:
    client = open_client(options.agent or AGENT)
    headers = {**read_token(options.token_file), "Content-Type": "application/json"}
    if verb == SILENCES:
        held = ask_agent(client, headers).get("silences")
        sys.stdout.write(
            "".join(map(render_silence, held if isinstance(held, list) else ())) or "no silence\n"
        )
        return 0
    body = json.dumps(build_request(options, verb, words)).encode()
    content = read_answer(client, *request(client, "POST", headers, body))
    sys.stdout.write(("ended: " if verb == END_SILENCE else "") + render_silence(content))
    return 0


def build_request(options: argparse.Namespace, verb: str, words: Sequence[str]) -> dict[str, Any]:
    if verb == END_SILENCE:
        if len(words) != 1:
            raise RequestRejected(
                f"{END_SILENCE} wants the id of one silence; nodescope watch {SILENCES} lists them"
            )
        return {"end_silence": words[0]}
    pairs = [word.partition("=") for word in words]
    if not pairs or not all(equals for _, equals, _ in pairs):
        raise RequestRejected(
            f"{SILENCE} wants LABEL=VALUE, such as workload=catalog; labels: {', '.join(LABELS)}"
        )
    if not options.length:
        raise RequestRejected("a silence wants an end: --for 2h")
    try:
        seconds = parse_seconds(options.length)
    except ValueError:
        raise RequestRejected(f"--for {options.length} is not accepted; accepted: 90m, 2h, 3d") from None
    labels = {name: value for name, _, value in pairs}
    return {"silence": {"labels": labels, "seconds": seconds, "comment": options.comment}}


def render_silence(one: dict[str, Any]) -> str:
    labels = one.get("labels")
    words = " ".join(f"{name}={value}" for name, value in labels.items()) if isinstance(labels, dict) else ""
    until = render_time(float(one.get("until", 0.0)))
    why = f"  ({clean_text(str(one['comment']))})" if one.get("comment") else ""
    return f"{clean_text(str(one.get('id', '')))}  {clean_text(words, 600)}  until {until}{why}\n"


# -- how it reads -------------------------------------------------------------------


def parse_rows(content: dict[str, Any]) -> list[NodeFinding]:
    rows = content.get("findings")
    found = [parse_finding(row) for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)]
    return [one for one in found if one is not None]


def render(content: dict[str, Any], columns: int | None = None) -> list[str]:
    """Lines: the one sentence first, then what is told, then what is suspected, then what is over."""
    findings = rank_findings(parse_rows(content))
    lines = [*wrap_words(clean_text(str(content.get("sentence", ""))), columns), ""]
    lines += render_part("", [one for one in findings if one.is_confirmed], columns)
    lines += render_part(
        "suspected, nobody was told:", [one for one in findings if one.state == "born"], columns
    )
    over = [one for one in findings if not one.is_open and one.confirmed is not None]
    lines += render_part("over:", over[:RESOLVED_SHOWN], columns)
    return lines[:-1]


def fit(lines: list[str], rows: int) -> list[str]:
    """What the screen has room for; the most urgent is first."""
    if len(lines) <= rows:
        return lines
    return [*lines[: rows - 1], f"... {len(lines) - rows + 1} more lines; --once shows all"]


def render_part(title: str, findings: Sequence[NodeFinding], columns: int | None) -> Iterator[str]:
    if not findings:
        return
    if title:
        yield title
    for one in findings:
        yield from render_finding(one, columns)
    yield ""


def render_finding(one: NodeFinding, columns: int | None) -> Iterator[str]:
    left = one.time_to_limit_seconds
    limit = f"  limit in {render_seconds(left)}" if left is not None else ""
    said = "  (not a problem)" if one.feedback else "  (silenced)" if one.silenced else ""
    since = render_time_of_day(one.onset)
    yield f"{one.severity:8} {one.kind:16} {clean_text(one.who)}  since {since}{limit}  [{one.id}]{said}"
    yield from wrap_words(INDENT + clean_text(one.sentence, 600), columns, INDENT)
    if one.is_confirmed and one.advice:
        yield f"{INDENT}look at: {clean_text(one.advice, 300)}"
