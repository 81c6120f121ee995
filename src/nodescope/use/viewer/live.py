"""
/api/live: what is new, once a second, as server-sent events.

A `points` event carries the samples that arrived since the one before; a
series without a new sample is not in it (slow tables come every 5 s). A
`status` event, once a second as well, says whether samples arrive, and the time
of the newest: a page whose containers are all gone moves on by it. A container
that was restarted goes on under the id that was asked for. `node/cpu` is the
`cpu` of the node, as `scope=node` asks for it elsewhere.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from starlette.concurrency import run_in_threadpool

from nodescope.base.errors import RequestRejected
from nodescope.read.series_name import id_of, scope_of
from nodescope.use.answers.containers import Life, group_lives, make_life
from nodescope.use.answers.snapshots import LIVE_MS, NO_FILES, NodeFolders, ServedNode, Snapshot, View
from nodescope.use.answers.wire import Json, number, render_json, seconds

PERIOD_SECONDS = 1.0
# An archive may begin to grow; it is looked at less often.
STILL_SECONDS = 3.0
# A log is looked at this long after the last event, and then until it has grown: a sample is told
# when it is written, not up to a second later.
REST_SECONDS = 0.7
GLANCE_SECONDS = 0.1
# Where nothing is written the page is still told that the viewer is there.
LATEST_SECONDS = 1.5
LISTENERS_MOST = 32
# As many as there may be panels.
METRICS_MOST = 12
# Of what is no container all series are sent, up to so many.
SERIES_MOST = 64
# What has lives, and may be restarted.
FOLLOWED = ("container", "service")


@dataclass(slots=True)
class LiveListener:
    """What one page wants to hear, and how far it has heard."""

    metrics: tuple[str, ...]
    """As they were asked for: a name, or scope/name."""
    lives: tuple[Life, ...]
    node: str
    sent_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    """By the id of a newer life: the id under which the page knows its container."""


def split_scope(word: str) -> tuple[str, str]:
    """The scope, empty for containers, and the metric."""
    scope, slash, metric = word.partition("/")
    return (scope, metric) if slash else ("", word)


def status_of(snapshot: Snapshot, agent: str | None) -> Json:
    lag_ms = snapshot.lag_ms
    live = lag_ms is not None and lag_ms <= LIVE_MS
    return {
        "live": live,
        "reason": "" if live else why_not(snapshot, agent),
        "lag_seconds": seconds(lag_ms),
        "at": seconds(snapshot.to_ms),
    }


def why_not(snapshot: Snapshot, agent: str | None) -> str:
    gone = next((node.gone for node in snapshot.nodes if node.gone), "")
    if gone:
        return gone
    if snapshot.to_ms is None:
        return "there is no data here yet"
    if agent:
        return f"the agent at {agent} answers, but its newest sample is old"
    return "no new samples arrive: this is an archive, or its agent has stopped"


def new_points(view: View, listener: LiveListener) -> Json | None:
    """Samples that this listener has not had; None when there are none."""
    panels: dict[str, dict[str, float | None]] = {}
    newest = 0
    followed = follow_lives(view, listener)
    for node in view.nodes:
        mine = [one for one in followed if one.node == node.name]
        if listener.node and node.name != listener.node:
            continue
        for metric in listener.metrics:
            if listener.lives and not mine and not split_scope(metric)[0]:
                continue
            for life_id, time_ms, value in read_newest(view, node, metric, mine):
                series = listener.asked.get(life_id, life_id)
                key = (metric, series)
                if listener.sent_ms.get(key, 0) < time_ms:
                    listener.sent_ms[key] = time_ms
                    panels.setdefault(metric, {})[series] = number(value)
                    newest = max(newest, time_ms)
    if not newest:
        return None
    return {
        "at": seconds(newest),
        "lag_seconds": seconds(max(0, view.snapshot.now_ms - newest)),
        "panels": panels,
    }


def follow_lives(view: View, listener: LiveListener) -> list[Life]:
    """The newest life of each container that was asked for; notes under which id it was."""
    if not listener.lives:
        return []
    asked = {life.id for life in listener.lives}
    found = []
    newer = [life for life in list_recent(view) if life.id not in asked]
    for one in group_lives([*listener.lives, *newer]):
        known = next((life.id for life in one.lives if life.id in asked), "")
        if known:
            found.append(one.newest)
            listener.asked[one.newest.id] = known
    return found


def list_recent(view: View) -> list[Life]:
    """
    Who has a sample of the last minute.

    Asked for every second, so the archive is not looked through: a week of short
    jobs has tens of thousands of lives, and none of them can have a new sample.
    """
    return [
        make_life(subject, node.name, view.suffix_of(node))
        for node in view.nodes
        for subject in node.recent.subjects.values()
        if scope_of(subject) in FOLLOWED
    ]


def read_newest(
    view: View, node: ServedNode, word: str, lives: Sequence[Life]
) -> list[tuple[str, int, float]]:
    recent = node.recent
    if recent.to_ms is None:
        return []
    scope, metric = split_scope(word)
    wanted = {one.id for one in lives} if not scope else set()
    ids = sorted(wanted) if wanted and all(one.scope == "container" for one in lives) else None
    try:
        answer = view.engine.query(
            NO_FILES,
            metric,
            ids,
            recent.to_ms - 60_000,
            recent.to_ms,
            1000,
            tail=recent,
            scope=scope or None,
        )
    except RequestRejected:
        return []
    lines = answer.lines[:SERIES_MOST] if scope else answer.lines
    points = [(id_of(line.subject, view.suffix_of(node)), line.points) for line in lines]
    return [
        (series, int(one.time_ms[-1]), float(one.mean[-1]))
        for series, one in points
        if len(one.time_ms) and (not wanted or series in wanted) and not np.isnan(one.mean[-1])
    ]


def render_event(name: str, content: Json) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + render_json(content) + b"\n\n"


async def stream(
    folders: NodeFolders, listener: LiveListener, is_stopping: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Until the page leaves or the server stops."""
    agent = folders.agent.address if folders.agent else None
    # A page that reconnects does so after a second.
    yield b"retry: 1000\n\n"
    while not is_stopping():
        begun = asyncio.get_running_loop().time()
        view = await run_in_threadpool(folders.view)
        status = status_of(view.snapshot, agent)
        yield render_event("status", status)
        points = await run_in_threadpool(new_points, view, listener)
        if points:
            yield render_event("points", points)
        if folders.follows_logs:
            await await_news(folders, begun, LATEST_SECONDS if status["live"] else STILL_SECONDS)
        else:
            await asyncio.sleep(PERIOD_SECONDS if status["live"] else STILL_SECONDS)


async def await_news(folders: NodeFolders, begun: float, latest_seconds: float) -> None:
    """Until a log has grown; counted from when the last event was begun, however long it took."""
    clock = asyncio.get_running_loop().time
    await asyncio.sleep(max(0.0, begun + REST_SECONDS - clock()))
    # The log is another process's: its growth can only be looked for.
    while clock() < begun + latest_seconds and not await run_in_threadpool(folders.has_news):  # noqa: ASYNC110
        await asyncio.sleep(GLANCE_SECONDS)
