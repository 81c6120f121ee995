"""
What holds for every answer, whatever was asked.

    small      text and structured part together are at most 1,500 tokens
    possible   no negative cores, bytes or shares; no peak above the true maximum
    going on   `next` stays within the span, is another call, and names a tool that exists
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.stories.answers import Answer
from tests.stories.story import Scene

TOKENS = 1_500
# A tick is up to 3 ms late, and a counter has whole units.
PEAK_SHARE = 0.02
LEVELS = ("before", "after", "mean", "min", "max", "avg", "a_avg", "b_avg", "p95", "level", "use", "peak")
PEAKS = ("max", "peak")
SPAN_TOOLS = ("top_containers", "summarize_container", "analyze_container", "compare_windows", "scan")
NEGATIVE = re.compile(r"(?<![\w.:-])-\d+(?:\.\d+)? ?(?:cores|millicores|[KMG]iB|bytes|%)")
# What changes by an amount may change by less than nothing.
CHANGES = re.compile(r"(\b(by|of|difference)\s+|\()$")


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that an answer breaks."""

    rule: str
    what: str


def list_breaches(scene: Scene, answer: Answer) -> Iterator[Breach]:
    if answer.is_error:
        return
    if answer.tokens > TOKENS:
        yield Breach("small", f"{answer.tool} {answer.arguments}: {answer.tokens} tokens")
    yield from impossible(scene, answer)
    yield from lost_span(answer)


def impossible(scene: Scene, answer: Answer) -> Iterator[Breach]:
    for line in answer.text.splitlines():
        match = NEGATIVE.search(line)
        if match and not CHANGES.search(line[: match.start()]):
            yield Breach("possible", f"{answer.tool}: {match[0]} in: {line[:200]}")
    for finding in answer.findings:
        evidence = finding.get("evidence") or {}
        for name in LEVELS:
            value = evidence.get(name)
            if isinstance(value, int | float) and value < 0:
                yield Breach("possible", f"{answer.tool}: {name} is {value} in: {finding.get('sentence')}")
        if finding.get("unit") == "cores":
            yield from too_high(scene, answer, finding, evidence)


def too_high(
    scene: Scene, answer: Answer, finding: Mapping[str, Any], evidence: Mapping[str, Any]
) -> Iterator[Breach]:
    """A workload's sum may be higher than any of its containers; the node's total is the most that it can be."""
    most = max(float(node.totals["cpu"].max()) for node in scene.nodes) * (1 + PEAK_SHARE)
    for name in PEAKS:
        value = evidence.get(name)
        if isinstance(value, int | float) and value > most:
            yield Breach(
                "possible", f"{answer.tool}: {name} {value} > {most:.3f} in: {finding.get('sentence')}"
            )


def lost_span(answer: Answer) -> Iterator[Breach]:
    step = answer.next
    if step is None:
        return
    tool, arguments = step.get("tool"), step.get("arguments") or {}
    said = f"{answer.tool} {json.dumps(answer.arguments)} -> {tool} {json.dumps(arguments)}"
    if tool == answer.tool and all(answer.arguments.get(name) == value for name, value in arguments.items()):
        yield Breach("going on", f"the same call again: {said}")
    given = [name for name in ("from", "to") if name in answer.arguments]
    if given and tool in SPAN_TOOLS and tool != "compare_windows" and not keeps(answer.arguments, arguments):
        yield Breach("going on", f"the span is lost: {said}")


def keeps(given: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    """Each end is the same or another one that is said; a longer span is asked on purpose."""
    return all(name in then for name in ("from", "to") if name in given)


def parse(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
