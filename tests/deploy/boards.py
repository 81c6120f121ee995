"""The dashboards that we ship, as their queries."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "deploy/grafana"


def boards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def queries() -> Iterator[tuple[str, str]]:
    """(page / panel, expression) of everything that Grafana would ask Prometheus."""
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                yield f"{name} / {panel['title']} / {target['refId']}", target["expr"]


def lists() -> Iterator[tuple[str, str]]:
    """(page / variable, label_values(...)) of the choices at the top."""
    for name, board in boards().items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{name} / {variable['name']}", variable["query"]["query"]


def substitute(expression: str, rate_interval: str) -> str:
    """As Grafana does when everything is chosen."""
    filled = expression.replace("$__rate_interval", rate_interval)
    for name in ("node", "gpu", "namespace", "container"):
        filled = filled.replace(f'"${name}"', '".*"')
    assert "$" not in filled, expression
    return filled
