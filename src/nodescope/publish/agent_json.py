"""JSON answers of the agent: windows, health, status, each a plain dictionary."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nodescope import __version__
from nodescope.base.clock import Clock
from nodescope.base.entity import SCOPES
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import Outcome
from nodescope.base.settings_load import LoadedSettings
from nodescope.base.status import SamplerStatus
from nodescope.base.text import hint_nearest
from nodescope.hold.core_window import add_core_features, list_known_cores, parse_cores
from nodescope.hold.ring import Ring
from nodescope.hold.window import (
    EntityWindow,
    check_statistics,
    take_node_window,
    take_scope_window,
)

# Shown as "set": their values are not published.
SECRET_SETTINGS = frozenset({"token_file"})
LEAST_SECONDS = 1e-6
# A window over this many entities is more than a person or a scheduler reads.
ENTITIES = 10000
# Names of per-core features: ours, or the inputs of the original model.
WINDOW_NAMES = ("plain", "thesis")


def parse_window_seconds(text: str, ring: Ring, scope: str) -> float:
    """A number of seconds within the ring's capacity, or a refusal that names the range."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    accepted = ring.accepted_seconds(scope)
    # Below a microsecond there is no window: its beginning would be its end.
    if not LEAST_SECONDS <= seconds <= accepted:
        raise RequestRejected(
            f"window_seconds={text[:40]!r} is not accepted; accepted: a number of seconds more than 0 and at most {accepted:g}"
        )
    return seconds


def answer_node_window(
    ring: Ring, clock: Clock, node: str, seconds: float, cores: str = "", names: str = ""
) -> dict[str, Any]:
    """The scheduler's JSON; of single cores when they are asked for."""
    if names not in ("", *WINDOW_NAMES):
        raise RequestRejected(f"names={names[:40]!r} is not accepted; accepted: {', '.join(WINDOW_NAMES)}")
    now_mono_ns = clock.mono_ns()
    window = take_node_window(ring, seconds, now_mono_ns)
    if cores or names == "thesis":
        wanted = parse_cores(cores, ring) if cores else tuple(map(str, list_known_cores(ring)))
        add_core_features(window, ring, now_mono_ns, wanted, thesis=names == "thesis")
    return {
        "window_seconds": shorten(seconds),
        "samples_count": window.samples,
        "samples_expected": window.expected,
        "completeness": min(1.0, window.samples / window.expected) if window.expected else 1.0,
        "newest_seconds": window.newest_seconds,
        "node": node,
        "metrics": window.metrics,
        "samples": window.samples_of,
        "missing": window.missing,
        "sources": window.sources,
        "timestamp": clock.wall_ns() / 1e9,
    }


def shorten(seconds: float) -> float | int:
    return int(seconds) if seconds == int(seconds) else seconds


def answer_scope_window(
    ring: Ring,
    clock: Clock,
    node: str,
    scope: str,
    seconds: float,
    statistics: tuple[str, ...],
    filters: Mapping[str, str],
    metrics: tuple[str, ...],
) -> dict[str, Any]:
    check_statistics(statistics)
    windows = take_scope_window(ring, scope, seconds, clock.mono_ns(), statistics, filters, metrics)
    return {
        "window_seconds": shorten(seconds),
        "scope": scope,
        "node": node,
        "statistics": list(statistics),
        "entities": [_entity_json(window) for window in windows[:ENTITIES]],
        "left_out": max(0, len(windows) - ENTITIES),
        "timestamp": clock.wall_ns() / 1e9,
    }


def _entity_json(window: EntityWindow) -> dict[str, Any]:
    return {
        "labels": {**dict(window.entity.labels), **dict(window.entity.details)},
        "ids": list(window.entity.ids),
        "samples_count": window.samples,
        "metrics": window.metrics,
        "missing": window.missing,
    }


def check_scope(scope: str) -> str:
    if scope not in SCOPES:
        raise RequestRejected(
            f'no scope "{scope[:40]}"{hint_nearest(scope, SCOPES)} accepted: {", ".join(SCOPES)}'
        )
    return scope


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """Whether the loop runs, and whether its data are fresh."""

    live: bool
    ready: bool
    reason: str
    loop_seconds: float | None
    newest_seconds: float | None


def judge_health(status: SamplerStatus, now_mono_ns: int) -> AgentHealth:
    """Live while the loop comes round within ten intervals; ready within three of a sample; of short ones in 10 and 3 s."""
    loop_ns, newest_ns = status.counters.loop_mono_ns, status.counters.newest_mono_ns
    loop_seconds = None if loop_ns is None else (now_mono_ns - loop_ns) / 1e9
    newest_seconds = None if newest_ns is None else (now_mono_ns - newest_ns) / 1e9
    interval_seconds = status.interval_seconds
    # At least so many seconds: a machine under heavy load is slow, not dead.
    fresh_seconds = max(3.0, 3 * interval_seconds)
    live = loop_seconds is None or loop_seconds < max(10.0, 10 * interval_seconds)
    ready = newest_seconds is not None and newest_seconds < fresh_seconds
    if newest_seconds is None:
        reason = "no sample yet: the first tick has not come round"
    elif not live:
        reason = f"the sampling loop has not come round for {loop_seconds:.1f} s"
    elif not ready:
        reason = f"the newest sample is {newest_seconds:.1f} s old; fresh is below {fresh_seconds:g} s"
    else:
        reason = "ok"
    return AgentHealth(live, ready, reason, loop_seconds, newest_seconds)


def answer_status(
    status: SamplerStatus,
    ring: Ring,
    loaded: LoadedSettings,
    now_mono_ns: int,
    node: str,
    permissions: Mapping[str, Any],
) -> dict[str, Any]:
    """Every source with outcome, reason and cost; what is slowed, dropped, in force."""
    counters = status.counters
    return {
        "node": node,
        "version": __version__,
        "health": asdict(judge_health(status, now_mono_ns)),
        "sources": {
            name: _source_json(name, outcome, status, now_mono_ns)
            for name, outcome in sorted(status.outcomes.items())
        },
        "tables": {name: asdict(table) for name, table in status.tables.items()},
        "budget": {
            "ratio": loaded.settings.budget_ratio,
            "used_ratio": status.load_ratio,
            "slowed": {name: table.every_ticks for name, table in status.tables.items() if table.slowed},
        },
        "files": asdict(status.files),
        "ring": {
            "frames": ring.frame_count,
            "bytes": ring.used_bytes,
            "bytes_most": ring.ring_bytes,
            "accepted_window_seconds": {
                scope: ring.accepted_seconds(scope) for scope in ("node", "container", "process")
            },
        },
        "ticks": {"taken": counters.ticks, "missed": counters.missed},
        "containers": {
            "refused": counters.containers.refused_now,
            "refused_so_far": dict(counters.containers.refused),
            "cut": counters.containers.cut_now,
            "too_short_to_measure": counters.containers.unmeasured.total(),
        },
        "series_over_limit": {scope: count for scope, count in counters.over_limit.items() if count},
        "permissions": dict(permissions),
        "settings": {
            key: {
                "value": "set" if key in SECRET_SETTINGS and value else value,
                "origin": loaded.origins[key],
            }
            for key, value in asdict(loaded.settings).items()
        },
    }


def _source_json(name: str, outcome: Outcome, status: SamplerStatus, now_mono_ns: int) -> dict[str, Any]:
    last_ns = status.counters.last_ok_mono_ns.get(name)
    return {
        "state": outcome.state,
        "reason": outcome.reason,
        "note": outcome.note,
        "cost_seconds": outcome.cost_seconds,
        "last_success_seconds": None if last_ns is None else (now_mono_ns - last_ns) / 1e9,
        "errors": {
            reason: count
            for (source, reason), count in status.counters.errors.copy().items()
            if source == name
        },
    }
