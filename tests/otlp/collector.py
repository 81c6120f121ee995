"""A real OpenTelemetry collector on loopback, which appends what it takes to a file."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.s3.server import GO_TOOLS, build, wait_for

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "{address}"}}}}}}}}
exporters: {{lines: {{path: "{path}"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [lines]}}}}
"""


@dataclass
class RealCollector:
    program: Path
    folder: Path
    address: str

    @property
    def path(self) -> Path:
        return self.folder / "taken.jsonl"

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Killed at the end, without a chance to say goodbye."""
        config = self.folder / "config.yaml"
        config.write_text(CONFIG.format(address=self.address, path=self.path))
        with (self.folder / "log").open("ab") as log:
            words = [str(self.program), "--config", f"file:{config}"]
            process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            wait_for(self.address, process)
            yield process
        finally:
            process.kill()
            process.wait()

    def points(self) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
        """(resource, name, attributes, point) of everything it took; the line that is being written is left out."""
        for line in self.path.read_text().split("\n")[:-1] if self.path.exists() else ():
            for group in json.loads(line)["resourceMetrics"]:
                resource = json.dumps(group["resource"].get("attributes", []))
                for metric in group["scopeMetrics"][0]["metrics"]:
                    data = metric.get("sum") or metric["gauge"]
                    for point in data["dataPoints"]:
                        yield resource, metric["name"], json.dumps(point.get("attributes", [])), point


def find_collector(folder: Path, port: int) -> RealCollector:
    return RealCollector(build(GO_TOOLS, "otlp") / "collector", folder, f"127.0.0.1:{port}")
