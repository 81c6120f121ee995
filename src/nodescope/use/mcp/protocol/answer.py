"""
An answer: a headline, findings with their evidence, what was not looked at, the next useful call.

Text and structured part together are at most LIMIT_BYTES as they go over the
wire and READ_BYTES as they are read, and no answer has a list of more than twelve numbers. Where there is too
much, first what stands there twice goes, then whole findings from the lightest
on; what was left out is counted, never cut in the middle.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nodescope.base.text import clean_text

# The contract's limit on text and structured part together, as they go over the wire.
LIMIT_BYTES = 8_000
# Of both as a model reads them: 1,500 tokens of four bytes.
READ_BYTES = 6_000
# What the envelope around both costs: names of fields, server info, ids.
ENVELOPE_BYTES = 400
# Rows with numbers: as many as the contract lets a list have.
MOST_FINDINGS = 12
# Sentences that go into the text; the rest is in the structured part.
SHOWN_FINDINGS = 5
SENTENCE_CHARACTERS = 400
# Two sentences at most, each with a name or two.
HEADLINE_CHARACTERS = 800
# A pod and its container, each as long as a name is shown.
NAME_CHARACTERS = 170
# A word this long that the sentence has need not stand among the facts, too, where room is short.
LONG_WORD = 16
# How to see what an answer has no room for, where its tool does not say it better.
NARROWER = "a narrower question shows them"
IN_FINDINGS = "in the structured part"
# Where room is short, a number below this has five figures; above, it may be of bytes, each of which counts.
LARGE = 1e5

Fact = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """What was seen, and on what it rests."""

    sentence: str
    kind: str
    node: str | None = None
    container: str | None = None
    metric: str | None = None
    unit: str | None = None
    confidence: float | None = None
    samples: int | None = None
    missing_share: float | None = None
    start_at: float | None = None
    end_at: float | None = None
    at: float | None = None
    when: str | None = None
    """Absolute with zone, and relative."""
    evidence: Mapping[str, Fact] = field(default_factory=dict)
    weight: float = 0.0
    """Where not all fit, the lightest leave first; of equal ones the last."""

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "sentence": clean_text(self.sentence, SENTENCE_CHARACTERS),
            "kind": self.kind,
            "node": self.node,
            "container": self.container and clean_text(self.container, NAME_CHARACTERS),
            "metric": self.metric and clean_text(self.metric, NAME_CHARACTERS),
            "unit": self.unit,
            "confidence": rounded(self.confidence, 3),
            "samples": self.samples,
            "missing_share": rounded(self.missing_share, 4),
            "from": rounded(self.start_at, 3),
            "to": rounded(self.end_at, 3),
            "at": rounded(self.at, 3),
            "when": self.when,
            "evidence": {name: tidy(value) for name, value in self.evidence.items() if value is not None},
        }
        return {name: value for name, value in content.items() if value is not None and value != {}}

    def once(self) -> "ToolFinding":
        """Without what stands there twice: a moment's own from and to, and long words of the sentence."""
        said = clean_text(self.sentence, SENTENCE_CHARACTERS)
        kept = {
            name: shortened(value)
            for name, value in self.evidence.items()
            if not (isinstance(value, str) and len(value) >= LONG_WORD and value in said)
        }
        is_moment = self.at is not None and self.start_at == self.end_at == self.at
        ends = (None, None) if is_moment else (self.start_at, self.end_at)
        return replace(self, evidence=kept, start_at=ends[0], end_at=ends[1])


@dataclass(frozen=True, slots=True)
class NextCall:
    """The next useful call, spelled out."""

    tool: str
    arguments: Mapping[str, Fact]
    why: str

    def render(self) -> str:
        given = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items()
        )
        return f"{self.tool}({given}) - {self.why}"


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool returns."""

    headline: str
    status: str = "found"
    """found, none, not_enough_data, not_collected."""
    findings: tuple[ToolFinding, ...] = ()
    figures: Mapping[str, Fact] = field(default_factory=dict)
    """avg, max, min, stddev and the like: of the whole span, where there is one metric."""
    names: tuple[str, ...] = ()
    """Further names without figures, such as the rest of a long list."""
    studies: Mapping[str, str] = field(default_factory=dict)
    """Studies and the question each answers, where a call wants them."""
    looked_at: str = ""
    """The span and the nodes, in words."""
    not_looked_at: tuple[str, ...] = ()
    nodes_away: Mapping[str, str] = field(default_factory=dict)
    """Nodes that did not answer, and why."""
    left_out: int = 0
    rest: str = NARROWER
    """How to see what was left out."""
    next_call: NextCall | None = None

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "headline": clean_text(self.headline, HEADLINE_CHARACTERS),
            "status": self.status,
            "looked_at": self.looked_at,
            "findings": [finding.to_json() for finding in self.findings],
            "not_looked_at": [clean_text(line, SENTENCE_CHARACTERS) for line in self.not_looked_at],
        }
        away = [{"node": node, "reason": clean_text(why, 200)} for node, why in self.nodes_away.items()]
        further = {
            "figures": {name: tidy(value) for name, value in self.figures.items()},
            "names": [clean_text(name, NAME_CHARACTERS) for name in self.names],
            "studies": dict(self.studies),
            "nodes_not_answering": away,
            "left_out": self.left_out,
            "next": self.next_call and asdict(self.next_call),
        }
        return {**content, **{name: value for name, value in further.items() if value}}

    def render(self, most: int = SHOWN_FINDINGS) -> str:
        """The short text: enough to act on where only text is shown."""
        lines = [clean_text(self.headline, HEADLINE_CHARACTERS)]
        shown = [clean_text(one.sentence, SENTENCE_CHARACTERS) for one in self._weightiest(most)]
        lines += [f"- {sentence}" for sentence in shown if sentence != lines[0]]
        more = len(self.findings) - len(shown) + self.left_out
        if more > 0:
            lines.append(f"- and {more} more: {self.rest if self.left_out else IN_FINDINGS}")
        if self.names:
            lines.append(f"Names: {join_names(self.names)}")
        if self.nodes_away:
            away = [f"{node} ({clean_text(reason, 80)})" for node, reason in self.nodes_away.items()]
            rest = f" and {len(away) - 5} more" if len(away) > 5 else ""
            lines.append(f"Did not answer: {', '.join(away[:5])}{rest}.")
        if self.next_call:
            lines.append(f"Next: {self.next_call.render()}")
        return "\n".join(lines)

    def _weightiest(self, most: int) -> list[ToolFinding]:
        """As many as the text has room for, in the order of the answer."""
        heaviest = sorted(enumerate(self.findings), key=lambda one: -one[1].weight)
        return [finding for _, finding in sorted(heaviest[:most], key=lambda one: one[0])]


def join_names(names: Sequence[str]) -> str:
    """Whole ones, as many as a sentence holds; the rest is counted."""
    shown: list[str] = []
    room = SENTENCE_CHARACTERS
    for name in names:
        text = clean_text(name, NAME_CHARACTERS).removesuffix(".")
        room -= len(text) + 2
        if room < 0 and shown:
            break
        shown.append(text)
    more = f"; and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return "; ".join(shown) + more


# The rest of a list that was cut is counted, but a long list of names is no answer either.
MOST_NAMES = 60
MOST_NODES_AWAY = 12
MOST_LINES = 6


def fit(answer: ToolAnswer) -> tuple[str, dict[str, Any]]:
    """Text and structured part within the limit; the least important gives way first."""
    answer = bound(answer)
    if not fits(answer):
        answer = say_once(answer)
    while not fits(answer):
        answer = shorten(answer)
    return answer.render(), answer.to_json()


def fits(answer: ToolAnswer) -> bool:
    text, content = answer.render(), answer.to_json()
    read_bytes = len(text.encode()) + len(render_content(content).encode())
    return read_bytes <= READ_BYTES and size_of(text, content) <= LIMIT_BYTES


def say_once(answer: ToolAnswer) -> ToolAnswer:
    """Facts that all findings share stand with the first; the figures of the whole span say how many samples."""
    findings = [one.once() for one in answer.findings]
    first = findings[0] if findings else None
    for place, one in enumerate(findings[1:], 1):
        if first and (one.samples, one.missing_share) == (first.samples, first.missing_share):
            findings[place] = replace(one, samples=None, missing_share=None)
    return replace(answer, findings=tuple(findings))


def bound(answer: ToolAnswer) -> ToolAnswer:
    away = dict(list(answer.nodes_away.items())[:MOST_NODES_AWAY])
    unnamed = len(answer.nodes_away) - len(away)
    lines = answer.not_looked_at[:MOST_LINES]
    if unnamed > 0:
        lines = (*lines, f"{unnamed} more nodes that did not answer")
    return replace(
        answer,
        findings=answer.findings[:MOST_FINDINGS],
        left_out=answer.left_out + max(0, len(answer.findings) - MOST_FINDINGS),
        names=answer.names[:MOST_NAMES],
        nodes_away=away,
        not_looked_at=lines,
    )


def shorten(answer: ToolAnswer) -> ToolAnswer:
    if answer.names:
        return replace(answer, names=answer.names[: len(answer.names) // 2])
    if answer.findings:
        lightest = min(reversed(answer.findings), key=lambda one: one.weight)
        kept = tuple(one for one in answer.findings if one is not lightest)
        return replace(answer, findings=kept, left_out=answer.left_out + 1)
    if answer.not_looked_at:
        return replace(answer, not_looked_at=answer.not_looked_at[:-1])
    if answer.nodes_away:
        return replace(answer, nodes_away=dict(list(answer.nodes_away.items())[:-1]))
    # Only single bounded strings are left; together they are far below the limit.
    return replace(answer, looked_at="", next_call=None, figures={})


def size_of(text: str, content: Mapping[str, Any]) -> int:
    """Bytes of both as JSON on the wire."""
    return (
        ENVELOPE_BYTES
        + len(json.dumps(text, ensure_ascii=False).encode())
        + len(render_content(content).encode())
    )


def render_content(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def tidy(value: Fact) -> Fact:
    """Nine significant figures, a byte of a gigabyte; JSON knows no NaN and no infinity."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if abs(value) < float("inf") else None
    return clean_text(value, SENTENCE_CHARACTERS) if isinstance(value, str) else value


def shortened(value: Fact) -> Fact:
    return float(f"{value:.5g}") if isinstance(value, float) and abs(value) < LARGE else value


def rounded(value: float | None, decimals: int) -> float | None:
    return None if value is None else round(value, decimals)


# -- the schema ----------------------------------------------------------------------

TEXT = {"type": "string"}
FACTS = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}


def object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """That has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


FINDING_SCHEMA = {
    "type": "object",
    "properties": {
        "sentence": {"type": "string", "description": "the finding in words, with numbers and times"},
        "kind": TEXT,
        "node": TEXT,
        "container": {"type": "string", "description": "pod/container; accepted by the other tools"},
        "metric": TEXT,
        "unit": TEXT,
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "samples": {"type": "integer"},
        "missing_share": {"type": "number", "description": "of the samples due, those not there"},
        "from": {"type": "number", "description": "epoch seconds"},
        "to": {"type": "number", "description": "epoch seconds"},
        "at": {"type": "number", "description": "epoch seconds"},
        "when": {"type": "string", "description": "absolute with zone, and relative"},
        "evidence": FACTS,
    },
    "required": ["sentence", "kind"],
}
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "headline": {"type": "string", "description": "the answer in one sentence"},
        "status": {"enum": ["found", "none", "not_enough_data", "not_collected"]},
        "looked_at": TEXT,
        "findings": {"type": "array", "items": FINDING_SCHEMA, "maxItems": MOST_FINDINGS},
        "figures": FACTS,
        "names": {"type": "array", "items": TEXT, "maxItems": MOST_NAMES},
        "studies": {"type": "object", "additionalProperties": TEXT},
        "not_looked_at": {"type": "array", "items": TEXT},
        "nodes_not_answering": {"type": "array", "items": object_of(node=TEXT, reason=TEXT)},
        "left_out": {"type": "integer", "description": "findings that did not fit; narrow the question"},
        "next": object_of(tool=TEXT, arguments={"type": "object"}, why=TEXT),
    },
    "required": ["headline", "status", "findings", "not_looked_at"],
}
# What tools/list says of every answer. The whole schema there, once for each tool, would be
# two thirds of the list; it is the resource nodescope://answer.
LISTED_SCHEMA: dict[str, Any] = {"type": "object", "required": ANSWER_SCHEMA["required"]}
