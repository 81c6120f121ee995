"""
Label selectors as Kubernetes writes them in a query: a=b, a!=b, a in (b,c), a notin (b,c), a, !a.

Docs  https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

import re
from collections.abc import Callable, Mapping

from nodescope.base.errors import RequestRejected

KEY = r"(?:[A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
VALUE = r"[A-Za-z0-9._-]{0,63}"
TERM = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<gone>{KEY})"
    rf"|(?P<key>{KEY})\s*(?:(?P<sign>==|=|!=)\s*(?P<value>{VALUE})"
    rf"|\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*"
)
# An HPA's own has a few.
TERMS = 50

Matches = Callable[[Mapping[str, str]], bool]


def parse_selector(text: str) -> Matches:
    """Whether labels match; RequestRejected for what is no selector."""
    terms = [parse_term(part) for part in split_terms(text)]
    if len(terms) > TERMS:
        raise RequestRejected(f"labelSelector: {len(terms)} terms; at most {TERMS} are accepted")
    return lambda labels: all(term(labels) for term in terms)


def split_terms(text: str) -> list[str]:
    """At the commas that are not between parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def parse_term(text: str) -> Matches:
    match = TERM.fullmatch(text)
    if match is None:
        raise RequestRejected(
            f"labelSelector: {text[:80]!r} is not accepted; accepted: a=b, a!=b, a in (b,c), a notin (b,c), a, !a"
        )
    if match["absent"]:
        return lambda labels, key=match["gone"]: key not in labels  # type: ignore[misc]
    key = match["key"]
    if match["word"]:
        values = frozenset(part.strip() for part in match["values"].split(","))
        if match["word"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if not match["sign"]:
        return lambda labels: key in labels
    value, is_same = match["value"], match["sign"] != "!="
    return lambda labels: (labels.get(key) == value) is is_same
