"""A node's cells as JSON, and read back from its viewer: four figures are more than a shade of colour shows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodescope.use.answers.axis import Floats
from nodescope.use.answers.foreign_record import parse_nodes
from nodescope.use.answers.minutes.node_minutes import NodeMinutes
from nodescope.use.answers.wire import Json, JsonKind, make_form, parse_numbers

FIGURES = 4


def round_cells(values: Floats) -> list[float | None]:
    """Null where nothing was measured."""
    finite = np.isfinite(values)
    size = np.where(finite & (values != 0), np.abs(values), 1.0)
    scale = 10.0 ** (FIGURES - 1 - np.floor(np.log10(size)))
    rounded = np.round(np.where(finite, values, 0.0) * scale) / scale
    return [value if good else None for value, good in zip(rounded.tolist(), finite.tolist())]


FORM = make_form(NodeMinutes, JsonKind(round_cells, parse_numbers))


def render_minutes(many: Sequence[NodeMinutes]) -> Json:
    return {"nodes": [FORM.render(one) for one in many]}


def parse_minutes(content: Mapping[str, Any]) -> list[NodeMinutes]:
    return parse_nodes(FORM, content)
