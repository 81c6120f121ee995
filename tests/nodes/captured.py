"""Fixture nodes that were captured on a machine (`make capture`): the folders beside this module."""

from pathlib import Path

HERE = Path(__file__).parent


def list_captured() -> list[Path]:
    return sorted(path.parent for path in HERE.glob("*/node.toml"))
