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
from typing import TypeGuard

from nodescope.base.errors import ParseError

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
    if len(text) > LOAD_CHARACTERS:
        raise ParseError(f"window: {len(text)} characters, at most {LOAD_CHARACTERS} are read")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"window: not JSON: {str(error)[:80]}") from None
    if not isinstance(content, dict):
        raise ParseError("window: not a JSON object")
    if content.get("version") != VERSION or content["version"] is True:
        raise ParseError(f"window: version {str(content.get('version'))[:20]!r}; {VERSION} is read")
    at_seconds = content.get("updatedAt")
    if not is_finite(at_seconds) or not 0 <= at_seconds < 1e12:
        raise ParseError(f"window: updatedAt {str(at_seconds)[:40]!r} is no time")
    metrics = content.get("metrics")
    if not isinstance(metrics, dict):
        raise ParseError("window: no metrics")
    health = content.get("health")
    samples = content.get("samples")
    return NodeLoad(
        float(at_seconds),
        int(samples) if is_finite(samples) and 0 <= samples < 1e9 else 0,
        min(10.0, max(0.0, float(health))) if is_finite(health) else None,
        {key: float(value) for key, value in metrics.items() if is_finite(value)},
    )


def is_finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300
