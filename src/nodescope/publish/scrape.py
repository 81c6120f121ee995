"""
/metrics: what a scrape gets, assembled once per tick and flavour.

Slow tables are shown with their last values for as long as their source is
ok; a source that is absent or failed shows nothing but its outcome.
"""

import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nodescope.base.block import Block
from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import Outcome
from nodescope.base.text import hint_nearest
from nodescope.hold.ring import Ring
from nodescope.publish.derived import derive_edge
from nodescope.publish.drop_in import build_drop_in
from nodescope.publish.exposition import Exposition, count_cells, list_families, render_pieces
from nodescope.publish.self_metrics import SelfMetrics
from nodescope.publish.textfile import TextfileFolder
from nodescope.serve.prometheus_text import MetricFamily, build_single, render_families

# Groups of sources that may be asked for by one word.
GROUPS = {"gpu": ("nvidia", "amd", "pod_resources")}
# Selections kept ready: one per scrape job that asks for its own.
SELECTIONS = 8
# Some 1,700 containers: from here on prefixes are made at every scrape.
LARGE_CELLS = 200_000
# Two minutes without a scrape, as the memory budget looks every half minute.
IDLE_MOST = 4


@dataclass(slots=True)
class Prepared:
    """One selection in one flavour."""

    exposition: Exposition
    sequence: int = -1
    body: bytes = b""
    """Shared by all who ask in one tick."""
    idle: int = 0
    """How often `forget` found it unused."""


@dataclass(slots=True)
class Scrape:
    """Answers scrapes from the ring."""

    ring: Ring
    own: SelfMetrics
    clock: Clock
    mode: str
    large_cells: int = LARGE_CELLS
    textfiles: TextfileFolder | None = None
    """Where other programs leave metrics of theirs."""
    _prepared: OrderedDict[tuple[bool, tuple[str, ...]], Prepared] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, sources: tuple[str, ...], *, openmetrics: bool) -> Iterator[bytes]:
        """The exposition of now in one piece, or, where it is large, in one a family."""
        newest = self.ring.newest()
        outcomes = newest.outcomes if newest else {}
        wanted = expand_sources(sources, tuple(outcomes))
        blocks = self._select(wanted, outcomes)
        if count_cells(blocks) <= self.large_cells:
            yield self._render_once(
                wanted, blocks, newest.sequence if newest else -1, openmetrics=openmetrics
            )
            yield self._render_own(sources, outcomes, blocks, openmetrics=openmetrics)
            return
        with self._lock:
            self._prepared.pop((openmetrics, wanted), None)
        yield from render_pieces(blocks, self.mode, openmetrics=openmetrics)
        yield self._render_own(sources, outcomes, blocks, openmetrics=openmetrics)

    def forget(self) -> None:
        """Texts of ticks that are over; what nobody asked for lately."""
        newest = self.ring.newest()
        with self._lock:
            for key, prepared in list(self._prepared.items()):
                prepared.idle += 1
                if newest is None or prepared.sequence < newest.sequence:
                    prepared.body, prepared.sequence = b"", -1
                if prepared.idle > IDLE_MOST:
                    del self._prepared[key]

    def render(self, sources: tuple[str, ...], *, openmetrics: bool) -> str:
        """The exposition of now; RequestRejected for a source we do not know."""
        return b"".join(self.read(sources, openmetrics=openmetrics)).decode()

    def _render_once(
        self, wanted: tuple[str, ...], blocks: list[Block], sequence: int, *, openmetrics: bool
    ) -> bytes:
        """Once per tick and flavour, from the blocks of that tick."""
        with self._lock:
            prepared = self._prepare(openmetrics, wanted)
            if prepared.sequence < sequence:
                prepared.body = prepared.exposition.render(blocks).encode("utf-8", "replace")
                prepared.sequence = sequence
            prepared.idle = 0
            return prepared.body

    def _render_own(
        self,
        sources: tuple[str, ...],
        outcomes: Mapping[str, Outcome],
        blocks: list[Block],
        *,
        openmetrics: bool,
    ) -> bytes:
        """What the agent says about itself, unless single sources are asked for; and the end."""
        end = "# EOF\n" if openmetrics else ""
        if sources:
            return end.encode()
        own = [*self.own.families(outcomes, self.clock.mono_ns()), *self._build_drop_in(outcomes)]
        text = render_families(own, openmetrics=openmetrics)
        text += self._render_textfiles(own, blocks, openmetrics=openmetrics)
        return (text + end).encode("utf-8", "replace")

    def _build_drop_in(self, outcomes: Mapping[str, Outcome]) -> Iterable[MetricFamily]:
        if self.mode == "compatible":
            yield from build_drop_in(outcomes, self.clock.wall_ns())
            if self.textfiles is None:
                yield build_single("node_textfile_scrape_error", "No textfile folder is set.", 0)

    def _render_textfiles(self, own: list[MetricFamily], blocks: list[Block], *, openmetrics: bool) -> str:
        if self.textfiles is None:
            return ""
        families = list_families([block.table for block in blocks], self.mode, openmetrics=openmetrics)
        taken = frozenset([*(family.name for family in own), *(family.name for family in families)])
        answer = self.textfiles.read(taken, self.clock.wall_ns() / 1e9)
        told = render_families(answer.own_families(), openmetrics=openmetrics)
        return told + answer.render(openmetrics=openmetrics)

    def _prepare(self, openmetrics: bool, wanted: tuple[str, ...]) -> Prepared:
        key = (openmetrics, wanted)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = Prepared(Exposition(self.mode, openmetrics=openmetrics))
            if len(self._prepared) > SELECTIONS:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(key)
        return prepared

    def _select(self, wanted: tuple[str, ...], outcomes: Mapping[str, Outcome]) -> list[Block]:
        latest = {
            name: moment
            for name, moment in self.ring.latest().items()
            if (outcome := outcomes.get(moment.block.table.source)) is None or outcome.state == "ok"
        }
        blocks = [*(moment.block for moment in latest.values()), *derive_edge(self.ring, latest)]
        return [block for block in blocks if not wanted or block.table.source in wanted]


def expand_sources(sources: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Source names from a query, groups resolved; a wrong one is refused by name."""
    accepted = {*known, *GROUPS, *(source for group in GROUPS.values() for source in group), "node"}
    for source in sources:
        if source not in accepted:
            names = ", ".join(sorted(accepted))
            raise RequestRejected(
                f'no source "{source[:60]}"{hint_nearest(source, accepted)} accepted: {names}'
            )
    return tuple(sorted({name for source in sources for name in GROUPS.get(source, (source,))}))


def compress_pieces(pieces: Iterable[bytes]) -> bytes:
    """gzip, fast: text of metrics shrinks to a tenth at any level. One piece at a time is in memory."""
    packer = zlib.compressobj(1, wbits=31)
    packed = [packer.compress(piece) for piece in pieces]
    return b"".join([*packed, packer.flush()])


def read_weights(header: str) -> Iterator[tuple[str, list[str], float]]:
    """What an Accept header lists: each with its parameters and its weight."""
    for part in header.lower().split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        yield kind, parameters, weight


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is listed and not with weight 0, which means no."""
    return any(kind == "gzip" and weight > 0 for kind, _, weight in read_weights(accept_encoding))


def prefers_openmetrics(accept: str) -> bool:
    """Whether OpenMetrics is wanted at least as much as plain text."""
    best = {"openmetrics": 0.0, "text": 0.0}
    for kind, parameters, weight in read_weights(accept):
        # OpenMetrics 2 is another format; we speak 1.
        if kind == "application/openmetrics-text" and not any(
            piece.startswith("version=2") for piece in parameters
        ):
            best["openmetrics"] = max(best["openmetrics"], weight)
        elif kind in ("text/plain", "text/*"):
            best["text"] = max(best["text"], weight)
    return best["openmetrics"] > 0 and best["openmetrics"] >= best["text"]
