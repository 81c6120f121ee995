"""
Bytes and operations of each container on each block device, under cAdvisor's names.

Reads   io.stat (v2) or blkio.throttle.{io_service_bytes,io_serviced}_recursive (v1) of each container, /proc/diskstats
Needs   Linux; the controller io or blkio
Docs    https://docs.kernel.org/admin-guide/cgroup-v2.html#io-interface-files

    254:0 rbytes=16384 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0

The sums over all devices are read every tick by the source `container` and kept
in the archive. Dashboards filter by device: these are read every 30 s. A container
whose first file says what it said before has done nothing since, and is left as it was; where the
cgroup at the top stands still, no container below it is asked.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import split_lines, to_number
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.container.cgroup_tree import Hierarchy, find_hierarchies

# Key of io.stat, published name, unit, sentence.
COLUMNS = (
    ("rbytes", "reads_bytes_total", "bytes", "Bytes read from a block device."),
    ("wbytes", "writes_bytes_total", "bytes", "Bytes written to a block device."),
    ("rios", "reads_total", "", "Reads from a block device."),
    ("wios", "writes_total", "", "Writes to a block device."),
)
TABLE = Table(
    "container_device",
    "container_device",
    ("device",),
    tuple(
        Metric(f"container_device.{key}", "counter", sentence, f"container_fs_{name}", unit=unit)
        for key, name, unit, sentence in COLUMNS
    ),
)
PLACES = {key: number for number, (key, *_) in enumerate(COLUMNS)}
# v1: file -> operation -> key of io.stat.
V1_FILES = {
    "blkio.throttle.io_service_bytes_recursive": {"Read": "rbytes", "Write": "wbytes"},
    "blkio.throttle.io_serviced_recursive": {"Read": "rios", "Write": "wios"},
}
Found = dict[str, list[float]]
"""{major:minor: a number for each column}."""


def parse_v2(texts: Mapping[str, str]) -> Found:
    """`254:0 rbytes=1 wbytes=2 ...` per device."""
    found: Found = {}
    for device, *pairs in split_lines(texts.get("io.stat")):
        for pair in pairs:
            key, _, value = pair.partition("=")
            note(found, device, key, value)
    return found


def parse_v1(texts: Mapping[str, str]) -> Found:
    """`254:0 Read 4096` per device and operation; the closing `Total N` has no device."""
    found: Found = {}
    for file, keys in V1_FILES.items():
        for words in split_lines(texts.get(file)):
            if len(words) == 3 and words[1] in keys:
                note(found, words[0], keys[words[1]], words[2])
    return found


def note(found: Found, device: str, key: str, value: str) -> None:
    place = PLACES.get(key)
    if place is not None and ":" in device:
        found.setdefault(device, [NAN] * len(COLUMNS))[place] = to_number(value)


def parse_devices(text: str | None) -> dict[str, str]:
    """{major:minor: name} of /proc/diskstats."""
    return {f"{words[0]}:{words[1]}": clean_text(words[2]) for words in split_lines(text) if len(words) > 2}


class ContainerDeviceSource(CallDefaults):
    """Reads the file of every container that runs."""

    name = "container_device"
    pace_seconds = 30.0
    deadline_seconds = 20.0

    def __init__(self, context: Context) -> None:
        self._context = context
        self._hierarchy = find_controller(find_hierarchies(context.root))
        is_v2 = self._hierarchy.name == "v2"
        self._files = ("io.stat",) if is_v2 else tuple(V1_FILES)
        self._known: dict[str, tuple[str, ...]] = {}
        """What the files of each container said last."""
        self._tops: dict[str, str] = {}
        """The same of the cgroups at the top, which count all that happens below them."""
        self._parse: Callable[[Mapping[str, str]], Found] = parse_v2 if is_v2 else parse_v1

    def read(self) -> Any:
        """The containers with their texts, and the names of the devices."""
        members = self._context.live_containers.members
        tops = {name: self._read_first(name) for name in {find_top(member) for member in members}}
        still = {name for name, text in tops.items() if text and text == self._tops.get(name)}
        found = {member.path: self._read_member(member, find_top(member) in still) for member in members}
        self._known = {path: texts for path, (_, texts) in found.items()}
        self._tops = tops
        return list(found.values()), self._context.root.read_text("proc/diskstats") or ""

    def _read_first(self, path: str) -> str:
        return self._context.root.read_text(f"{self._hierarchy.full(path)}/{self._files[0]}") or ""

    def _read_member(self, member: LiveContainer, is_still: bool) -> tuple[Entity, tuple[str, ...]]:
        known = self._known.get(member.path)
        if known and is_still:
            return member.entity, known
        first = self._read_first(member.path)
        if known and known[0] == first:
            return member.entity, known
        read, folder = self._context.root.read_text, self._hierarchy.full(member.path)
        return member.entity, (first, *(read(f"{folder}/{name}") or "" for name in self._files[1:]))

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        containers, disks = answer
        names = parse_devices(disks)
        rows = {
            describe(entity, names.get(device, "")): values
            for entity, texts in containers
            if texts[0]
            for device, values in self._parse(dict(zip(self._files, texts))).items()
        }
        kept = dict(list(rows.items())[: self._context.limit("device")])
        return (make_block(TABLE, kept, mono_ns),)


def find_top(member: LiveContainer) -> str:
    """kubepods.slice of a pod's container: while its file stands still, so do those of all below it."""
    return member.path.partition("/")[0]


def find_controller(hierarchies: tuple[Hierarchy, ...]) -> Hierarchy:
    """Blkio where it is a v1 controller, else the v2 tree."""
    named = {hierarchy.name: hierarchy for hierarchy in hierarchies}
    found = named.get("blkio") or named.get("v2")
    if found is None:
        raise SourceAbsent("neither blkio nor a v2 tree in /sys/fs/cgroup")
    return found


def describe(entity: Entity, device: str) -> Entity:
    """A device that /proc/diskstats does not name has an empty label, as cAdvisor has it."""
    shown = f"/dev/{device}" if device else ""
    kept = tuple((key, value) for key, value in entity.details if key in ("container_id", "pod_uid", "qos"))
    return Entity("device", ("io", *entity.ids[:1], shown), (*entity.labels, ("device", shown)), kept)
