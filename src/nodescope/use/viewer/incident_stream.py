"""
/api/incidents as server-sent events: what a page needs for its cards, whenever it has changed.

A `cards` event carries for every node what its watcher found and the incidents
of the last hour of its data. The newest findings are looked for every five
seconds, incidents, which cost more, every minute. A `still` event goes out every
fifteen seconds: neither a proxy nor the page must think the connection dead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from starlette.concurrency import run_in_threadpool

from nodescope.base.clock import Clock
from nodescope.base.errors import NodescopeError
from nodescope.serve.turns import TurnMissed
from nodescope.use.answers.incidents.incident import IncidentList
from nodescope.use.answers.node_summary.wrongs import find_last_hour, read_node, render_wrongs
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.wire import render_json
from nodescope.use.viewer.live import render_event
from nodescope.use.viewer.request import Viewer

PERIOD_SECONDS = 5.0
INCIDENTS_NS = 60_000_000_000
STILL_EVERY = 3


@dataclass(slots=True)
class CardWatch:
    """What one page was sent last, and the incidents, which are looked for once a minute."""

    node: str
    most: int
    clock: Clock
    sent: bytes = b""
    _incidents: dict[str, IncidentList | None] = field(default_factory=dict)
    _looked_mono_ns: int | None = None

    def look(self, view: View) -> bytes | None:
        """The event, where something in it is new."""
        self._forget_old_incidents()
        find = partial(self._find, view)
        nodes = [node for node in view.nodes if node.to_ms is not None]
        content = render_wrongs([replace(read_node(node, find), incidents=find(node)) for node in nodes])
        # The newest sample is of another second each time, which is no news.
        stamped = [{**node, "newest": 0} for node in content["nodes"]]
        seen = render_json({"nodes": stamped})
        if seen == self.sent:
            return None
        self.sent = seen
        return render_event("cards", content)

    def _forget_old_incidents(self) -> None:
        now_ns = self.clock.mono_ns()
        if self._looked_mono_ns is None or now_ns - self._looked_mono_ns >= INCIDENTS_NS:
            self._looked_mono_ns = now_ns
            self._incidents = {}

    def _find(self, view: View, node: ServedNode) -> IncidentList | None:
        if node.name not in self._incidents:
            self._incidents[node.name] = find_last_hour(view, node, most=self.most)
        return self._incidents[node.name]


async def stream_cards(
    viewer: Viewer, watch: CardWatch, is_stopping: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Until the page leaves or the server stops; a look takes a turn as every answer does."""
    yield b"retry: 2000\n\n"
    turn = 0
    while not is_stopping():
        event = await take_look(viewer, watch)
        if event:
            yield event
        turn += 1
        if turn % STILL_EVERY == 0:
            yield render_event("still", {})
        await asyncio.sleep(PERIOD_SECONDS)


async def take_look(viewer: Viewer, watch: CardWatch) -> bytes | None:
    """None where others come first, or where there is nothing to look at yet: the next look is soon."""
    try:
        async with viewer.turns.take():
            return await run_in_threadpool(lambda: watch.look(viewer.view(watch.node)))
    except (TurnMissed, NodescopeError):
        return None
