"""nodescope push: what an agent measures, sent to an OpenTelemetry collector (OTLP)."""

import argparse
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from urllib.parse import urlsplit

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, SettingsRejected
from nodescope.base.log import Log, set_up_logging
from nodescope.base.quantity import parse_bytes, parse_seconds
from nodescope.commands.shared.options import read_quantity
from nodescope.serve.http_client import Endpoint, HttpClient, parse_endpoint
from nodescope.use.push.agent_frames import AgentFrames
from nodescope.use.push.otlp_sender import OtlpSender
from nodescope.use.push.push_queue import PushCounters, PushQueue
from nodescope.use.push.pusher import Pusher
from nodescope.use.push.request import RequestEncoder
from nodescope.use.push.resource import describe_node

EXAMPLE = """example:
  nodescope push --to http://collector:4318
  nodescope push --to https://otlp.example.com/v1/metrics --headers-file /etc/nodescope/otlp-headers --every 30s
"""
AGENT = "http://127.0.0.1:9100"
METRICS_PATH = "/v1/metrics"
# Where a collector listens for OTLP over HTTP.
OTLP_PORT = 4318
ANSWER_SECONDS = 20.0
CONNECT_SECONDS = 5.0
# /live sends a MiB at once, and a frame more; a collector's answer is a line.
LIVE_BYTES = 64 * 2**20
ANSWER_BYTES = 2**20
# At the end what waits is still sent, for so long.
LAST_SECONDS = 5.0
EVERY = "a duration of 1s to 1h, such as 10s"
QUEUE = "a size of at least 1MiB, such as 64MiB"
log = Log("push")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help=f"the collector: http://HOST:{OTLP_PORT}; without a path, {METRICS_PATH} is added",
    )
    parser.add_argument("--agent", default=AGENT, metavar="URL", help=f"the agent; {AGENT} unless given")
    parser.add_argument("--agent-token-file", type=Path, metavar="FILE", help="the agent's token")
    parser.add_argument("--agent-ca", type=Path, metavar="FILE", help="who signed the agent's certificate")
    parser.add_argument(
        "--headers-file",
        type=Path,
        metavar="FILE",
        help="lines such as `Authorization: Bearer ...` that are sent along; read again for every request",
    )
    parser.add_argument("--ca", type=Path, metavar="FILE", help="who signed the collector's certificate")
    parser.add_argument("--every", default="10s", metavar="DURATION", help="how often; 10s unless given")
    parser.add_argument(
        "--queue",
        default="64MiB",
        metavar="SIZE",
        help="what may wait while the collector is away; 64MiB unless given, the oldest leaves first",
    )
    parser.add_argument(
        "--names",
        choices=("all", "conventions"),
        default="all",
        help="conventions leaves out what OpenTelemetry's conventions do not name; all unless given",
    )
    parser.add_argument("--cluster", default="", metavar="NAME", help="k8s.cluster.name of what is pushed")
    parser.add_argument(
        "--once",
        action="store_true",
        help="what the agent has read last, then exit; fails when it is not taken",
    )


def run(options: argparse.Namespace) -> int:
    set_up_logging("info")
    queue = PushQueue(int(read_bounded(options, "queue", parse_bytes, 2**20, float("inf"), QUEUE)))
    every = read_bounded(options, "every", parse_seconds, 1.0, 3600.0, EVERY)
    sender = make_sender(options, queue)
    pusher = make_pusher(options, queue, every)
    return push_once(pusher, sender) if options.once else push_on(pusher, sender)


def read_bounded(
    options: argparse.Namespace,
    name: str,
    parse: Callable[[str], float],
    least: float,
    most: float,
    accepted: str,
) -> float:
    value = read_quantity(options, name, parse, accepted)
    if not least <= value <= most:
        raise SettingsRejected(f"--{name} {getattr(options, name)} is not accepted; accepted: {accepted}")
    return value


def make_sender(options: argparse.Namespace, queue: PushQueue) -> OtlpSender:
    endpoint = find_endpoint(options.to, "--to", options.ca, OTLP_PORT)
    path = "" if endpoint.path else METRICS_PATH
    client = HttpClient(endpoint, ANSWER_SECONDS, ANSWER_BYTES, CONNECT_SECONDS)
    headers = read_headers(options.headers_file) if options.headers_file else dict
    # A wrong file is told at the start.
    headers()
    return OtlpSender(queue, client, SystemClock(), headers, path=path)


def make_pusher(options: argparse.Namespace, queue: PushQueue, every: float) -> Pusher:
    endpoint = find_endpoint(options.agent, "--agent", options.agent_ca, 9100)
    token = read_file(options.agent_token_file, "--agent-token-file").strip()
    frames = AgentFrames(HttpClient(endpoint, ANSWER_SECONDS, LIVE_BYTES, CONNECT_SECONDS), token)

    def make_encoder(node: str) -> RequestEncoder:
        return RequestEncoder(describe_node(node, options.cluster), options.names == "conventions")

    return Pusher(frames, queue, make_encoder, SystemClock(), every)


def find_endpoint(url: str, option: str, ca: Path | None, port: int) -> Endpoint:
    try:
        tls = ssl.create_default_context(cafile=str(ca)) if ca else None
        endpoint = parse_endpoint(url, tls, port if urlsplit(url).scheme == "http" else 0)
    except (OSError, ValueError, HttpFailed) as error:
        raise SettingsRejected(f"{option}: {getattr(error, 'strerror', None) or error}") from error
    if urlsplit(url).query or urlsplit(url).username:
        raise SettingsRejected(
            f"{option} is not accepted with a query or a user; accepted: http://HOST:PORT or https://HOST:PORT, "
            "secrets in --headers-file"
        )
    return endpoint


def read_file(path: Path | None, option: str) -> str:
    try:
        return path.read_text() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsRejected(f"{option} {path}: {getattr(error, 'strerror', None) or error}") from error


def read_headers(path: Path) -> Callable[[], Mapping[str, str]]:
    """Reads the file for every request; while it is replaced, the last content holds."""
    known: dict[str, str] = {}

    def read() -> Mapping[str, str]:
        try:
            fresh = parse_headers(read_file(path, "--headers-file"))
        except SettingsRejected as error:
            if not known:
                raise
            log.warning("the headers are not read; the last ones hold", error=str(error))
            return known
        known.clear()
        known.update(fresh)
        return known

    return read


def parse_headers(text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip().replace("-", "").replace("_", "").isalnum():
            # The line may hold the secret: it is not repeated.
            raise SettingsRejected(f"--headers-file: line {number} is not accepted; accepted: Name: value")
        found[name.strip()] = value.strip()
    if not found:
        raise SettingsRejected("--headers-file: the file is empty; accepted: lines such as Name: value")
    return found


def push_once(pusher: Pusher, sender: OtlpSender) -> int:
    pusher.read()
    if pusher.reason:
        raise HttpFailed(pusher.frames.client.endpoint.render(), pusher.reason)
    pusher.push()
    while request := sender.queue.take(0.0):
        if sender.try_once(request) is not None or sender.reason:
            raise HttpFailed(sender.client.endpoint.render(), sender.reason)
    sys.stdout.write(f"{describe(sender.queue.counters)}\n")
    return 0


def push_on(pusher: Pusher, sender: OtlpSender) -> int:
    """Until a signal ends it."""
    with listen_for_end() as stop:
        thread = threading.Thread(target=sender.run, name="push", daemon=True)
        thread.start()
        log.info(
            "pushing",
            agent=pusher.frames.client.endpoint.render(),
            to=sender.client.endpoint.render(),
            every_seconds=pusher.interval_seconds,
        )
        pusher.run(stop)
        empty_queue(sender, thread)
    sys.stdout.write(f"{describe(sender.queue.counters)}\n")
    return 0


def empty_queue(sender: OtlpSender, thread: threading.Thread) -> None:
    """What waits is sent if it can be within a moment; the rest is lost, and said."""
    sender.queue.close()
    thread.join(LAST_SECONDS)
    sender.stop()
    thread.join(LAST_SECONDS)
    if lost := sender.queue.drain("stopped"):
        log.warning("ended before these points were taken", points=lost)


@contextmanager
def listen_for_end() -> Iterator[threading.Event]:
    stop = threading.Event()
    earlier = [(number, signal(number, lambda *_: stop.set())) for number in (SIGINT, SIGTERM)]
    try:
        yield stop
    finally:
        for number, handler in earlier:
            signal(number, handler)


def describe(counters: PushCounters) -> str:
    words = [f"{counters.sent:,} points sent in {counters.requests:,} requests"]
    words += [
        f"{points:,} lost ({reason.replace('_', ' ')})" for reason, points in counters.lost.items() if points
    ]
    if counters.missed_ticks:
        words.append(f"{counters.missed_ticks:,} ticks of the agent missed")
    return "; ".join(words)
