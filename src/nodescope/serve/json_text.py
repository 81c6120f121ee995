"""JSON as the agent and the commands write it."""

import json
import re
from pathlib import Path

_C1 = re.compile("[\x7f-\x9f]")


def render_json(content: object) -> bytes:
    """Numbers that JSON cannot write are a bug here, not a silent null."""
    text = json.dumps(content, allow_nan=False, default=render_path, ensure_ascii=False)
    # A tenant's text may hold half a character, or one that a terminal obeys.
    # JSON itself escapes only those below 32.
    return _C1.sub(escape_control, text).encode("utf-8", "replace")


def escape_control(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def render_path(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value).__name__)
