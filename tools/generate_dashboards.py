"""
Writes deploy/grafana/*.json from tools/dashboards: `make dashboards`.

Import them in Grafana as they are, or let its sidecar find them in ConfigMaps.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from tools.dashboards import containers, fpga, gpus, itself, node
from tools.dashboards.panel import Board

FOLDER = Path(__file__).resolve().parents[1] / "deploy" / "grafana"
BOARDS = {
    "node": node.build,
    "containers": containers.build,
    "gpus": gpus.build,
    "fpga": fpga.build,
    "nodescope": itself.build,
}


def render_boards() -> Mapping[str, str]:
    """File name -> what belongs into it."""
    return {f"{name}.json": render_board(build()) for name, build in BOARDS.items()}


def render_board(board: Board) -> str:
    content = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    # The builders number no panel, and give every row 0.
    for number, panel in enumerate(content["panels"], start=1):
        panel["id"] = number
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name, text in render_boards().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
