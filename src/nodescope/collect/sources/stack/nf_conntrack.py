"""
Connections that the kernel's connection tracking knows, and what it had to turn away.

Reads   /proc/sys/net/netfilter/nf_conntrack_{count,max}, /proc/1/net/stat/nf_conntrack
Needs   Linux with the module nf_conntrack; the counters of a namespace are its own
Docs    https://docs.kernel.org/networking/nf_conntrack-sysctl.html

    entries  clashres found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
    00000000  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000  00000000 00000000 00000000 00000000

Hexadecimal, one line a core, summed; `entries` is the same in every line.
nf_conntrack_count is the reader's own namespace, so `entries` of process 1's
file comes first. node_exporter calls all of them gauges.
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import NODE
from nodescope.base.metric import Metric
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import Rows, SlowSource, read_network, to_number
from nodescope.collect.run.source import Context

COUNT, MOST = "nf_conntrack_count", "nf_conntrack_max"
FOLDER = "proc/sys/net/netfilter"
WORDS = ("found", "invalid", "ignore", "insert", "insert_failed", "drop", "early_drop", "search_restart")
TABLE = Table(
    "nf_conntrack",
    "nf_conntrack",
    ("node",),
    (
        Metric("nf_conntrack.entries", "gauge", "Connections tracked now.", "node_nf_conntrack_entries"),
        Metric(
            "nf_conntrack.entries_limit",
            "gauge",
            "The most connections that are tracked.",
            "node_nf_conntrack_entries_limit",
        ),
        *(
            Metric(
                f"nf_conntrack.stat_{word}",
                "gauge",
                f"{word} of connection tracking, over all cores, since boot.",
                f"node_nf_conntrack_stat_{word}",
            )
            for word in WORDS
        ),
    ),
)


def parse_cores(text: str) -> list[dict[str, float]]:
    """What each core counted, by the header's words."""
    names, *lines = [line.split() for line in text.splitlines() if line.strip()] or [[]]
    return [{name: read_hexadecimal(word) for name, word in zip(names, words)} for words in lines]


def read_hexadecimal(word: str) -> float:
    try:
        return float(int(word, 16))
    except ValueError:
        return NAN


def read(context: Context) -> dict[str, str] | None:
    limits = {name: context.root.read_text(f"{FOLDER}/{name}") or "" for name in (COUNT, MOST)}
    if not all(limits.values()):
        return None
    return {**limits, "stat": read_network(context, "stat/nf_conntrack") or ""}


def parse(texts: Mapping[str, str]) -> tuple[Rows, ...]:
    cores = parse_cores(texts["stat"])
    entries = cores[0]["entries"] if cores and "entries" in cores[0] else to_number(texts[COUNT])
    sums = [sum(core.get(word, NAN) for core in cores) if cores else NAN for word in WORDS]
    return ({NODE: [entries, to_number(texts[MOST]), *sums]},)


make = SlowSource(
    "nf_conntrack",
    (TABLE,),
    read,
    parse,
    "no /proc/sys/net/netfilter/nf_conntrack_count: the module nf_conntrack is not loaded",
    pace_seconds=10.0,
    is_prompt=True,
)
