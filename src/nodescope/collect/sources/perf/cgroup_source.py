"""
Cycles, instructions and last-level cache of single containers, for those who ask.

Reads   perf_event_open(2) with PERF_FLAG_PID_CGROUP: two pairs of events per core and container
Needs   what `perf` needs, and a perf_event hierarchy of cgroup v1 or cgroup v2; a container that was
        asked for: setting perf_containers, or /window?scope=container&perf=NAME
Docs    https://man7.org/linux/man-pages/man2/perf_event_open.2.html

    container web, core 3: enabled 104000213 ns, running 52000106 ns, cycles 310000000, instructions 420000000

A counter of a cgroup is switched at every context switch into or out of it, so
this costs the node, not only us: nothing is counted unless somebody asks, and
never more than perf_descriptors allow. Time counts only while the container is
on the core: running < enabled is a core that took turns between counters, and
the growth of that interval is scaled by enabled / running.
"""

import fnmatch
from collections.abc import Iterable
from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.perf.perf_event import (
    GROUPS,
    HARDWARE,
    NO_PMU,
    OF_CGROUP,
    SYSTEM_CALLS,
    Count,
    PerfCalls,
    close_descriptor,
    explain,
)
from nodescope.collect.sources.perf.source import COLUMNS, Sum, list_online

TABLE = Table(
    "perf_cgroup",
    "perf_cgroup",
    ("container", "service"),
    tuple(
        Metric(
            f"perf_cgroup.{word}",
            "counter",
            f"{sentence[:-1]}, since it was asked for."
            if word != "cycles"
            else "Cycles, since it was asked for.",
            published.replace("perf_", "container_perf_", 1),
        )
        for _, word, published, sentence in COLUMNS
    ),
)
# Where a container's cgroup is known to perf: v1, hybrid, v2. The first that has it.
BASES = ("sys/fs/cgroup/perf_event", "sys/fs/cgroup/unified", "sys/fs/cgroup")
NO_TREE = "no cgroup tree for perf: neither /sys/fs/cgroup/perf_event nor cgroup v2 is mounted"
NOBODY_ASKED = "nobody asked: set perf_containers, or GET /window?scope=container&perf=NAME"
Key = tuple[str, str]
"""(core, group)."""


def is_meant(member: LiveContainer, pattern: str) -> bool:
    """By namespace/pod/container, by any of the three, or by the beginning of its id."""
    labels = dict(member.entity.labels)
    names = [labels.get(key, "") for key in ("namespace", "pod", "container")]
    known = ("/".join(names), *names, member.path.rpartition("/")[2])
    if any(name and fnmatch.fnmatchcase(name, pattern) for name in known):
        return True
    return bool(member.cgroup.container_id) and member.cgroup.container_id.startswith(pattern)


def choose(
    members: Iterable[LiveContainer], patterns: Iterable[str], limit: int
) -> tuple[list[LiveContainer], int]:
    """The members meant, in the order of the patterns, and how many did not fit."""
    listed = list(members)
    wanted: dict[Entity, LiveContainer] = {}
    for pattern in patterns:
        for member in listed:
            if pattern and is_meant(member, pattern):
                wanted.setdefault(member.entity, member)
    found = list(wanted.values())
    return found[:limit], max(0, len(found) - limit)


class PerfCgroupSource(CallDefaults):
    """Pairs of events on every core, for the containers that are asked for."""

    name = "perf_cgroup"

    def __init__(
        self,
        context: Context,
        calls: PerfCalls = SYSTEM_CALLS,
        kind: int = HARDWARE,
        groups: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.pace_seconds = context.settings.interval_seconds
        self.note = ""
        self._context = context
        self._calls = calls
        self._kind = kind
        self._events = groups or GROUPS
        self._opened: dict[Entity, dict[Key, list[int]]] = {}
        self._sums: dict[Entity, dict[Key, Sum]] = {}
        self._failed: dict[Entity, str] = {}
        if context.root.is_fixture:
            raise SourceAbsent("not captured on this fixture node")
        base = next((one for one in BASES if context.root.exists(f"{one}/cgroup.procs")), None)
        if base is None:
            raise SourceAbsent(NO_TREE)
        self._base = base
        self._online = list_online(context)
        self._try()

    def _try(self) -> None:
        """One pair on one core for the whole tree: what it says, all would."""
        try:
            opened = self._open_cgroup(self._base, self._online[:1])
        except OSError as error:
            raise explain(error, self._context.root) from error
        if not opened:
            raise SourceAbsent(NO_PMU)
        self._calls.close_groups(opened.values())

    def _open_cgroup(self, folder: str, cores: list[int]) -> dict[Key, list[int]]:
        """Every pair that the processor has; the first refusal where it has none."""
        opened: dict[Key, list[int]] = {}
        refusal: OSError | None = None
        cgroup = self._context.root.open(folder)
        try:
            for core in cores:
                for name, events in self._events.items():
                    try:
                        opened[str(core), name] = self._calls.open_group(
                            core, events, cgroup, OF_CGROUP, self._kind
                        )
                    except OSError as error:
                        refusal = refusal or error
        finally:
            close_descriptor(cgroup)
        if not opened and refusal:
            raise refusal
        return opened

    def read(self) -> Any:
        """{entity: {(core, group): [enabled ns, running ns, first, second]}}."""
        online = list_online(self._context)
        if online != self._online:
            # A core came or went: the sums stay, the counters are opened anew.
            self._leave(self._opened)
            self._online = online
        self._settle()
        return {entity: self._ask(groups) for entity, groups in self._opened.items()}

    def _settle(self) -> None:
        """Open for who is asked for now, close for who no longer is."""
        context = self._context
        patterns = (*context.settings.perf_containers, *context.perf_requests.current())
        needed = 2 * len(self._events) * max(1, len(self._online))
        limit = context.settings.perf_descriptors // needed
        chosen, left_out = choose(context.live_containers.members, patterns, limit)
        entities = {member.entity for member in chosen}
        self._leave([entity for entity in self._opened if entity not in entities])
        self._sums = {entity: sums for entity, sums in self._sums.items() if entity in entities}
        self._failed = {entity: why for entity, why in self._failed.items() if entity in entities}
        for member in chosen:
            if member.entity not in self._opened:
                self._enter(member)
        self.note = self._describe(patterns, left_out, limit)

    def _enter(self, member: LiveContainer) -> None:
        try:
            self._opened[member.entity] = self._open_cgroup(f"{self._base}/{member.path}", self._online)
            self._failed.pop(member.entity, None)
        except OSError as error:
            # Gone meanwhile, or in another hierarchy only; tried again with the next reading.
            self._failed[member.entity] = str(error.strerror)

    def _describe(self, patterns: tuple[str, ...], left_out: int, limit: int) -> str:
        if not patterns:
            return NOBODY_ASKED
        words = [f"counting {len(self._opened)} containers"]
        if left_out:
            words.append(f"{left_out} more do not fit: perf_descriptors allow {limit}")
        words += sorted(set(self._failed.values()))
        return "; ".join(words)

    def _ask(self, groups: dict[Key, list[int]]) -> dict[Key, list[int]]:
        return {key: found for key, group in groups.items() if (found := self._calls.read_group(group))}

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        values = np.full((len(answer), len(TABLE.metrics)), NAN)
        for row, (entity, groups) in enumerate(answer.items()):
            sums = self._sums.setdefault(entity, {})
            for key, numbers in groups.items():
                # Opened by us: what it shows at first has grown since then.
                sums.setdefault(key, Sum(Count(0, 0, 0, 0))).add(Count(*numbers), 1)
            for place, name in enumerate(self._events):
                mine = [one for (_, group), one in sums.items() if group == name]
                if mine:
                    values[row, 2 * place] = sum(one.first for one in mine)
                    values[row, 2 * place + 1] = sum(one.second for one in mine)
        return (Block(TABLE, tuple(answer), values, mono_ns),)

    def _leave(self, entities: Iterable[Entity]) -> None:
        for entity in list(entities):
            self._calls.close_groups(self._opened.pop(entity).values())
            for sums in self._sums.get(entity, {}).values():
                # Counters that are opened anew start at 0.
                sums.before = Count(0, 0, 0, 0)

    def close(self) -> None:
        self._leave(self._opened)
