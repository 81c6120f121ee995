"""Incidents as the viewer's API writes them, and read back from a viewer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodescope.base.text import clean_name, clean_path, clean_text
from nodescope.use.answers.incidents.incident import Change, Incident, IncidentList
from nodescope.use.answers.incidents.sentence import render_incident, render_list
from nodescope.use.answers.wire import Json, make_form

FORM = make_form(IncidentList)
INCIDENT = make_form(Incident)


def render_incidents(found: Sequence[IncidentList]) -> Json:
    """By node; with the sentences that everybody shows."""
    return {"nodes": [render_node(one) for one in found]}


def render_node(found: IncidentList) -> Json:
    content = FORM.render(found)
    incidents = [{"sentence": render_incident(one), **INCIDENT.render(one)} for one in found.incidents]
    return {"sentence": render_list(found), **content, "incidents": incidents}


def parse_incidents(content: Mapping[str, Any]) -> list[IncidentList]:
    """What a viewer says about tenants is cleaned, whatever the viewer did."""
    return [clean_list(FORM.parse(one)) for one in content.get("nodes") or ()]


def rename_node(found: IncidentList, node: str) -> IncidentList:
    """Under the name that the node has for who asks."""
    incidents = tuple(replace(one, node=node) for one in found.incidents)
    return replace(found, node=node, incidents=incidents)


def clean_list(found: IncidentList) -> IncidentList:
    return replace(
        found,
        node=clean_text(found.node),
        asked=clean_name(found.asked),
        incidents=tuple(clean_incident(one) for one in found.incidents),
        background=tuple(clean_text(line) for line in found.background),
        unseen=tuple(clean_text(line) for line in found.unseen),
    )


def clean_incident(one: Incident) -> Incident:
    return replace(
        one,
        node=clean_text(one.node),
        causes=tuple(clean_change(change) for change in one.causes),
        victims=tuple(clean_change(change) for change in one.victims),
        image_before=clean_name(one.image_before),
        image_after=clean_name(one.image_after),
    )


def clean_change(one: Change) -> Change:
    return replace(
        one, workload=clean_name(one.workload), container=clean_path(one.container), unit=clean_text(one.unit)
    )
