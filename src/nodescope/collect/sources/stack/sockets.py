"""
TCP connections by state, the bytes that wait in sockets' queues, and neighbours known by ARP.

Reads   /proc/1/net/{tcp,tcp6,udp,udp6,arp}, or /proc/net where the first is not to be had
Needs   Linux; /proc/1 needs the host's pid namespace
Docs    https://docs.kernel.org/networking/proc_net_tcp.html

    sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
     0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345

A line a socket. The kernel walks its whole table for them, which takes some
milliseconds whatever is in it: they are asked every two minutes. A node with more than 20,000 is not listed: there the kernel
would be busy for longer than the answer is worth, and the source says so.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from nodescope.base.block import Table
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.slow_source import Rows, SlowSource, read_network, split_lines, to_number
from nodescope.collect.run.source import Context

FILES = ("tcp", "tcp6", "udp", "udp6", "arp")
# /proc/net/tcp has 150 bytes a line, and NodeRoot reads at most 4 MiB of a file.
MOST_SOCKETS = 20_000
# Of include/net/tcp_states.h, in their order from 1 on, as node_exporter names them.
STATES = (
    *("established", "syn_sent", "syn_recv", "fin_wait1", "fin_wait2", "time_wait", "close"),
    *("close_wait", "last_ack", "listen", "closing"),
)
EMPTY_QUEUES = "00000000:00000000"
QUEUES = ("rx_queued_bytes", "tx_queued_bytes")
STATE_HELP = "TCP connections by state; bytes in their queues."
TABLE = Table(
    "sockets",
    "sockets",
    ("node",),
    (
        *(
            Metric(
                f"sockets.tcp.{word}",
                "gauge",
                STATE_HELP,
                "node_tcp_connection_states",
                labels=(("state", word),),
            )
            for word in (*STATES, *QUEUES)
        ),
        *(
            Metric(
                f"sockets.udp.{queue}_{version}",
                "gauge",
                "Bytes that wait in the queues of UDP sockets.",
                "node_udp_queues",
                labels=(("ip", version), ("queue", queue)),
            )
            for version in ("v4", "v6")
            for queue in ("rx", "tx")
        ),
    ),
)
NEIGHBOURS = Table(
    "sockets.arp",
    "sockets",
    ("network",),
    (Metric("sockets.arp_entries", "gauge", "Neighbours known by ARP.", "node_arp_entries"),),
)


def read(context: Context) -> dict[str, str] | None:
    sockstat = read_network(context, "sockstat")
    if sockstat is None or read_network(context, "arp") is None:
        return None
    counted = sum(count_sockets(text) for text in (sockstat, read_network(context, "sockstat6") or ""))
    if counted > MOST_SOCKETS:
        raise SourceAbsent(f"{counted:.0f} sockets, more than the {MOST_SOCKETS} that are listed one by one")
    return {name: read_network(context, name) or "" for name in FILES}


def count_sockets(text: str) -> float:
    """TCP sockets in use and waiting for their end, and UDP's, as sockstat tells without listing them."""
    total = 0.0
    for protocol, *pairs in split_lines(text):
        if protocol in ("TCP:", "TCP6:", "UDP:", "UDP6:"):
            named = dict(zip(pairs[::2], pairs[1::2]))
            total += sum(to_number(named.get(key, "0")) for key in ("inuse", "tw"))
    return total


def count_states(texts: Iterable[str]) -> tuple[Counter[str], int, int]:
    """Sockets by their state, as the kernel writes it; bytes to be read, and bytes to send."""
    states: Counter[str] = Counter()
    to_read = to_send = 0
    for text in texts:
        for line in text.split("\n")[1:]:
            words = line.split(None, 5)
            if len(words) < 5:
                continue
            states[words[3]] += 1
            # Of nearly all sockets both queues are empty.
            if words[4] != EMPTY_QUEUES:
                out, _, into = words[4].partition(":")
                to_send += int(out, 16)
                to_read += int(into, 16)
    return states, to_read, to_send


def parse(texts: Mapping[str, str]) -> tuple[Rows, ...]:
    states, to_read, to_send = count_states((texts["tcp"], texts["tcp6"]))
    counts = [states[f"{number:02X}"] for number in range(1, len(STATES) + 1)]
    queues = [part for version in ("udp", "udp6") for part in count_states((texts[version],))[1:]]
    values = [float(value) for value in (*counts, to_read, to_send, *queues)]
    return {NODE: values}, parse_neighbours(texts["arp"])


def parse_neighbours(text: str) -> Rows:
    """Lines of /proc/net/arp behind its header end with the interface."""
    devices = Counter(clean_text(words[-1]) for words in list(split_lines(text))[1:])
    return {
        Entity("network", (name,), (("device", name),)): [float(count)] for name, count in devices.items()
    }


make = SlowSource(
    "sockets",
    (TABLE, NEIGHBOURS),
    read,
    parse,
    "no /proc/net/sockstat: the kernel has no networking",
    pace_seconds=120.0,
)
