"""
A node's last seconds and health, as its annotation `nodescope.io/window` tells them:

    {"version": 1, "updatedAt": 1690000000.123, "windowSeconds": 20, "samples": 20,
     "health": 7.91, "metrics": {"mean_cpu_util": 0.41, "p95_cpu_util": 0.66, ...}}

Written by the agent, read by schedulers. A feature that was not measured is
not among the metrics.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.errors import ParseError
from nodescope.fpga.annotation_json import is_number, parse_object, parse_seconds

WINDOW_KEY = "nodescope.io/window"
WINDOW_SECONDS = 20.0
VERSION = 1
# Ours has some forty metrics of thirty bytes.
LOAD_CHARACTERS = 65536


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The node's last seconds."""

    at_seconds: float
    samples: int
    health: float | None
    metrics: Mapping[str, float]


def render_load(load: NodeLoad) -> str:
    content = {
        "version": VERSION,
        "updatedAt": round(load.at_seconds, 3),
        "windowSeconds": int(WINDOW_SECONDS),
        "samples": load.samples,
        "health": None if load.health is None else round(load.health, 2),
        "metrics": {key: float(f"{value:.4g}") for key, value in load.metrics.items()},
    }
    return json.dumps(content, separators=(",", ":"))


def parse_load(text: str) -> NodeLoad:
    """An annotation's text; ParseError says what is wrong with it."""
    content = parse_object("window", text, LOAD_CHARACTERS)
    if content.get("version") != VERSION or content["version"] is True:
        raise ParseError(f"window: version {str(content.get('version'))[:20]!r}; {VERSION} is read")
    at_seconds = parse_seconds("window", content)
    metrics = content.get("metrics")
    if not isinstance(metrics, dict):
        raise ParseError("window: no metrics")
    health, samples = content.get("health"), content.get("samples")
    return NodeLoad(
        float(at_seconds),
        int(samples) if is_number(samples, 0, 1e9) else 0,
        min(10.0, max(0.0, float(health))) if is_number(health, -1e300, 1e300) else None,
        {key: float(value) for key, value in metrics.items() if is_number(value, -1e300, 1e300)},
    )
