"""The JSON of a node's annotations: bounded, and every number checked, because whoever can patch a Node can write it."""

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from nodescope.base.errors import ParseError


def parse_object(name: str, text: str, most_characters: int) -> dict[str, Any]:
    if len(text) > most_characters:
        raise ParseError(f"{name}: {len(text)} characters, at most {most_characters} are read")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{name}: not JSON: {str(error)[:80]}") from None
    if not isinstance(content, dict):
        raise ParseError(f"{name}: not a JSON object")
    return content


def is_number(value: object, least: float, below: float) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < below


def parse_seconds(name: str, content: Mapping[str, Any]) -> float:
    """When the annotation was written."""
    value = content.get("updatedAt")
    if not is_number(value, 0, 1e12):
        raise ParseError(f"{name}: updatedAt {str(value)[:40]!r} is no time")
    return value
