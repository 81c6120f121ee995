"""
What the workloads of a node use, as its annotation `nodescope.io/workloads` tells it:

    {"version": 1, "updatedAt": 1690000000.1, "workloads": {"shop/catalog":
       {"pods": 3, "cores": 0.41, "hours": "hhgg...", "bandwidth": 1.2, "waits": 0.3, "gpu": 0.8}}}

Written by the agent, read by schedulers. What was not measured is not there.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nodescope.base.errors import ParseError
from nodescope.base.workload.pod_use import NEVER, NodeWorkloads, PodUse, are_hours
from nodescope.fpga.annotation_json import is_number, parse_object, parse_seconds

WORKLOADS_KEY = "nodescope.io/workloads"
VERSION = 1
# What an agent may write (deploy/rbac/policy.yaml), and what is read of it.
CHARACTERS = 8192
WORKLOADS = 128
# More than any machine has: what is beyond is no measurement.
MOST_PODS, MOST_CORES, MOST_GBPS = 10_000, 10_000.0, 1000.0
# Namespace, slash, name: 63 and 253 characters at most.
NAME_CHARACTERS = 320


def render_workloads(found: NodeWorkloads) -> str:
    """Those that use least are left out where there is no room for all."""
    by_use = sorted(found.uses.items(), key=lambda item: (-item[1].pods * item[1].cores, item[0]))
    parts, length = [], 80
    for name, use in by_use[:WORKLOADS]:
        part = f"{json.dumps(name)}:{json.dumps(describe_use(use), separators=(',', ':'))}"
        length += len(part) + 1
        if length > CHARACTERS:
            break
        parts.append(part)
    return (
        f'{{"version":{VERSION},"updatedAt":{round(found.at_seconds, 3)},"workloads":{{{",".join(parts)}}}}}'
    )


def describe_use(use: PodUse) -> dict[str, Any]:
    known = {"bandwidth": use.bandwidth, "waits": use.waits, "gpu": use.gpu}
    measured = {name: float(f"{value:.3g}") for name, value in known.items() if value is not None}
    return {"pods": use.pods, "cores": float(f"{use.cores:.3g}"), "hours": use.hours, **measured}


def parse_workloads(text: str) -> NodeWorkloads:
    """An annotation's text; ParseError says what is wrong with it. An entry that makes no sense is left out."""
    content = parse_object("workloads", text, 2 * CHARACTERS)
    if content.get("version") != VERSION or content["version"] is True:
        raise ParseError(f"workloads: version {str(content.get('version'))[:20]!r}; {VERSION} is read")
    found = content.get("workloads")
    if not isinstance(found, dict):
        raise ParseError("workloads: no workloads")
    at_seconds = float(parse_seconds("workloads", content))
    return NodeWorkloads(at_seconds, dict(list(parse_uses(found))[:WORKLOADS]))


def parse_uses(found: Mapping[str, Any]) -> Iterator[tuple[str, PodUse]]:
    for name, told in found.items():
        if not isinstance(told, dict) or len(name) > NAME_CHARACTERS:
            continue
        pods, cores = told.get("pods"), told.get("cores")
        if is_number(pods, 0, MOST_PODS) and is_number(cores, 0, MOST_CORES):
            hours = told["hours"] if are_hours(told.get("hours")) else NEVER
            yield (
                name,
                PodUse(
                    int(pods),
                    float(cores),
                    hours,
                    pick(told, "bandwidth", MOST_GBPS),
                    pick(told, "waits", 1.0),
                    pick(told, "gpu", 1.0),
                ),
            )


def pick(told: Mapping[str, Any], name: str, most: float) -> float | None:
    value = told.get(name)
    return min(float(value), most) if is_number(value, 0, 1e300) else None
