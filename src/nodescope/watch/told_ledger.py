"""
What one way out has told already, kept in a small file: a restart neither repeats nor forgets.

    {"since": T, "told": {ID: REVISION, ...}, "notes": {ID: ..., ...}}

Each finding has a place of its own, so that one that is refused keeps no other
waiting. Findings that the store no longer knows leave.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodescope.base.findings import NodeFinding
from nodescope.base.log import Log
from nodescope.keep.disk import Disk, read_json

log = Log("watch")


@dataclass(slots=True)
class ToldLedger:
    """Used by the thread of its way out alone."""

    path: Path | None = None
    """None keeps it in memory."""
    disk: Disk = field(default_factory=Disk)
    since: float = 0.0
    """When this way out was first turned on: what ended before is not its business."""
    told: dict[str, int] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    """What else the way out keeps, by the id of a finding."""
    _is_unsaved: bool = False

    def load(self, now: float) -> None:
        content = read_json(self.path) if self.path else {}
        told, notes, since = content.get("told"), content.get("notes"), content.get("since")
        self.since = since if isinstance(since, float) else now
        self._is_unsaved = self.since == now
        if isinstance(told, dict):
            self.told = {key: value for key, value in told.items() if type(value) is int}
        self.notes = notes if isinstance(notes, dict) else {}

    def settle(self, finding: NodeFinding) -> None:
        """This moment of its life, and all before it, are told."""
        self.told[finding.id] = max(finding.revision, self.told.get(finding.id, 0))
        self._is_unsaved = True

    def note(self, identity: str, value: Any) -> None:
        self.notes[identity] = value
        self._is_unsaved = True

    def list_untold(self, changes: Iterable[NodeFinding]) -> list[NodeFinding]:
        return [one for one in changes if one.revision > self.told.get(one.id, 0)]

    def forget_all_but(self, known: Iterable[str]) -> None:
        kept = set(known)
        for book in (self.told, self.notes):
            for identity in [one for one in book if one not in kept]:
                del book[identity]
                self._is_unsaved = True

    def save(self) -> None:
        """Where something has changed; a full disk costs at most that something is told again, under the same name."""
        if self.path is None or not self._is_unsaved:
            return
        state = {"since": self.since, "told": self.told, "notes": self.notes}
        content = json.dumps(state, allow_nan=False).encode()
        try:
            self.disk.write_whole(self.path, content)
            self._is_unsaved = False
        except OSError as error:
            log.warning("what was told is not saved", path=str(self.path), error=str(error))
