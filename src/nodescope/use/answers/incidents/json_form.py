"""Incidents as the viewer's API writes them, and read back from a viewer."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodescope.use.answers.foreign_record import parse_nodes
from nodescope.use.answers.incidents.incident import Incident, IncidentList
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
    return parse_nodes(FORM, content)
