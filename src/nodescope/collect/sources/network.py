"""
Network traffic per interface of the node, since boot.

Reads   /proc/1/net/dev, or /proc/net/dev where the first is not to be had
Needs   Linux; /proc/1 needs the host's pid namespace
Docs    https://man7.org/linux/man-pages/man5/proc_pid_net.5.html

    Inter-|   Receive                                                |  Transmit
     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs ...
      eth0: 1215     14    0    0    0     0          0         0     1480      19    0 ...

/proc/net is the reader's own network namespace; process 1's is the node's.
"""

from collections.abc import Callable, Iterator

from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import DeviceRows
from nodescope.collect.run.source import Context, DeviceFile, FileSource

PATHS = ("proc/1/net/dev", "proc/net/dev")
RECEIVE = ("bytes", "packets", "errs", "drop", "fifo", "frame", "compressed", "multicast")
TRANSMIT = ("bytes", "packets", "errs", "drop", "fifo", "colls", "carrier", "compressed")


def rows() -> dict[int, Metric]:
    words = [("receive", word) for word in RECEIVE] + [("transmit", word) for word in TRANSMIT]
    return {
        place: Metric(
            f"network.{direction}_{word}",
            kind="counter",
            published=f"node_network_{direction}_{word}_total",
            unit="bytes" if word == "bytes" else "",
            help=f"{word} of /proc/net/dev, {direction} side.",
        )
        for place, (direction, word) in enumerate(words)
    }


def name_interface(name: str) -> Entity:
    device = clean_text(name)
    return Entity("network", (device,), (("device", device),))


def interface_rows(wanted: dict[int, Metric], keep: Callable[[str], bool] = lambda _: True) -> DeviceRows:
    """net/dev: two header lines, a name that ends in a colon, sixteen numbers."""
    return DeviceRows(wanted, separator=b":", skip_lines=2, keep=keep, least_fields=16)


def declare(context: Context) -> Iterator[DeviceFile]:
    for path in PATHS:
        if context.root.exists(path):
            yield DeviceFile(path, interface_rows(rows()), "network", name_interface)
            return


make = FileSource("network", declare, absent="no /proc/net/dev: the kernel has no networking")
