"""
The extender's memory while it lists the pods of a large cluster.

An API server is played over real HTTP: it serves pages of pods as large as real
ones (13 KB with managed fields and statuses), made when they are asked for.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlparse

from tests.cluster.control_plane import free_port, wait_for
from tests.cluster.programs import Extender, run_program

from bench.result import Goal, Options, Row

PODS = 50_000
POD_BYTES = 13_000
LIMIT_BYTES = 128 * 2**20
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
contexts: [{{name: x, context: {{cluster: x}}}}]
clusters: [{{name: x, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]
"""


def make_pod(number: int) -> dict[str, Any]:
    """Every tenth asks for an FPGA; what fills it is of no interest, as in real ones."""
    labels = {"app": "web"} if number % 10 else {"fpga-scheduling.io/enabled": "true"}
    about = {"name": f"web-{number}", "namespace": "default", "uid": f"uid-{number}", "labels": labels}
    fill = [{"manager": f"m{part}", "fieldsV1": {"f:x": "y" * 380}} for part in range(POD_BYTES // 440)]
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2023-07-22T04:24:10Z"}]
    return {
        "metadata": {**about, "managedFields": fill},
        "spec": {"nodeName": f"node-{number % 500}", "containers": [{"name": "a", "image": "b"}]},
        "status": {"phase": "Running", "conditions": conditions},
    }


def answer_pods(path: str, query: dict[str, list[str]], pods: int) -> dict[str, Any]:
    if not path.endswith("/pods"):
        return {"metadata": {"resourceVersion": "1"}, "items": []}
    start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
    end = min(pods, start + limit)
    more = {"continue": str(end)} if end < pods else {}
    items = [make_pod(number) for number in range(start, end)]
    return {"metadata": {"resourceVersion": "1", **more}, "items": items}


Answer = Callable[[str, dict[str, list[str]], int], dict[str, Any]]
"""By path, query and the number of pods."""


@contextmanager
def play_api_server(pods: int, answer: Answer = answer_pods) -> Iterator[int]:
    """Its port. Watches are held open and silent."""
    leave = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = urlparse(self.path)
            query = parse_qs(asked.query)
            self.send_response(200)
            if "watch" in query:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.flush()
                leave.wait()
                self.close_connection = True
                return
            body = json.dumps(answer(asked.path, query, pods)).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        leave.set()
        server.shutdown()
        server.server_close()


def read_peak_bytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmHWM"))


def measure(pods: int) -> tuple[int, float]:
    """The most that the extender held until its list was whole, and how many pods it counts then."""
    with TemporaryDirectory() as scratch, play_api_server(pods) as api:
        kubeconfig = Path(scratch, "kubeconfig")
        kubeconfig.write_text(KUBECONFIG.format(port=api))
        port = free_port()
        command = ["extender", "--kubeconfig", str(kubeconfig), "--port", str(port)]
        with run_program(command, Path(scratch, "log")) as process:
            extender = Extender(f"http://127.0.0.1:{port}", process)
            wait_for("the list is whole", extender.is_ready, 600)
            known = extender.metric("nodescope_extender_pods_settled")
            return read_peak_bytes(process.pid), known


def run(options: Options) -> list[Row]:
    del options
    peak, _ = measure(PODS)
    return [
        Row(
            f"extender, list of {PODS:,} pods of 13 KB: most memory",
            peak,
            "resident",
            goal=Goal(LIMIT_BYTES, "ours"),
        )
    ]
