"""
Counters of the kernel's network protocols: TCP, UDP, ICMP, IP, of both versions.

Reads   /proc/1/net/{netstat,snmp,snmp6}, or /proc/net where the first is not to be had
Needs   Linux; /proc/1 needs the host's pid namespace
Docs    https://docs.kernel.org/networking/snmp_counter.html

    Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs
    Tcp: 1 200 120000 -1 1287636 1214037 68839 806668 2 11396066

Names are node_exporter's: protocol, underscore, field; published without a
type, as it does. Of some 300 fields those are kept that it keeps by default,
resets of established connections, failed attempts, and the most connections.
"""

from collections.abc import Mapping
from functools import lru_cache

from nodescope.base.block import Table
from nodescope.base.entity import NODE
from nodescope.base.metric import Metric
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import Rows, SlowSource, read_network, split_lines, to_number
from nodescope.collect.run.source import Context

FILES = ("netstat", "snmp", "snmp6")
UDP = ("InDatagrams", "InErrors", "NoPorts", "OutDatagrams", "RcvbufErrors", "SndbufErrors")
ICMP = ("InErrors", "InMsgs", "OutMsgs")
OCTETS = ("InOctets", "OutOctets")
# Protocol -> fields.
WANTED: Mapping[str, tuple[str, ...]] = {
    "Ip": ("Forwarding",),
    "IpExt": OCTETS,
    "Ip6": OCTETS,
    "Icmp": ICMP,
    "Icmp6": ICMP,
    "Tcp": (
        *("ActiveOpens", "PassiveOpens", "AttemptFails", "EstabResets", "CurrEstab", "InSegs", "OutSegs"),
        *("RetransSegs", "InErrs", "OutRsts", "MaxConn"),
    ),
    "TcpExt": (
        *("ListenDrops", "ListenOverflows", "SyncookiesFailed", "SyncookiesRecv", "SyncookiesSent"),
        *("TCPOFOQueue", "TCPRcvQDrop", "TCPSynRetrans", "TCPTimeouts"),
    ),
    "Udp": UDP,
    "Udp6": UDP,
    "UdpLite": ("InErrors",),
    "UdpLite6": ("InErrors",),
}
KEYS = tuple(f"{protocol}_{field}" for protocol, fields in WANTED.items() for field in fields)
# In snmp6 the protocol stands in front of the field.
SIX = {key.replace("_", ""): key for key in KEYS if key.partition("_")[0].endswith("6")}
# What is a state and not a sum of events.
GAUGES = frozenset({"Ip_Forwarding", "Tcp_CurrEstab", "Tcp_MaxConn"})
TABLE = Table(
    "netstat",
    "netstat",
    ("node",),
    tuple(
        Metric(
            f"netstat.{key}",
            "gauge" if key in GAUGES else "counter",
            f"{key.partition('_')[2]} of {key.partition('_')[0]}, as the kernel counts it.",
            f"node_netstat_{key}",
            untyped=True,
        )
        for key in KEYS
    ),
)


@lru_cache(maxsize=64)
def find_places(header: str) -> tuple[tuple[int, str], ...]:
    """Which of a line's words are wanted; a kernel writes the same header every time."""
    protocol, _, rest = header.partition(":")
    wanted = WANTED.get(protocol, ())
    return tuple((place, f"{protocol}_{name}") for place, name in enumerate(rest.split()) if name in wanted)


def parse_pairs(text: str | None) -> dict[str, str]:
    """Lines come in pairs: a protocol with its fields, the same with their values."""
    found: dict[str, str] = {}
    lines = (text or "").split("\n")
    for header, values in zip(lines[::2], lines[1::2]):
        places = find_places(header)
        if places and values.partition(":")[0] == header.partition(":")[0]:
            words = values.partition(":")[2].split()
            found.update({key: words[place] for place, key in places if place < len(words)})
    return found


def parse_snmp6(text: str | None) -> dict[str, str]:
    """One field a line, its protocol's name in front of it: `Udp6InErrors 0`."""
    found = {}
    for words in split_lines(text):
        key = SIX.get(words[0])
        if key and len(words) == 2:
            found[key] = words[1]
    return found


def read(context: Context) -> dict[str, str | None] | None:
    texts = {name: read_network(context, name) for name in FILES}
    return texts if texts["snmp"] or texts["netstat"] else None


def parse(texts: Mapping[str, str | None]) -> tuple[Rows, ...]:
    found = {**parse_pairs(texts["snmp"]), **parse_pairs(texts["netstat"]), **parse_snmp6(texts["snmp6"])}
    values = [to_number(found.get(key)) for key in KEYS]
    return ({NODE: values} if any(value is not NAN for value in values) else {},)


make = SlowSource(
    "netstat",
    (TABLE,),
    read,
    parse,
    "no /proc/net/snmp: the kernel has no networking",
    pace_seconds=10.0,
    is_prompt=True,
)
