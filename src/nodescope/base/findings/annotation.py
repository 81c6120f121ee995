"""A note that a person or a program left at a moment of a node's data: "deployed 2.1 here"."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2s
from math import isfinite
from typing import Any

from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text

TEXT_CHARACTERS = 200
EXAMPLE = '{"text": "deployed 2.1 here", "at": 1772366400}'
# Before the first agent, and some years ahead: a moment outside is a mistake in units.
EARLIEST, LATEST = 946_684_800.0, 4_102_444_800.0


@dataclass(frozen=True, slots=True)
class Annotation:
    id: str
    at: float
    """Epoch seconds of the moment that is meant."""
    text: str
    """One line, without control characters; whoever shows it escapes it as all tenants' text."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def build_annotation(text: object, at: object, now: float) -> Annotation:
    """RequestRejected says what is accepted; without a moment it is now."""
    words = " ".join(clean_text(text, TEXT_CHARACTERS + 1).split()) if isinstance(text, str) else ""
    if not words or len(words) > TEXT_CHARACTERS:
        raise RequestRejected(f"text wants 1 to {TEXT_CHARACTERS} characters; accepted: {EXAMPLE}")
    moment = now if at is None else at
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not isfinite(moment):
        raise RequestRejected(f"at wants epoch seconds; accepted: {EXAMPLE}")
    if not EARLIEST <= moment <= LATEST:
        raise RequestRejected(f"at={moment:g} is no moment of this century; epoch seconds are wanted")
    # The same note of the same moment, sent again, is the same.
    identity = blake2s(f"{moment:.3f}|{words}".encode(), digest_size=5).hexdigest()
    return Annotation(identity, float(moment), words)


def parse_annotation_request(body: bytes, now: float) -> Annotation:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRejected(f"the body is not JSON; accepted: {EXAMPLE}") from error
    given = content if isinstance(content, Mapping) else {}
    return build_annotation(given.get("text"), given.get("at"), now)
