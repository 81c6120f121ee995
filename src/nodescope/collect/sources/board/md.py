"""
Software RAID: disks of each array, and how far a rebuild has come.

Reads   /proc/mdstat, /sys/block/mdN/md/{raid_disks,degraded}
Needs   Linux with the module md
Docs    https://docs.kernel.org/admin-guide/md.html

    md6 : active raid1 sdb2[2](F) sdc[1](S) sda2[0]
          195310144 blocks [2/1] [U_]
          [=>...................]  recovery =  8.5% (16775552/195310144) finish=17.0min speed=259783K/sec
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import Rows, SlowSource, list_names, pick_numbers, read_folder
from nodescope.collect.run.source import Context

# The label's word, and the kernel's word for it in the line of a rebuild.
STATES = ("active", "inactive", "recovering", "resync", "check")
REBUILDS = {"recovery": "recovering", "reshape": "reshape", "check": "check", "resync": "resync"}
DISKS = ("active", "failed", "spare")
FILES = ("raid_disks", "degraded")
TABLE = Table(
    "md",
    "md",
    ("device",),
    (
        *(
            Metric(
                f"md.state.{word}",
                "gauge",
                "1 for the state of the array.",
                "node_md_state",
                labels=(("state", word),),
            )
            for word in STATES
        ),
        *(
            Metric(
                f"md.disks.{word}", "gauge", "Disks of the array.", "node_md_disks", labels=(("state", word),)
            )
            for word in DISKS
        ),
        Metric("md.disks_required", "gauge", "Disks that the array should have.", "node_md_disks_required"),
        Metric("md.blocks", "gauge", "Blocks of the array.", "node_md_blocks"),
        Metric("md.blocks_synced", "gauge", "Blocks that are in step.", "node_md_blocks_synced"),
        Metric("md.raid_disks", "gauge", "Disks that the array is set to.", "node_md_raid_disks"),
        Metric("md.degraded", "gauge", "Disks that the array lacks.", "node_md_degraded"),
    ),
)
_BLOCKS = re.compile(r"\s*(\d+) blocks(?:.*\[(\d+)/(\d+)\])?")
_DONE = re.compile(r"\((\d+)/\d+\)")


def read(context: Context) -> dict[str, Any] | None:
    text = context.root.read_text("proc/mdstat")
    if not text:
        return None
    found = {
        name: read_folder(context, f"sys/block/{name}/md", FILES)
        for name in list_names(context, "sys/block", "md.+")
    }
    return {"mdstat": text, "arrays": {name: texts for name, texts in found.items() if texts}}


def list_arrays(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """(name, the words behind it, the lines below it) of each array."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        name, colon, words = line.partition(" : ")
        if colon and not line.startswith((" ", "Personalities", "unused")):
            yield name.strip(), words, lines[number + 1 : number + 4]


def parse(found: Mapping[str, Any]) -> tuple[Rows, ...]:
    arrays = found["arrays"]
    told = {clean_text(name): (words, below) for name, words, below in list_arrays(found["mdstat"])}
    rows = {}
    for name in {**told, **arrays}:
        words, below = told.get(name, ("", []))
        state = parse_array(words, below) if name in told else [NAN] * (len(TABLE.metrics) - len(FILES))
        entity = Entity("device", ("md", clean_text(name)), (("device", clean_text(name)),))
        rows[entity] = [*state, *read_settings(arrays.get(name))]
    return (rows,)


def read_settings(texts: Mapping[str, str] | None) -> list[float]:
    """An array without redundancy has no file that says what it lacks, and lacks nothing while it runs."""
    return pick_numbers({"degraded": "0", **texts}, FILES) if texts else [NAN] * len(FILES)


def parse_array(words: str, below: list[str]) -> list[float]:
    match = _BLOCKS.match(below[0]) if below else None
    blocks = float(match[1]) if match else NAN
    state, synced = parse_rebuild((words.split() or [""])[0], below, blocks)
    required, active = count_disks(words, match)
    disks = [active, float(words.count("(F)")), float(words.count("(S)"))]
    return [*(float(word == state) for word in STATES), *disks, required, blocks, synced]


def parse_rebuild(state: str, below: list[str], blocks: float) -> tuple[str, float]:
    """The state, and the blocks that are in step: all of them unless the array is being rebuilt."""
    for line in below[1:]:
        # An empty line ends an array.
        if not line.strip():
            break
        word = next((word for word in REBUILDS if word in line), None)
        if word:
            done = _DONE.search(line)
            return REBUILDS[word], float(done[1]) if done else 0.0
    return state, blocks


def count_disks(words: str, match: re.Match[str] | None) -> tuple[float, float]:
    """(disks that it should have, disks that it has); raid0 and linear have no spare ones to lack."""
    if "raid0" in words or "linear" in words:
        count = float(words.count("["))
        return count, count
    if "inactive" in words or match is None or match[2] is None:
        return 0.0, 0.0
    return float(match[2]), float(match[3])


make = SlowSource("md", (TABLE,), read, parse, "no /proc/mdstat: the module md is not loaded")
