"""Right-sizing as the viewer's API writes it, and its facts read back from a viewer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodescope.use.answers.foreign_record import parse_nodes
from nodescope.use.answers.rightsizing.advice import SizeAdvice, advise
from nodescope.use.answers.rightsizing.need import ContainerNeed, NodeNeeds, merge_needs
from nodescope.use.answers.rightsizing.patch import render_patch
from nodescope.use.answers.rightsizing.sentence import render_advice, render_risk, render_total
from nodescope.use.answers.wire import Json, make_form

FORM = make_form(NodeNeeds)


def advise_all(found: Iterable[NodeNeeds]) -> list[SizeAdvice]:
    """Of all nodes together, what saves or lacks the most first."""
    advices = [advise(need) for need in merge_needs(need for one in found for need in one.needs)]
    return sorted(advices, key=lambda one: (-one.weight, one.need.key))


def render_sizes(found: Sequence[NodeNeeds]) -> Json:
    """Facts by node, and the recommendations for all of them together, also as a patch in YAML."""
    advices = advise_all(found)
    return {
        "sentence": render_total(advices),
        "advice": [render_one(one) for one in advices],
        "patch": render_patch(advices),
        "nodes": [FORM.render(one) for one in found],
    }


def render_one(advice: SizeAdvice) -> Json:
    need = advice.need
    return {
        "sentence": render_advice(advice),
        "risk": render_risk(advice),
        "state": advice.state,
        "namespace": need.namespace,
        "workload": need.workload,
        "kind": need.kind,
        "container": need.container,
        "replicas": need.replicas,
        "specified": need.is_specified,
        "now": render_now(need),
        "cpu_request": advice.cpu_request,
        "cpu_limit": advice.cpu_limit,
        "memory_request": advice.memory_request,
        "memory_limit": advice.memory_limit,
        "saved_cores": advice.saved_cores,
        "saved_bytes": advice.saved_bytes,
        "ready": advice.ready_ms / 1000,
    }


def render_now(need: ContainerNeed) -> Json:
    """What is set today, as the recommendation compares with it: of several nodes that of the newest."""
    return {
        "cpu_request": need.cpu_request,
        "cpu_limit": need.cpu_limit,
        "memory_request": need.memory_request,
        "memory_limit": need.memory_limit,
    }


def parse_needs(content: Mapping[str, Any]) -> list[NodeNeeds]:
    return parse_nodes(FORM, content)
