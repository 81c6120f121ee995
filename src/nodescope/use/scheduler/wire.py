"""
kube-scheduler's extender/v1 on the wire: what comes in, what goes out.

    in    {"Pod": {...}, "Nodes": {"items": [...]} | null, "NodeNames": [...] | null}
    out   /filter       {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}
          /prioritize   [{"Host": name, "Score": whole number}, ...]

NodeNames comes with nodeCacheCapable: true, Nodes with false; the answer has
the same form. Outer keys are capitalised by Go; we take them in any case, as
Go does. A score that is no whole number makes kube-scheduler drop the answer.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import Any

from nodescope.base.errors import RequestRejected
from nodescope.use.scheduler.pod_request import PodRequest, parse_pod_request

# Kubernetes supports 5,000 nodes; kwok clusters of tests have ten times that.
NODES = 50_000
# In front of the names, as Go writes it.
NAMES_MARK = b'"NodeNames":['
# Between two names, and with a score between them.
BETWEEN, LEVEL = b'","', b'","Score":0},{"Host":"'
# Around the names of nodes that all pass.
PASSED = (
    b'{"Nodes":null,"NodeNames":',
    b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}',
)
ACCEPTED = 'a JSON object {"Pod": ..., "NodeNames": [...]} or {"Pod": ..., "Nodes": {"items": [...]}}'


@dataclass(frozen=True, slots=True)
class ExtenderCall:
    """One call of kube-scheduler, about one pod."""

    pod: PodRequest
    names: tuple[str, ...]
    nodes: Mapping[str, Mapping[str, Any]] | None = None
    """The nodes themselves, where kube-scheduler sent them."""
    text: bytes = b""
    """NodeNames as they came, where they stood at the end."""


def parse_call(body: bytes) -> ExtenderCall:
    """RequestRejected says what is wrong with the body."""
    try:
        content, text = parse_body(body)
    except (ValueError, RecursionError) as error:
        raise RequestRejected(f"the body is not JSON: {str(error)[:100]}; accepted: {ACCEPTED}") from None
    if not isinstance(content, dict):
        raise RequestRejected(f"the body is no object; accepted: {ACCEPTED}")
    given = {key.lower(): value for key, value in content.items()}
    pod = parse_pod_request(given.get("pod"))
    if text:
        return ExtenderCall(pod, read_names(text), text=text)
    if given.get("nodenames") is not None:
        return ExtenderCall(pod, parse_names(given["nodenames"]))
    if given.get("nodes") is not None:
        nodes = parse_nodes(given["nodes"])
        return ExtenderCall(pod, tuple(nodes), nodes)
    raise RequestRejected(f"neither NodeNames nor Nodes; accepted: {ACCEPTED}")


def parse_body(body: bytes) -> tuple[object, bytes]:
    """
    What it says, and its NodeNames as text where they stand at the end; those are then not in what it says.

    kube-scheduler asks /prioritize with the same thousands of names as /filter before: they are parsed once.
    A quote inside of a text is escaped, so that the mark is found as a key only;
    where what is in front of it is no JSON by itself, the body is parsed as a whole.
    """
    head, mark, rest = body.rpartition(NAMES_MARK)
    if mark and rest.endswith(b"]}"):
        text = b"[" + rest[:-1]
        with suppress(ValueError, RecursionError):
            content = json.loads(head + NAMES_MARK + b"]}")
            parse_list(text)
            return content, text
    return json.loads(body), b""


@lru_cache(maxsize=2)
def parse_list(text: bytes) -> object:
    return json.loads(text)


@lru_cache(maxsize=2)
def read_names(text: bytes) -> tuple[str, ...]:
    return parse_names(parse_list(text))


def parse_names(given: object) -> tuple[str, ...]:
    # The set of types: five thousand calls of isinstance would take a millisecond.
    if not isinstance(given, list) or set(map(type, given)) - {str}:
        raise RequestRejected("NodeNames: is no list of names")
    if len(given) > NODES:
        raise RequestRejected(f"NodeNames: {len(given)} names, at most {NODES} are accepted")
    return tuple(given)


def parse_nodes(given: object) -> dict[str, Mapping[str, Any]]:
    items = given.get("items") if isinstance(given, dict) else None
    if items is None and isinstance(given, dict):
        return {}
    if not isinstance(items, list):
        raise RequestRejected("Nodes: is no NodeList")
    found: dict[str, Mapping[str, Any]] = {}
    for item in items:
        about = item.get("metadata") if isinstance(item, dict) else None
        name = about.get("name") if isinstance(about, dict) else None
        if not isinstance(name, str):
            raise RequestRejected("Nodes: an item that is no Node with a name")
        found[name] = item
    if len(found) > NODES:
        raise RequestRejected(f"Nodes: {len(found)} nodes, at most {NODES} are accepted")
    return found


def render_filtered(call: ExtenderCall, refused: Mapping[str, str]) -> bytes:
    """Nodes that are not refused pass; no preemption can lift a refusal."""
    if call.text and not refused:
        return b"".join((PASSED[0], call.text, PASSED[1]))
    passed = [name for name in call.names if name not in refused] if refused else call.names
    given = call.nodes
    content = {
        "Nodes": None if given is None else {"metadata": {}, "items": [given[name] for name in passed]},
        "NodeNames": passed if given is None else None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": dict(refused),
        "Error": "",
    }
    return json.dumps(content, separators=(",", ":")).encode()


def render_level(call: ExtenderCall) -> bytes:
    """The same score for all nodes: most pods of a cluster ask for nothing of ours."""
    text = call.text
    # Without a backslash no text has a quote in it: each of these marks stands between two names.
    if text and b"\\" not in text and text.count(BETWEEN) == len(call.names) - 1:
        scored = text.strip()[1:-1].strip().replace(BETWEEN, LEVEL)
        return b"".join((b'[{"Host":', scored, b',"Score":0}]'))
    return render_scores(call.names, [0] * len(call.names))


def render_scores(names: Sequence[str], scores: Sequence[int]) -> bytes:
    # By a template: a thousand small objects would cost as much as judging their nodes.
    return (write_template(tuple(names)) % tuple(scores)).encode()


@lru_cache(maxsize=2)
def write_template(names: tuple[str, ...]) -> str:
    """The answer but for its scores: kube-scheduler asks about the same nodes again and again."""
    rows = [f'{{"Host":{quote(name)},"Score":' for name in names]
    return "[" + ",".join(f"{row.replace('%', '%%')}%d}}" for row in rows) + "]"
