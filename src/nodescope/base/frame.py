"""
Frame: everything one tick brought, and how it went.

A source's outcome is part of the frame. Absent (this node does not offer
it), failed (it should be there and could not be had) and zero are three
things; one failing source never stops a tick.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodescope.base.block import Block

State = Literal["ok", "absent", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a source fared in a tick."""

    state: State
    reason: str = ""
    """Empty when ok; otherwise a sentence with the remedy where there is one."""
    cost_seconds: float = 0.0
    """CPU time of this tick's reading and parsing."""
    detail: str = "error"
    """A short word for the error counter's `reason` label."""
    note: str = ""
    """Something to know about a source that is ok, such as its version."""


OK = Outcome("ok")


# The kinds of events, as they stand in archives.
START, EXIT, OOM_EXIT = "start", "exit", "oom_exit"
# Events that end an entity.
ENDS = frozenset({EXIT, OOM_EXIT})


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an entity."""

    kind: str
    """START, EXIT or OOM_EXIT."""
    at_ns: int
    scope: str
    ids: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    sequence: int
    at_ns: int
    mono_ns: int
    blocks: tuple[Block, ...]
    """What was read in this tick; slower tables are in some frames only."""
    outcomes: Mapping[str, Outcome]
    events: tuple[Event, ...] = ()
