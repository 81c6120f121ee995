"""
The agent as a process of its own, and what it answers, read as any client would.

A service of the node from the checkout, or the image's container where there is one.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.vm.guest import image, pods

PORT = 9100
HOST = image.HOST if image.is_here() else "127.0.0.1"
# The budget is for machines of ordinary speed: Python is 11 to 18 times slower
# here, and an agent that slows itself down would be tested for that alone.
COMMAND = f"env NODESCOPE_BUDGET_RATIO=1 python -m nodescope agent --port {PORT} --no-archive --no-kubernetes --node vm".split()
# Python is slow here and a busy host makes it slower; no answer is this late on purpose.
ANSWER_SECONDS = 60

SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


def parse_samples(text: str) -> list[Sample]:
    matches = (SAMPLE.match(line) for line in text.splitlines() if line and line[0] != "#")
    return [
        Sample(found["name"], dict(LABEL.findall(found["labels"] or "")), float(found["value"]))
        for found in matches
        if found
    ]


def start(log: Path) -> tuple[pods.Process, int]:
    """Whom to end and wait for, and the pid of the agent itself."""
    if image.is_here():
        return image.start(log)
    process = pods.start_service("nodescope.service", COMMAND, log)
    return process, process.pid


def fetch(path: str) -> str:
    with urllib.request.urlopen(f"http://{HOST}:{PORT}{path}", timeout=ANSWER_SECONDS) as answer:
        text: str = answer.read().decode()
    return text


def fetch_json(path: str) -> Any:
    return json.loads(fetch(path))


def scrape() -> list[Sample]:
    return parse_samples(fetch("/metrics"))


def is_ready() -> bool:
    try:
        fetch("/readyz")
    except (urllib.error.URLError, OSError):
        return False
    return True


def total(samples: list[Sample], name: str, container: pods.Container) -> float | None:
    """
    The container's value of a metric; None where it has none.

    Series of one container that differ by device or interface are parts of one
    sum; `cpu="total"` is the only one of its name.
    """
    values = [one.value for one in samples if one.name == name and one.labels.get("id") == container.cgroup]
    return sum(values) if values else None
