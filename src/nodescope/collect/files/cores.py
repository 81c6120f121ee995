"""The cores of a node by the numbers Linux gives them."""

from functools import cache

from nodescope.base.entity import Entity
from nodescope.collect.files.roots import NodeRoot

FOLDER = "sys/devices/system/cpu"


def list_cores(root: NodeRoot, having: str) -> list[str]:
    """Cores whose folder has a file or folder of that name, in order."""
    try:
        names = root.names(FOLDER)
    except OSError:
        return []
    numbers = [name[3:] for name in names if name.startswith("cpu") and name[3:].isdigit()]
    return [number for number in sorted(numbers, key=int) if root.exists(f"{FOLDER}/cpu{number}/{having}")]


@cache
def name_core(number: str) -> Entity:
    return Entity("cpu", (number,), (("cpu", number),))


def parse_core_list(text: str) -> list[int]:
    """`0-3,8` as the kernel writes it; ValueError for anything else."""
    cores: list[int] = []
    for part in text.strip().split(","):
        first, dash, last = part.strip().partition("-")
        low, high = int(first), int(last) if dash else int(first)
        if not 0 <= low <= high < 65536:
            raise ValueError(part)
        cores += range(low, high + 1)
    return sorted(set(cores))
