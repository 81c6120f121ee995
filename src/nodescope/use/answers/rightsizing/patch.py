"""
Recommendations as YAML that Kubernetes takes: one partial object for each workload.

    nodescope rightsize DIR --yaml | kubectl apply --server-side --force-conflicts -f -

Every text is written in quotation marks, and only names that Kubernetes allows
are written at all: what cannot be patched is a comment that says why.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence

from nodescope.base.text import clean_text
from nodescope.use.answers.rightsizing.advice import SIZED, SizeAdvice
from nodescope.use.answers.rightsizing.sentence import render_risk

TEMPLATE = ("spec", "template", "spec")
# By kind: its group and version, and the way to the specification of its pods.
KINDS = {
    "Deployment": ("apps/v1", TEMPLATE),
    "StatefulSet": ("apps/v1", TEMPLATE),
    "DaemonSet": ("apps/v1", TEMPLATE),
    "ReplicaSet": ("apps/v1", TEMPLATE),
    "Rollout": ("argoproj.io/v1alpha1", TEMPLATE),
    "CronJob": ("batch/v1", ("spec", "jobTemplate", *TEMPLATE)),
}
WHY_NOT = {
    "Job": "the template of a Job cannot be changed: set this where the Job is made",
    "pod": "the requests of a pod cannot be changed this way: set this where the pod is made",
    "static pod": "set this in the manifest on its node",
}
# RFC 1123; a name that was shortened for display does not fit either.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
MIB = 2**20


def render_patch(advices: Sequence[SizeAdvice]) -> str:
    groups: dict[tuple[str, str, str], list[SizeAdvice]] = {}
    for one in advices:
        if one.state == SIZED:
            groups.setdefault((one.need.namespace, one.need.kind, one.need.workload), []).append(one)
    documents = ["\n".join(render_workload(group)) for group in groups.values()]
    return "".join(f"---\n{document}\n" for document in documents) or "# nothing to change\n"


def render_workload(group: Sequence[SizeAdvice]) -> Iterator[str]:
    need = group[0].need
    if reason := refuse(group):
        yield f"# {quote(need.kind)} {quote(need.workload)} in {quote(need.namespace)}: {reason}"
        for one in group:
            yield f"#   container {quote(one.need.container)}: {json.dumps(list_resources(one))}"
        return
    version, way = KINDS[need.kind]
    yield from (f"apiVersion: {quote(version)}", f"kind: {quote(need.kind)}", "metadata:")
    yield from (f"  name: {quote(need.workload)}", f"  namespace: {quote(need.namespace)}")
    for depth, word in enumerate(way):
        yield f"{'  ' * depth}{word}:"
    indent = "  " * len(way)
    yield f"{indent}containers:"
    for one in group:
        yield f"{indent}  # {clean_text(render_risk(one), 400)}"
        yield f"{indent}  - name: {quote(one.need.container)}"
        yield f"{indent}    resources:"
        for side, amounts in list_resources(one).items():
            yield f"{indent}      {side}:"
            yield from (f"{indent}        {name}: {quote(value)}" for name, value in amounts.items())


def refuse(group: Sequence[SizeAdvice]) -> str:
    """Why this cannot be a patch; empty where it can."""
    need = group[0].need
    names = (need.workload, need.namespace, *(one.need.container for one in group))
    if need.kind not in KINDS:
        return WHY_NOT.get(need.kind, "what made it is not known: set this where it is made")
    return "" if all(_NAME.fullmatch(name) for name in names) else "not a name that Kubernetes allows"


def list_resources(advice: SizeAdvice) -> dict[str, dict[str, str]]:
    sides = {
        "requests": (advice.cpu_request, advice.memory_request),
        "limits": (advice.cpu_limit, advice.memory_limit),
    }
    rendered = {
        side: {
            **({} if cpu is None else {"cpu": f"{math.ceil(1000 * cpu - 1e-6)}m"}),
            **({} if memory is None else {"memory": f"{math.ceil(memory / MIB)}Mi"}),
        }
        for side, (cpu, memory) in sides.items()
    }
    return {side: amounts for side, amounts in rendered.items() if amounts}


def quote(text: str) -> str:
    """A JSON string, which is a YAML string whatever is in it."""
    return json.dumps(clean_text(text, 300))
