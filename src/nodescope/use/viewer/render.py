"""Numbers and texts as JSON: NaN becomes null, digits beyond what a chart can show go."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Figures of the largest value of a series that are kept.
FIGURES = 7


def render_json(content: object) -> bytes:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def numbers(values: NDArray[np.float64]) -> list[float | None]:
    """What is not a number, or unlimited, is null."""
    finite = np.isfinite(values)
    if not finite.any():
        return [None] * len(values)
    largest = float(np.abs(values[finite]).max())
    decimals = FIGURES - int(np.floor(np.log10(largest))) if largest > 0 else FIGURES
    # Bytes stay whole; beyond 300 decimals the power itself is no number.
    rounded = np.round(values, min(max(decimals, 0), 300))
    if finite.all():
        return list(rounded.tolist())
    return [number if good else None for number, good in zip(rounded.tolist(), finite.tolist())]


def number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def seconds(time_ms: float | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


def times(time_ms: NDArray[np.int64]) -> list[float]:
    return list((time_ms / 1000).tolist())


Json = dict[str, Any]
