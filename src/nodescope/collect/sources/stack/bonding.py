"""
Bonded interfaces: how many they are made of, and how many of these have a link.

Reads   /sys/class/net/bonding_masters, /sys/class/net/*/bonding/slaves, /sys/class/net/*/lower_*/bonding_slave/mii_status
Needs   Linux with the module bonding
Docs    https://docs.kernel.org/networking/bonding.html

    bond0
    eth0 eth1
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.slow_source import Rows, SlowSource
from nodescope.collect.run.source import Context

FOLDER = "sys/class/net"
TABLE = Table(
    "bonding",
    "bonding",
    ("device",),
    (
        Metric("bonding.slaves", "gauge", "Interfaces of the bond.", "node_bonding_slaves"),
        Metric("bonding.active", "gauge", "Interfaces of the bond that are up.", "node_bonding_active"),
    ),
)


def read(context: Context) -> dict[str, dict[str, str]] | None:
    """{bond: {interface: whether its link is up}}."""
    masters = context.root.read_text(f"{FOLDER}/bonding_masters")
    if not masters:
        return None
    return {bond: read_members(context, f"{FOLDER}/{bond}") for bond in masters.split()}


def read_members(context: Context, folder: str) -> dict[str, str]:
    names = (context.root.read_text(f"{folder}/bonding/slaves") or "").split()
    return {name: read_status(context, folder, name) for name in names}


def read_status(context: Context, folder: str, name: str) -> str:
    """Kernels before 3.13 call the link from the bond to its interface `slave_`."""
    for link in (f"{folder}/lower_{name}", f"{folder}/slave_{name}"):
        text = context.root.read_text(f"{link}/bonding_slave/mii_status")
        if text is not None:
            return text
    return ""


def parse(bonds: Mapping[str, Mapping[str, str]]) -> tuple[Rows, ...]:
    return ({name_bond(bond): count_active(states) for bond, states in bonds.items()},)


def name_bond(bond: str) -> Entity:
    name = clean_text(bond)
    return Entity("device", ("bonding", name), (("master", name),))


def count_active(states: Mapping[str, str]) -> list[float]:
    return [float(len(states)), float(sum(state == "up" for state in states.values()))]


make = SlowSource(
    "bonding", (TABLE,), read, parse, "no /sys/class/net/bonding_masters: no interfaces are bonded"
)
