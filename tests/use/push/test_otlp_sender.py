"""What a collector may answer, by a server on loopback that answers it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from tests.support import TurnableClock

from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.use.push.otlp_sender import LONGEST_PAUSE_SECONDS, OtlpSender, read_rejected
from nodescope.use.push.push_queue import PushQueue
from nodescope.use.push.request import Encoded

PARTIAL = ExportMetricsServiceResponse()
PARTIAL.partial_success.rejected_data_points = 3
PARTIAL.partial_success.error_message = "too old\x1b[0m"


@dataclass
class Collector:
    """Answers in turn; then 200."""

    answers: list[tuple[int, dict[str, str], bytes]]
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    address: str = ""


@contextmanager
def collecting(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[Collector]:
    collector = Collector(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            collector.headers.append(
                {name.lower(): value for name, value in self.headers.items()} | {"path": self.path}
            )
            status, headers, body = collector.answers.pop(0) if collector.answers else (200, {}, b"")
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    collector.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_sender(address: str, **more: Any) -> OtlpSender:
    client = HttpClient(parse_endpoint(address), 5, 2**16)
    return OtlpSender(
        PushQueue(2**20), client, TurnableClock(), chance=lambda: 1.0, path="/v1/metrics", **more
    )


def send(sender: OtlpSender) -> None:
    try:
        sender.deliver(Encoded(gzip.compress(b"body", mtime=0), 5, 0))
    finally:
        sender.client.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_later_means_again_with_the_same_bytes(status: int) -> None:
    with collecting((status, {}, b""), (status, {}, b"")) as collector:
        sender = make_sender(collector.address, headers=lambda: {"X-Key": "k"})
        send(sender)
    counters = sender.queue.counters
    assert (counters.sent, counters.retries, counters.lost.total()) == (5, 2, 0)
    assert [gzip.decompress(body) for body in collector.bodies] == [b"body"] * 3
    assert {one["path"] for one in collector.headers} == {"/v1/metrics"}
    assert collector.headers[0]["content-type"] == "application/x-protobuf"
    assert (collector.headers[0]["content-encoding"], collector.headers[0]["x-key"]) == ("gzip", "k")


def test_pauses_grow_up_to_a_bound_and_begin_anew() -> None:
    with collecting(*[(503, {}, b"")] * 9) as collector:
        sender = make_sender(collector.address)
        request = Encoded(b"", 1, 0)
        pauses = [sender.try_once(request) for _ in range(10)]
        assert pauses == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE_SECONDS, 60, 60, None]
        collector.answers.append((503, {}, b""))
        assert sender.try_once(request) == 1
        sender.client.close()


def test_the_collector_may_ask_for_time() -> None:
    with collecting(
        (429, {"Retry-After": "77"}, b""), (429, {"Retry-After": "Wed, 21 Oct 2030 07:28:00 GMT"}, b"")
    ) as collector:
        sender = make_sender(collector.address)
        assert [sender.try_once(Encoded(b"", 1, 0)) for _ in range(2)] == [77, 2]
        sender.client.close()


def test_a_refusal_is_counted_and_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    with collecting(
        (400, {}, b"no such \x1b[31mtenant"), (301, {"Location": "http://other.invalid/"}, b"")
    ) as collector:
        sender = make_sender(collector.address)
        send(sender)
        send(sender)
    assert len(collector.bodies) == 2
    assert sender.queue.counters.lost == {"refused": 10}
    assert sender.queue.counters.sent == 0
    assert "\x1b" not in caplog.text


def test_what_was_taken_in_part_is_counted_apart() -> None:
    with collecting((200, {}, PARTIAL.SerializeToString())) as collector:
        sender = make_sender(collector.address)
        send(sender)
    assert (sender.queue.counters.sent, sender.queue.counters.lost) == (2, {"rejected": 3})


@pytest.mark.parametrize("body", [b"<html>", b"\x0a\xff", b"\x08", b"\x0f", PARTIAL.SerializeToString()[:-2]])
def test_an_answer_that_is_none_rejects_nothing(body: bytes) -> None:
    assert read_rejected(body) == (0, "")


def test_what_is_under_way_at_the_end_is_back_in_the_queue() -> None:
    sender = make_sender("http://127.0.0.1:1")
    request = Encoded(b"x", 5, 0)
    sender.queue.put(request)

    def stop_after_one() -> dict[str, str]:
        sender.stop()
        return {}

    sender.headers = stop_after_one
    sender.run()
    assert sender.queue.drain("stopped") == 5
    assert sender.queue.counters.sent == 0
