"""
The FPGA intake: what a sender posts, checked field by field.

The real sender (a C++ hypervisor with libcurl) posts a form and escapes
nothing: empty fields are to be expected. There are two kinds of report, with
`reconfiguration_ms`, or with `duration_ms` of a session that ended. JSON with
the same names is accepted, too.
"""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from nodescope.base.errors import RequestRejected
from nodescope.base.text import TEXT_CHARACTERS, clean_text
from nodescope.fpga.tracker import FpgaEvent

BODY_BYTES = 65536
# A report is some hundred bytes; a sender that needs longer is broken.
BODY_SECONDS = 5.0
FIELDS = (
    "timestamp_ms",
    "reconfiguration_ms",
    "duration_ms",
    "bitstream_identifier",
    "bitstream_identifiers",
)
# About thirty years: a larger number has a wrong unit, and would swamp the sums.
LONGEST_MS = 1e12
# The range of a 64-bit integer.
TIMESTAMP_MS = 2**63
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
# An override is typed by hand: a few names.
OVERRIDES = 64


class MediaUnknown(RequestRejected):
    """Neither a form nor JSON."""

    status = 415


def parse_event(body: bytes, media_type: str, query: str = "") -> FpgaEvent:
    """A report from a request's body; RequestRejected names the field that is wrong."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return check_event(parse_json(body))
    if kind in ("", "application/x-www-form-urlencoded"):
        return check_event({**parse_form(query.encode()), **parse_form(body)} if query else parse_form(body))
    raise MediaUnknown(
        f"Content-Type {kind[:60]!r} is not accepted; accepted: application/x-www-form-urlencoded, application/json"
    )


def parse_form(body: bytes) -> dict[str, Any]:
    """The first value of each field that is not blank."""
    try:
        pairs = parse_qsl(body.decode("utf-8", "surrogateescape"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise RequestRejected("the form has more than 100 fields") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if value.strip():
            found.setdefault(name, value.strip())
    return found


def parse_json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRejected(f"the body is not JSON: {str(error)[:100]}") from None
    if not isinstance(content, dict):
        raise RequestRejected(f"the JSON must be an object with {', '.join(FIELDS)}")
    return {key: value for key, value in content.items() if value is not None and value != ""}


def check_event(given: Mapping[str, Any]) -> FpgaEvent:
    usage_ms = check_duration("duration_ms", given)
    reconfiguration_ms = check_duration("reconfiguration_ms", given)
    bitstream = check_text("bitstream_identifier", given.get("bitstream_identifier", ""))
    override = check_override(given.get("bitstream_identifiers"))
    at_ms = check_timestamp(given)
    if usage_ms is None and reconfiguration_ms is None and not bitstream and override is None:
        raise RequestRejected(
            "reconfiguration_ms: nothing to count; accepted: reconfiguration_ms or duration_ms, in milliseconds"
        )
    return FpgaEvent(at_ms, usage_ms, reconfiguration_ms, bitstream, override)


def check_timestamp(given: Mapping[str, Any]) -> int:
    accepted = "accepted: milliseconds since 1970 as a whole number"
    value = given.get("timestamp_ms")
    if value is None:
        raise RequestRejected(f"timestamp_ms: is missing; {accepted}")
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not WHOLE_NUMBER.fullmatch(text) or not -TIMESTAMP_MS <= int(text) < TIMESTAMP_MS:
        raise RequestRejected(f"timestamp_ms: {show(value)} is not accepted; {accepted}")
    return int(text)


def check_duration(name: str, given: Mapping[str, Any]) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if not 0 <= number <= LONGEST_MS:
        raise RequestRejected(
            f"{name}: {show(value)} is not accepted; accepted: milliseconds between 0 and {LONGEST_MS:.0e}"
        )
    return number


def check_text(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS:
        raise RequestRejected(
            f"{name}: {show(value)} is not accepted; accepted: text of at most {TEXT_CHARACTERS} characters"
        )
    return clean_text(value.encode("utf-8", "replace").decode()).strip()


def check_override(value: object) -> tuple[str, ...] | None:
    """Comma-separated text, or a list in JSON; an empty list lifts the override."""
    if value is None:
        return None
    name = "bitstream_identifiers"
    if not isinstance(value, list | str):
        raise RequestRejected(f"{name}: {show(value)} is not accepted; accepted: names separated by commas")
    parts = value.split(",") if isinstance(value, str) else value
    names = dict.fromkeys(check_text(name, part) for part in parts)
    if len(names) > OVERRIDES:
        raise RequestRejected(f"{name}: {len(names)} names are given; at most {OVERRIDES} are accepted")
    return tuple(one for one in names if one)


def show(value: object) -> str:
    """What was given, short enough for one line."""
    return clean_text(repr(value)[:60].encode("utf-8", "replace").decode())
