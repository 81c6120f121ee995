"""
Last-level cache in use and memory bandwidth, by the processors' own monitoring.

Reads   /sys/fs/resctrl/mon_data/mon_L3_NN/{llc_occupancy,mbm_total_bytes,mbm_local_bytes}
Needs   Intel RDT or AMD QoS, not a virtual machine; mount -t resctrl resctrl /sys/fs/resctrl
Docs    https://docs.kernel.org/filesystems/resctrl.html

    7340032

Bytes: occupancy is what is in use now, mbm_* have grown since the mount. The
files may say Unavailable, Error or Unassigned (AMD, Linux 6.18) instead: then
nothing was measured.
"""

from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Kind, Metric
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.counter_sum import CounterSum
from nodescope.collect.run.source import CallDefaults, Context

FOLDER = "sys/fs/resctrl"
NOT_MOUNTED = "resctrl is not mounted: mount -t resctrl resctrl /sys/fs/resctrl"
NO_HARDWARE = "no resctrl in this kernel: needs Intel RDT or AMD QoS, and virtual machines have none"
NO_MONITORING = "resctrl is mounted, but this processor cannot monitor (no mon_data/mon_L3_*)"
FILES: tuple[tuple[str, Kind, str, str], ...] = (
    ("llc_occupancy", "gauge", "resctrl_llc_occupancy_bytes", "Last-level cache in use."),
    ("mbm_total_bytes", "counter", "resctrl_memory_bytes_total", "Bytes moved between cache and memory."),
    (
        "mbm_local_bytes",
        "counter",
        "resctrl_memory_local_bytes_total",
        "Bytes moved to the socket's own memory.",
    ),
)
TABLE = Table(
    "resctrl",
    "resctrl",
    ("pcm",),
    (
        *(
            Metric(f"resctrl.{file}", kind, sentence, published, unit="bytes")
            for file, kind, published, sentence in FILES
        ),
        Metric("resctrl.memory", "counter", "Bytes moved, resets counted out.", unit="bytes"),
        # Summed over the domains it is time itself, so that bytes by it are
        # the bandwidth of the node.
        Metric(
            "resctrl.memory.seconds", "counter", "A domain's share of the time in which bytes were counted."
        ),
    ),
)


class ResctrlSource(CallDefaults):
    """Reads every L3 domain; a domain is one socket, or one core complex."""

    name = "resctrl"

    def __init__(self, context: Context) -> None:
        self.pace_seconds = context.settings.interval_seconds
        self._growth = CounterSum()
        self._root = root = context.root
        if not root.exists(FOLDER):
            raise SourceAbsent(NO_HARDWARE)
        if not root.exists(f"{FOLDER}/info"):
            raise SourceAbsent(NOT_MOUNTED)
        domains = [name for name in sorted(root.folders(f"{FOLDER}/mon_data")) if name.startswith("mon_L3_")]
        if not domains:
            raise SourceAbsent(NO_MONITORING)
        self._domains = tuple(domains)
        self._entities = tuple(
            Entity("pcm", ("l3", name), (("domain", name.removeprefix("mon_L3_")),)) for name in domains
        )

    def read(self) -> Any:
        """{domain: {file: bytes, or the word that stands there}}."""
        answer = {
            domain: {file: self._root.read_text(f"{FOLDER}/mon_data/{domain}/{file}") for file, *_ in FILES}
            for domain in self._domains
        }
        words = [text for files in answer.values() for text in files.values()]
        if not any(text and text.isdigit() for text in words):
            said = next((text for text in words if text), None)
            if said is None:
                raise SourceFailed("the files of /sys/fs/resctrl/mon_data cannot be read: they need root")
            raise SourceFailed(f"resctrl measures nothing: its files say {said[:40]!r}")
        return answer

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        values = np.full((len(self._domains), len(TABLE.metrics)), NAN)
        for row, domain in enumerate(self._domains):
            files = answer.get(domain, {})
            for column, (file, *_) in enumerate(FILES):
                text = files.get(file)
                if text and text.isdigit():
                    values[row, column] = int(text)
            moved = None if np.isnan(values[row, 1]) else float(values[row, 1])
            grown = self._growth.add(domain, moved, mono_ns / 1e9)
            if grown:
                values[row, -2:] = grown.total, grown.seconds / len(self._domains)
        return (Block(TABLE, self._entities, values, mono_ns),)
