"""What a container leaves in the agent's process when it is gone: after two minutes, nothing."""

import gc
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.integration.agents import TurnableClock, tick
from tests.torture.agent_day import DayNode

from nodescope.base.settings_load import load_settings
from nodescope.wiring import Parts, build_parts

COUNT = 12
# Obituaries are told for a minute, ends are remembered for two.
GONE_TICKS = 160


def find_texts(wanted: frozenset[str]) -> Iterator[str]:
    """Every text in the process that names one of these."""
    gc.collect()
    for holder in gc.get_objects():
        if holder is wanted:
            continue
        for text in gc.get_referents(holder):
            if isinstance(text, str) and any(word in text for word in wanted):
                yield f"{type(holder).__name__}: {text[:200]}"


def come_and_go(node: DayNode, parts: Parts) -> frozenset[str]:
    """A dozen containers, sampled and scraped, and removed; their ids."""
    for _ in range(COUNT):
        node.add()
    tick(parts, 5)
    text = parts.scrape.render((), openmetrics=False)
    names = frozenset(folder.name for folder in node.made)
    assert all(name in text for name in names)
    while node.made:
        shutil.rmtree(node.made.pop())
    return names


def test_nothing_in_the_process_names_a_container_that_is_gone(tmp_path: Path) -> None:
    """
    Caches of paths and workloads, prefixes of scrapes, the last readings of the files: each kept some.

    A node with churn grew by 0.4 MiB an hour, and a node that had had thousands of
    containers kept most of what they had cost.
    """
    # Ids that no other test of this process has used.
    node = DayNode(tmp_path, random.SystemRandom().getrandbits(200))
    settings = {"root": str(node.root), "ring_seconds": "30"}
    parts = build_parts(load_settings(settings, {}, {}, ""), TurnableClock())
    names = come_and_go(node, parts)
    assert len(names) == COUNT
    assert list(find_texts(names)), "they are known while the ring has them"
    for _ in range(GONE_TICKS // 10):
        tick(parts, 10)
        parts.scrape.render((), openmetrics=False)
    left = list(find_texts(names))
    parts.sampler.stop()
    assert left == []
