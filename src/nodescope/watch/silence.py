"""
Silences: findings with these labels page nobody until a moment that is given with them.

    workload=catalog kind=memory_leak     all labels must match; * stands for anything

A finding that is silenced is still found, kept and shown, and marked.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2s
from math import isfinite
from typing import Any

from nodescope.base.errors import RequestRejected
from nodescope.base.findings import KINDS, SEVERITIES, NodeFinding
from nodescope.base.text import clean_text, hint_nearest

LABELS = ("kind", "severity", "namespace", "workload", "container", "device", "pod", "node")
# A value of these is one of a few.
CHOICES = {"kind": KINDS, "severity": SEVERITIES}
SILENCES_MOST = 100
# A silence that nobody remembers is worse than a page.
LONGEST_SECONDS = 90 * 86_400.0
VALUE_CHARACTERS = 253
COMMENT_CHARACTERS = 200
EXAMPLE = '{"silence": {"labels": {"workload": "catalog"}, "seconds": 7200, "comment": "load test"}}'


@dataclass(frozen=True, slots=True)
class Silence:
    id: str
    labels: Mapping[str, str]
    created: float
    until: float
    comment: str = ""

    def matches(self, finding: NodeFinding) -> bool:
        return all(fnmatchcase(str(getattr(finding, name)), value) for name, value in self.labels.items())

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "labels": dict(self.labels)}


@dataclass(slots=True)
class Silences:
    """By id; those that are over leave."""

    kept: dict[str, Silence] = field(default_factory=dict)

    def add(self, given: object, now: float) -> Silence:
        silence = build_silence(given, now)
        self.expire(now)
        if silence.id not in self.kept and len(self.kept) >= SILENCES_MOST:
            raise RequestRejected(f"there are {SILENCES_MOST} silences already; end one first")
        self.kept[silence.id] = silence
        return silence

    def end(self, identity: str) -> Silence:
        if identity not in self.kept:
            raise SilenceUnknown(f'no silence "{identity[:40]}"{hint_nearest(identity, list(self.kept))}')
        return self.kept.pop(identity)

    def expire(self, now: float) -> bool:
        """Whether one of them has ended."""
        over = [one.id for one in self.kept.values() if one.until <= now]
        for identity in over:
            del self.kept[identity]
        return bool(over)

    def find(self, finding: NodeFinding) -> str:
        """The id of the silence that holds the longest; empty where none matches."""
        found = [one for one in self.kept.values() if one.matches(finding)]
        return max(found, key=lambda one: one.until).id if found else ""


class SilenceUnknown(RequestRejected):
    """No silence has this id."""

    status, title = 404, "not found"


def build_silence(given: object, now: float) -> Silence:
    """From what a person sends; RequestRejected says what is accepted."""
    if not isinstance(given, Mapping) or not isinstance(given.get("labels"), Mapping):
        raise RequestRejected(f"silence wants labels and seconds; accepted: {EXAMPLE}")
    labels = {str(name): check_label(str(name), value) for name, value in given["labels"].items()}
    if not labels:
        raise RequestRejected(f"a silence of everything is not accepted; accepted: {EXAMPLE}")
    seconds = given.get("seconds")
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 1 <= seconds <= LONGEST_SECONDS
    ):
        most = round(LONGEST_SECONDS)
        raise RequestRejected(
            f"seconds={str(seconds)[:40]!r} is not accepted; accepted: 1 to {most} (90 days)"
        )
    comment = clean_text(str(given.get("comment") or ""), COMMENT_CHARACTERS)
    words = "|".join(f"{name}={value}" for name, value in sorted(labels.items()))
    # The same labels again are the same silence, with another end.
    identity = blake2s(words.encode(), digest_size=4).hexdigest()
    return Silence(identity, labels, now, now + seconds, comment)


def check_label(name: str, value: object) -> str:
    if name not in LABELS:
        raise RequestRejected(
            f'no label "{name[:40]}"{hint_nearest(name, list(LABELS))} accepted: {", ".join(LABELS)}'
        )
    if not isinstance(value, str) or not value or len(value) > VALUE_CHARACTERS:
        raise RequestRejected(
            f"{name} wants a text of 1 to {VALUE_CHARACTERS} characters; * stands for anything"
        )
    choices = CHOICES.get(name)
    if choices and "*" not in value and value not in choices:
        raise RequestRejected(f"{name}={value[:40]!r} is not accepted; accepted: {', '.join(choices)}")
    return value


def parse_silences(rows: object) -> Silences:
    """What an earlier run left; one that cannot be read is left out."""
    found: dict[str, Silence] = {}
    for row in rows if isinstance(rows, list) else ():
        try:
            silence = build_silence({**row, "seconds": row["until"] - row["created"]}, row["created"])
        except (RequestRejected, TypeError, KeyError):
            continue
        if isfinite(silence.until):
            found[silence.id] = silence
    return Silences(found)
