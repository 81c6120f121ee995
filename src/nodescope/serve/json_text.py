"""JSON as the agent and the commands write it."""

import json
from pathlib import Path


def render_json(content: object) -> bytes:
    """Numbers that JSON cannot write are a bug here, not a silent null."""
    text = json.dumps(content, allow_nan=False, default=render_path, ensure_ascii=False)
    # A tenant's text may hold half a character.
    return text.encode("utf-8", "replace")


def render_path(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value).__name__)
