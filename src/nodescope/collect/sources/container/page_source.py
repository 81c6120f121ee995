"""
Where each container's memory lies: pages by NUMA node, and huge pages.

Reads   memory.numa_stat, hugetlb.SIZE.{current,events} of every container's cgroup (v1: usage_in_bytes,
        max_usage_in_bytes, failcnt); /sys/devices/system/node, /sys/kernel/mm/hugepages
Needs   Linux with more than one NUMA node, or with huge pages set aside
Docs    https://docs.kernel.org/admin-guide/cgroup-v2.html

    anon N0=1052672 N1=4096                     v2, bytes
    hierarchical_anon=257 N0=256 N1=1           v1, pages

A node with one NUMA node and no huge pages has nothing to tell, and no file of a
container is read. Names and labels are cAdvisor's.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import list_names, read_folder, split_lines, to_number
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.container.cgroup_tree import BASE, find_hierarchies

NODES = "sys/devices/system/node"
POOLS = "sys/kernel/mm/hugepages"
# Pages that are set aside now, and those that may be when they are asked for.
SET_ASIDE = ("nr_hugepages", "nr_overcommit_hugepages")
NUMA_FILE = "memory.numa_stat"
KINDS = ("file", "anon", "unevictable")
NUMA = Table(
    "container_page",
    "container_page",
    ("device",),
    tuple(
        Metric(
            f"container_page.{kind}",
            "gauge",
            "Pages of the container's memory on a NUMA node.",
            "container_memory_numa_pages",
            labels=(("scope", "hierarchy"), ("type", kind)),
        )
        for kind in KINDS
    ),
)
HUGE = Table(
    "container_page.huge",
    "container_page",
    ("device",),
    (
        Metric(
            "container_page.hugetlb_usage",
            "gauge",
            "Bytes in huge pages of one size.",
            "container_hugetlb_usage_bytes",
            unit="bytes",
        ),
        Metric(
            "container_page.hugetlb_max_usage",
            "gauge",
            "The most bytes that were in huge pages; v1 only.",
            "container_hugetlb_max_usage_bytes",
            unit="bytes",
        ),
        Metric(
            "container_page.hugetlb_failcnt",
            "counter",
            "Times that the limit of huge pages was hit.",
            "container_hugetlb_failcnt",
        ),
    ),
)
_HUGE_FILE = re.compile(r"hugetlb\.(\w+)\.(current|events|usage_in_bytes|max_usage_in_bytes|failcnt)")
_KEPT = ("container_id", "pod_uid", "qos")
Texts = Mapping[str, str]


class ContainerPageSource(CallDefaults):
    """Asks every container, where there is anything to ask for."""

    name = "container_page"
    pace_seconds = 30.0
    deadline_seconds = 20.0

    def __init__(self, context: Context) -> None:
        self._context = context
        paths = {one.name: one.path for one in find_hierarchies(context.root)}
        if not paths:
            raise SourceAbsent("no cgroup file system at /sys/fs/cgroup")
        self._memory = paths.get("memory") or paths.get("v2", "")
        # The controller is no hierarchy of its own in v2.
        own = f"{BASE}/hugetlb"
        self._huge = own if context.root.exists(own) else paths.get("v2", "")
        self._page_bytes = 1.0 if "memory" in paths else float(context.page_bytes)

    def read(self) -> Any:
        """[(container, {file: text})]; only what this node can tell apart."""
        has_nodes = len(list_names(self._context, NODES, r"node\d+")) > 1
        has_pools = any(map(self._is_set_aside, list_names(self._context, POOLS)))
        if not has_nodes and not has_pools:
            raise SourceAbsent("one NUMA node and no huge pages: there is nothing to tell apart")
        members = self._context.live_containers.members
        return [(member.entity, dict(self._read_files(member, has_nodes, has_pools))) for member in members]

    def _is_set_aside(self, pool: str) -> bool:
        texts = read_folder(self._context, f"{POOLS}/{pool}", SET_ASIDE)
        return any(to_number(text) > 0 for text in texts.values())

    def _read_files(
        self, member: LiveContainer, has_nodes: bool, has_pools: bool
    ) -> Iterator[tuple[str, str]]:
        if has_nodes and self._memory:
            yield from read_folder(self._context, f"{self._memory}/{member.path}", (NUMA_FILE,)).items()
        if has_pools and self._huge:
            folder = f"{self._huge}/{member.path}"
            files = list_names(self._context, folder, _HUGE_FILE.pattern)
            yield from read_folder(self._context, folder, files).items()

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        numa: dict[Entity, list[float]] = {}
        huge: dict[Entity, list[float]] = {}
        for entity, texts in answer:
            for node, pages in parse_numa(texts.get(NUMA_FILE), self._page_bytes).items():
                numa[name_part(entity, "node", node)] = pages
            for size, values in parse_huge(texts).items():
                huge[name_part(entity, "pagesize", size)] = values
        limit = self._context.limit("device")
        return tuple(
            make_block(table, dict(list(rows.items())[:limit]), mono_ns)
            for table, rows in ((NUMA, numa), (HUGE, huge))
        )


def name_part(entity: Entity, label: str, value: str) -> Entity:
    kept = tuple((key, text) for key, text in entity.details if key in _KEPT)
    return Entity("device", (label, *entity.ids[:1], value), (*entity.labels, (label, value)), kept)


def parse_numa(text: str | None, page_bytes: float) -> dict[str, list[float]]:
    """{number of the NUMA node: pages of each kind}; of v1 the lines that include nested cgroups."""
    found: dict[str, list[float]] = {}
    for first, *parts in split_lines(text):
        kind = first.partition("=")[0].removeprefix("hierarchical_")
        is_own = "=" in first and not first.startswith("hierarchical_")
        if kind in KINDS and not is_own:
            for part in parts:
                node, _, count = part.partition("=")
                row = found.setdefault(node.removeprefix("N"), [NAN] * len(KINDS))
                row[KINDS.index(kind)] = to_number(count) / page_bytes
    return found


def parse_huge(texts: Texts) -> dict[str, list[float]]:
    """{size of a page, as in the file's name: in use, the most, times over the limit}."""
    sizes = dict.fromkeys(match[1] for name in texts if (match := _HUGE_FILE.fullmatch(name)))
    return {size: list_huge(texts, f"hugetlb.{size}") for size in sizes}


def list_huge(texts: Texts, start: str) -> list[float]:
    used = texts.get(f"{start}.current", texts.get(f"{start}.usage_in_bytes"))
    events = dict(words for words in split_lines(texts.get(f"{start}.events")) if len(words) == 2)
    failed = events.get("max", texts.get(f"{start}.failcnt"))
    return [to_number(used), to_number(texts.get(f"{start}.max_usage_in_bytes")), to_number(failed)]
