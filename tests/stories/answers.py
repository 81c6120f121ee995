"""
An answer as a careful reader takes it: who is named first, which numbers it gives, whether it could tell.

Only fields, numbers and names are looked at, never phrases: a sentence may be
worded in any way.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Grade = Literal["right", "wrong", "no answer"]
UNSURE = ("not_enough_data", "not_collected")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an answer is judged, and why."""

    grade: Grade
    why: str = ""
    rank: int | None = None
    """Of an incident: the place of the true cause, from 1, or 0; None where there is no such question."""
    confidence: float | None = None
    """What the answer itself gives its first incident."""


RIGHT = Verdict("right")


def wrong(why: str, rank: int | None = None) -> Verdict:
    return Verdict("wrong", why, rank)


def none(why: str, rank: int | None = None) -> Verdict:
    return Verdict("no answer", why, rank)


def names_in(text: str, names: Iterable[str]) -> list[str]:
    """Workloads that a text names, in the order in which it does. A pod's or an image's name counts for its workload."""
    found = []
    for name in names:
        match = re.search(rf"(?<![\w-]){re.escape(name)}(?![a-z0-9])", text)
        if match:
            found.append((match.start(), -len(name), name))
    # Of two that begin at one place the longer is meant.
    best: dict[int, tuple[int, int, str]] = {}
    for row in sorted(found):
        best.setdefault(row[0], row)
    return [name for _, _, name in sorted(best.values())]


@dataclass(slots=True)
class Answer:
    """What a tool said."""

    tool: str
    arguments: dict[str, Any]
    is_error: bool
    text: str
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return str(self.content.get("status", ""))

    @property
    def headline(self) -> str:
        return str(self.content.get("headline", self.text.split("\n", 1)[0]))

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.content.get("findings", []))

    @property
    def is_unsure(self) -> bool:
        """It says that it cannot tell."""
        return self.is_error or self.status in UNSURE

    @property
    def next(self) -> dict[str, Any] | None:
        found = self.content.get("next")
        return found if isinstance(found, dict) else None

    @property
    def whole(self) -> str:
        return self.text + "\n" + json.dumps(self.content, ensure_ascii=False)

    @property
    def tokens(self) -> int:
        """Text and structured part together: what a client may put before its model."""
        compact = json.dumps(self.content, ensure_ascii=False, separators=(",", ":")) if self.content else ""
        return (len(self.text) + len(compact)) // 4

    def says(self, *words: str) -> bool:
        """Whether any of these stands in its headline, sentences or reservations."""
        text = self.told.lower()
        return any(re.search(word, text) for word in words)

    @property
    def told(self) -> str:
        sentences = [str(one.get("sentence", "")) for one in self.findings]
        return "\n".join([self.headline, *sentences, *map(str, self.content.get("not_looked_at", []))])

    def first_named(self, names: Sequence[str]) -> str | None:
        """The workload that the answer puts first: of its headline, or else of its findings."""
        for text in (self.headline, *(json.dumps(one) for one in self.findings)):
            found = names_in(text, names)
            if found:
                return found[0]
        return None

    def finding_of(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self.findings if subject_of(one, [name]) == name), None)

    def numbers(self, *keys: str, of: str = "") -> list[float]:
        """Values under these keys in figures and evidence of all findings, or of those about one workload."""
        findings = [one for one in self.findings if not of or names_in(json.dumps(one), [of])]
        return list(walk_numbers([self.content.get("figures", {}), findings], set(keys)))

    def all_numbers(self, of: str = "") -> list[float]:
        findings = [one for one in self.findings if not of or names_in(json.dumps(one), [of])]
        return list(
            walk_numbers([self.content.get("figures", {}), [one.get("evidence") for one in findings]])
        )


def subject_of(finding: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Whom a finding is about: by its fields, else the first that its sentence names."""
    evidence = finding.get("evidence") or {}
    for value in (
        evidence.get("cause"),
        finding.get("cause"),
        finding.get("workload"),
        evidence.get("workload"),
        finding.get("container"),
        finding.get("sentence"),
    ):
        found = names_in(value if isinstance(value, str) else json.dumps(value), names) if value else []
        if found:
            return found[0]
    return None


def walk_numbers(content: Any, keys: set[str] | None = None, key: str = "") -> Iterator[float]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from walk_numbers(value, keys, name)
    elif isinstance(content, list):
        for value in content:
            yield from walk_numbers(value, keys, key)
    elif isinstance(content, int | float) and not isinstance(content, bool) and (keys is None or key in keys):
        yield float(content)


def near(value: float, truth: float, share: float) -> bool:
    return abs(value - truth) <= share * abs(truth)


def any_near(values: Iterable[float], truth: float, share: float) -> bool:
    return any(near(value, truth, share) for value in values)


def cause_rank(answer: Answer, cause: str, names: Sequence[str]) -> int | None:
    """
    The place of the true cause among the incidents that are told, from 1.

    The answer is read as a person would: the first finding about a workload
    is the first that it blames.
    """
    blamed: list[str] = []
    for finding in answer.findings:
        name = subject_of(finding, names)
        if name and name not in blamed:
            blamed.append(name)
    if not blamed:
        blamed = names_in(answer.headline, names)
    return blamed.index(cause) + 1 if cause in blamed else None
