"""
Sockets in use, and the memory that the kernel holds for them.

Reads   /proc/1/net/{sockstat,sockstat6}, or /proc/net where the first is not to be had
Needs   Linux; /proc/1 needs the host's pid namespace
Docs    https://man7.org/linux/man-pages/man5/proc_pid_net.5.html

    sockets: used 23
    TCP: inuse 5 orphan 0 tw 6 alloc 5 mem 73

`mem` is in pages, for the whole machine whichever namespace is asked; it is
published in bytes as well.
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import NODE
from nodescope.base.metric import Metric
from nodescope.collect.run.slow_source import Rows, SlowSource, read_network, split_lines, to_number
from nodescope.collect.run.source import Context

KEYS = (
    *("sockets_used", "TCP_inuse", "TCP_orphan", "TCP_tw", "TCP_alloc", "TCP_mem", "UDP_inuse", "UDP_mem"),
    *("UDPLITE_inuse", "RAW_inuse", "FRAG_inuse", "FRAG_memory", "TCP6_inuse", "UDP6_inuse"),
    *("UDPLITE6_inuse", "RAW6_inuse", "FRAG6_inuse", "FRAG6_memory"),
)
# Counted in pages by the kernel.
PAGES = ("TCP_mem", "UDP_mem")
TABLE = Table(
    "sockstat",
    "sockstat",
    ("node",),
    (
        *(
            Metric(f"sockstat.{key}", "gauge", f"{key} of /proc/net/sockstat.", f"node_sockstat_{key}")
            for key in KEYS
        ),
        *(
            Metric(
                f"sockstat.{key}_bytes",
                "gauge",
                f"{key} of /proc/net/sockstat, in bytes.",
                f"node_sockstat_{key}_bytes",
                unit="bytes",
            )
            for key in PAGES
        ),
    ),
)


def parse_sockets(text: str | None) -> dict[str, str]:
    """`TCP: inuse 5 orphan 0` -> TCP_inuse, TCP_orphan."""
    found = {}
    for protocol, *pairs in split_lines(text):
        for name, value in zip(pairs[::2], pairs[1::2]):
            found[f"{protocol.rstrip(':')}_{name}"] = value
    return found


def read(context: Context) -> dict[str, str] | None:
    text = read_network(context, "sockstat")
    if text is None:
        return None
    six = read_network(context, "sockstat6") or ""
    return {"four": text, "six": six, "page_bytes": str(context.page_bytes)}


def parse(texts: Mapping[str, str]) -> tuple[Rows, ...]:
    found = {**parse_sockets(texts["four"]), **parse_sockets(texts["six"])}
    counts = [to_number(found.get(key)) for key in KEYS]
    sizes = [to_number(found.get(key), float(texts["page_bytes"])) for key in PAGES]
    return ({NODE: [*counts, *sizes]},)


make = SlowSource(
    "sockstat",
    (TABLE,),
    read,
    parse,
    "no /proc/net/sockstat: the kernel has no networking",
    pace_seconds=10.0,
    is_prompt=True,
)
