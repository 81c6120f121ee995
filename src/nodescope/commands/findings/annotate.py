"""nodescope annotate: a note at a moment of a node's data, such as "deployed 2.1 here"."""

import argparse
import json
import os
import sys
from pathlib import Path

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, RequestRejected
from nodescope.base.findings.annotation import Annotation, build_annotation
from nodescope.base.settings_load import choose_data, read_settings
from nodescope.base.text import clean_text
from nodescope.base.time_range import parse_moment, render_time
from nodescope.keep.annotation_file import add_annotation
from nodescope.serve.http_client import HttpClient, parse_endpoint

EXAMPLE = """example:
  nodescope annotate "deployed 2.1 here"
  nodescope annotate "load test begins" --at -10m
  nodescope annotate "deployed 2.1 here" --to http://HOST:8050 --token-file token
"""
ANSWER_SECONDS = 10.0
# A viewer's path first; an agent has the other.
TARGETS = ("/api/annotations", "/annotations")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("text", metavar="TEXT", help="one line, at most 200 characters")
    parser.add_argument("--at", metavar="T", help="ISO 8601, epoch seconds, or -15m; now unless given")
    parser.add_argument(
        "--to",
        metavar="PATH|URL",
        help="a data folder, a viewer or an agent; this machine's data folder unless given",
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the token of the viewer or agent")


def run(options: argparse.Namespace) -> int:
    now = SystemClock().wall_ns() / 1e9
    at = parse_moment(options.at, round(now * 1000)) / 1000 if options.at else None
    note = build_annotation(options.text, at, now)
    place = options.to or str(choose_data(read_settings({}, None, os.environ).settings, os.environ))
    if place.startswith(("http://", "https://")):
        send(place, options.token_file, note)
    else:
        write(Path(place), note)
    sys.stdout.write(f"noted at {render_time(note.at)}: {note.text}\n")
    return 0


def write(folder: Path, note: Annotation) -> None:
    if not folder.is_dir():
        raise RequestRejected(
            f"{folder} is no data folder; accepted: a data folder, or a viewer's or agent's URL"
        )
    try:
        add_annotation(folder, note)
    except OSError as error:
        raise RequestRejected(
            f"{folder}: {error.strerror}; a viewer or agent may write it: --to URL"
        ) from error


def send(address: str, token_file: Path | None, note: Annotation) -> None:
    headers = {"Content-Type": "application/json"}
    if token_file:
        try:
            headers["Authorization"] = f"Bearer {token_file.read_text().strip()}"
        except OSError as error:
            raise RequestRejected(f"--token-file {token_file}: {error.strerror}") from error
    client = HttpClient(parse_endpoint(address.rstrip("/")), ANSWER_SECONDS, 2**20)
    body = json.dumps({"text": note.text, "at": note.at}).encode()
    for target in TARGETS:
        answer = client.request("POST", target, headers, body)
        if answer.status not in (404, 405):
            break
    if answer.status != 200:
        raise HttpFailed(client.endpoint.render(), explain(answer.status, answer.body), answer.status)


def explain(status: int, body: bytes) -> str:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    detail = content.get("detail") if isinstance(content, dict) else None
    return clean_text(str(detail or f"it says {status}"), 300)
