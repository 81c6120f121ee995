"""
session.json: the agent that writes to this folder, since when, with which settings.

Replaced atomically at every start; the one before moves to sessions/<run>.json,
so that a later reader knows when the agent was restarted, and its settings then.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from nodescope.keep.disk import Disk, read_json
from nodescope.keep.folder import DataFolder


@dataclass(frozen=True, slots=True)
class Session:
    """One run of an agent."""

    run_id: str
    identifier: str
    start_time: str
    node_name: str
    cluster_name: str
    sampling_interval_ms: int
    rotation_seconds: float
    version: str
    labels: Mapping[str, str]
    boot_id: str = ""
    """Of the machine: the monotonic times of this run count from that start."""


def render_time(at_ns: int) -> str:
    """RFC 3339 in UTC."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_session(disk: Disk, folder: DataFolder, session: Session) -> None:
    before = read_json(folder.session)
    run = before.get("run_id")
    if run == session.run_id:
        return
    if isinstance(run, str) and run.replace("-", "").isalnum():
        disk.make_folder(folder.sessions)
        disk.write_whole(folder.sessions / f"{run}.json", render(before))
    disk.write_whole(folder.session, render(asdict(session)))


def render(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
