"""What is kept of a container that ended, and a last look at one that no tick has met."""

import math
from collections.abc import Mapping, Sequence

from nodescope.base.cgroup_metrics import BY_V2_NAME, list_raw_names
from nodescope.base.errors import ParseError
from nodescope.collect.files.layout import Parser
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.container.births import Birth
from nodescope.collect.sources.container.metrics import CgroupFile

# What is kept of an ended container, by its name in cgroup v2.
FACTS = {
    "cpu_seconds": "cpu.stat.usage_usec",
    "memory_bytes": "memory.current",
    "oom_kills": "memory.events.oom_kill",
    "memory_peak_bytes": "memory.peak",
    "memory_limit_bytes": "memory.max",
}
# The same as they are in the archive, of either version.
FACT_NAMES = frozenset(name for v2_name in FACTS.values() for name in list_raw_names(v2_name))
TOO_SHORT = "too short to measure: it came and went between two ticks"


def derive_facts(known: Mapping[str, float]) -> dict[str, float | str]:
    """Facts from raw values, by their names in the archive."""
    facts: dict[str, float | str] = {}
    for fact, v2_name in FACTS.items():
        for name, scale in BY_V2_NAME[v2_name].raw:
            if scale and math.isfinite(known.get(name, math.nan)):
                facts[fact] = known[name] * scale
                break
    return facts


def derive_short_facts(birth: Birth, lives: int, now_mono_ns: int) -> dict[str, float | str]:
    """Of a life between two ticks: the last look, if there was one, and no other."""
    facts = derive_facts(birth.last or {})
    ended_ns = birth.ended_mono_ns or now_mono_ns
    facts["lifetime_seconds"] = (ended_ns - birth.mono_ns) / 1e9
    facts["started_at"] = birth.at_ns / 1e9
    facts["last_look"] = "at exit" if birth.last else "none"
    facts["unmeasured"] = TOO_SHORT
    if lives > 1:
        facts["lives"] = float(lives)
    return facts


class Glimpses:
    """Reads the files behind the facts of a cgroup that nobody has opened."""

    def __init__(
        self, root: NodeRoot, paths: Mapping[str, str], files: Mapping[str, Sequence[CgroupFile]]
    ) -> None:
        self._root = root
        self._paths = paths
        # Parsers of its own: this is asked on the watching thread.
        self._files: list[tuple[CgroupFile, Parser]] = [
            (file, file.layout.parser())
            for listed in files.values()
            for file in listed
            if FACT_NAMES.intersection(metric.name for metric in file.layout.metrics)
        ]

    def read(self, path: str) -> dict[str, float]:
        """By the names of the archive; what is gone already is left out."""
        values: dict[str, float] = {}
        for file, parse in self._files:
            try:
                row = parse(self._root.read(f"{self._paths[file.hierarchy]}/{path}/{file.name}"))
            except (OSError, ParseError):
                continue
            named = zip(file.layout.metrics, row)
            values.update({metric.name: value for metric, value in named if not math.isnan(value)})
        return values
