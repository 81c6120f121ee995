"""
What each network interface is set to, and whether it has a link.

Reads   /sys/class/net/*/{operstate,carrier,speed,mtu,flags,...}, /sys/class/net/*/statistics/rx_nohandler
Needs   Linux; /sys of the host, for /sys/class/net is the namespace in which it was mounted
Docs    https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net

    up

What can change by itself is read every half minute, what somebody must set at
every tenth reading: a node with a hundred pods has as many interfaces.
"""

from typing import Any

from nodescope.base.block import Block, Info, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Kind, Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.slow_source import list_names, read_folder, to_number
from nodescope.collect.run.source import CallDefaults, Context

FOLDER = "sys/class/net"
MEGABIT_BYTES = 125_000.0
# File, kind, published name, unit, scale, sentence.
CHANGING: tuple[tuple[str, Kind, str, str, float, str], ...] = (
    ("carrier", "gauge", "carrier", "", 1.0, "1 when the interface has a link."),
    ("carrier_changes", "counter", "carrier_changes_total", "", 1.0, "Times that the link came or went."),
    ("carrier_up_count", "counter", "carrier_up_changes_total", "", 1.0, "Times that the link came."),
    ("carrier_down_count", "counter", "carrier_down_changes_total", "", 1.0, "Times that the link went."),
    ("dormant", "gauge", "dormant", "", 1.0, "1 while the interface waits for another, such as 802.1X."),
    ("speed", "gauge", "speed_bytes", "bytes", MEGABIT_BYTES, "Bytes a second that the link can carry."),
    (
        "statistics/rx_nohandler",
        "counter",
        "receive_nohandler_total",
        "",
        1.0,
        "Packets received that no protocol of the kernel took.",
    ),
)
SETTINGS: tuple[tuple[str, Kind, str, str, float, str], ...] = (
    ("addr_assign_type", "gauge", "address_assign_type", "", 1.0, "How the address was assigned."),
    ("dev_id", "gauge", "device_id", "", 1.0, "Which of the devices that share an address."),
    ("flags", "gauge", "flags", "", 1.0, "Flags of the interface, as a number."),
    ("ifindex", "gauge", "iface_id", "", 1.0, "The kernel's number of the interface."),
    ("iflink", "gauge", "iface_link", "", 1.0, "The number of the interface that this one is linked to."),
    ("link_mode", "gauge", "iface_link_mode", "", 1.0, "The link mode, as a number."),
    ("mtu", "gauge", "mtu_bytes", "bytes", 1.0, "The largest packet."),
    ("name_assign_type", "gauge", "name_assign_type", "", 1.0, "How the name was assigned."),
    ("netdev_group", "gauge", "net_dev_group", "", 1.0, "The group of the interface, as a number."),
    ("tx_queue_len", "gauge", "transmit_queue_length", "", 1.0, "Packets that may wait to be sent."),
    ("type", "gauge", "protocol_type", "", 1.0, "The hardware type, as a number of if_arp.h."),
)
WORDS = ("operstate", "address", "broadcast", "duplex", "ifalias")
COLUMNS = (*CHANGING, *SETTINGS)
FREQUENT = ("operstate", "duplex", *(row[0] for row in CHANGING))
SELDOM = ("address", "broadcast", "ifalias", *(row[0] for row in SETTINGS))
# Readings between two looks at what somebody must set: five minutes.
SETTLED_READINGS = 10
INFO = Info(
    "node_network_info",
    "What an interface is called and how it stands; always 1.",
    ("address", "adminstate", "broadcast", "duplex", "ifalias", "operstate"),
)
TABLE = Table(
    "interface",
    "interface",
    ("network",),
    (
        Metric("interface.up", "gauge", "1 when the interface is up.", "node_network_up"),
        *(
            Metric(
                f"interface.{file.rpartition('/')[2]}",
                kind,
                sentence,
                f"node_network_{name}",
                unit=unit,
                scale=scale,
            )
            for file, kind, name, unit, scale, sentence in COLUMNS
        ),
    ),
    INFO,
)
# IFF_UP of include/uapi/linux/if.h.
IS_UP = 1


class InterfaceSource(CallDefaults):
    """Lists the interfaces at each reading: they come and go with pods."""

    name = "interface"
    pace_seconds = 30.0
    deadline_seconds = 20.0

    def __init__(self, context: Context) -> None:
        if not list_names(context, FOLDER):
            raise SourceAbsent("no /sys/class/net: the kernel has no networking")
        self._context = context
        self._settled: dict[str, dict[str, str]] = {}
        self._readings = 0

    def read(self) -> Any:
        """{interface: {file: text}}."""
        if self._readings % SETTLED_READINGS == 0:
            self._settled.clear()
        self._readings += 1
        names = list_names(self._context, FOLDER)[: self._context.limit("network")]
        found = {name: read_folder(self._context, f"{FOLDER}/{name}", FREQUENT) for name in names}
        # A file such as bonding_masters is no interface.
        found = {name: texts for name, texts in found.items() if texts}
        self._settled = {name: self._settled.get(name) or self._settings(name) for name in found}
        return {name: {**self._settled[name], **texts} for name, texts in found.items()}

    def _settings(self, name: str) -> dict[str, str]:
        return read_folder(self._context, f"{FOLDER}/{name}", SELDOM)

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        rows = {describe(name, texts): list_values(texts) for name, texts in answer.items()}
        return (make_block(TABLE, rows, mono_ns),)


def describe(name: str, texts: dict[str, str]) -> Entity:
    device = clean_text(name)
    told = {word: clean_text(texts.get(word, "")) for word in WORDS}
    told["adminstate"] = "up" if int(read_whole_number(texts.get("flags"))) & IS_UP else "down"
    return Entity("network", (device,), (("device", device),), tuple(sorted(told.items())))


def list_values(texts: dict[str, str]) -> list[float]:
    up = float(texts.get("operstate") == "up")
    return [up, *(read_attribute(texts.get(file)) for file, *_ in COLUMNS)]


def read_attribute(text: str | None) -> float:
    """dev_id and flags are hexadecimal, the others decimal."""
    return read_whole_number(text) if text and text.startswith("0x") else to_number(text)


def read_whole_number(text: str | None) -> float:
    try:
        return float(int(text or "0", 0))
    except ValueError:
        return 0.0
