"""
ResourceClaims and ResourceSlices (resource.k8s.io), reduced to how many devices are where.

A slice lists devices of a driver on a node; a claim asks for devices of a class,
and has those of one node once it is allocated. Read in the forms of v1, v1beta2
and v1beta1. Both are listeners of a watch; an entry is replaced as a whole.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodescope.use.scheduler.devices.device_request import MOST_DEVICES

# Of one claim; the API allows 32 requests and results.
MOST_REQUESTS = 32


def read_list(holder: object, *path: str) -> list[Mapping[str, Any]]:
    """The mappings of a list that is somewhere below; empty where there is none."""
    for key in path:
        holder = holder.get(key) if isinstance(holder, Mapping) else None
    return [one for one in holder if isinstance(one, Mapping)] if isinstance(holder, list) else []


def read_key(item: Mapping[str, Any]) -> str:
    about = item.get("metadata")
    about = about if isinstance(about, Mapping) else {}
    return f"{about.get('namespace') or ''}/{about.get('name') or ''}"


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """Devices of one driver on one node."""

    driver: str
    pool: str
    node: str
    devices: int | None
    """None where they share counters, as partitions of a GPU do: their number says nothing."""


def parse_slice(item: Mapping[str, Any]) -> DeviceSlice | None:
    """None for devices that are not of one node."""
    spec = item.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    pool, node, driver = spec.get("pool"), spec.get("nodeName"), spec.get("driver")
    if not isinstance(node, str) or not isinstance(driver, str) or not isinstance(pool, Mapping):
        return None
    devices = read_list(spec, "devices")
    is_shared = bool(spec.get("sharedCounters")) or any(
        one.get("consumesCounters") or one.get("allowMultipleAllocations")
        for device in devices
        for one in (device, device.get("basic"))
        if isinstance(one, Mapping)
    )
    return DeviceSlice(driver, str(pool.get("name")), node, None if is_shared else len(devices))


class DeviceSlices:
    """How many devices each node has, by driver; a listener of a watch."""

    def __init__(self) -> None:
        self._slices: dict[str, DeviceSlice] = {}

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._slices = {read_key(item): one for item in items if (one := parse_slice(item))}

    def change(self, item: Mapping[str, Any]) -> None:
        one = parse_slice(item)
        if one is None:
            self.remove(item)
        else:
            self._slices[read_key(item)] = one

    def remove(self, item: Mapping[str, Any]) -> None:
        self._slices.pop(read_key(item), None)

    def drivers(self) -> set[str]:
        return {one.driver for one in list(self._slices.values())}

    def pools(self) -> dict[tuple[str, str], str]:
        """(driver, pool) -> node."""
        return {(one.driver, one.pool): one.node for one in list(self._slices.values())}

    def totals(self) -> dict[tuple[str, str], int | None]:
        """(node, driver) -> devices; None where they cannot be counted."""
        found: dict[tuple[str, str], int | None] = {}
        for one in list(self._slices.values()):
            before = found.get((one.node, one.driver), 0)
            together = None if before is None or one.devices is None else before + one.devices
            found[one.node, one.driver] = together
        return found


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """One claim: what it asks for, and what it has."""

    asked: tuple[tuple[str, int], ...]
    """Device class, and how many; 0 stands for all of a node."""
    has: tuple[tuple[str, str], ...] = ()
    """(driver, pool) of each device; empty before it is allocated."""


def parse_claim(item: Mapping[str, Any]) -> DeviceClaim:
    requests = read_list(item, "spec", "devices", "requests")[:MOST_REQUESTS]
    results = read_list(item, "status", "allocation", "devices", "results")
    has = [(str(one.get("driver")), str(one.get("pool"))) for one in results if not one.get("adminAccess")]
    return DeviceClaim(tuple(list_asked(requests)), tuple(has[:MOST_DEVICES]))


def list_asked(requests: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    for request in requests:
        # v1beta1 has no `exactly`. Of several kinds the first is wanted most.
        one = request.get("exactly") or next(iter(read_list(request, "firstAvailable")), request)
        if (
            isinstance(one, Mapping)
            and isinstance(one.get("deviceClassName"), str)
            and not one.get("adminAccess")
        ):
            count = one.get("count", 1)
            is_all = one.get("allocationMode") == "All"
            yield (
                one["deviceClassName"],
                0 if is_all else min(MOST_DEVICES, max(1, count if isinstance(count, int) else 1)),
            )


class DeviceClaims:
    """All claims by namespace and name; a listener of a watch."""

    def __init__(self) -> None:
        self._claims: dict[str, DeviceClaim] = {}

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._claims = {read_key(item): parse_claim(item) for item in items}

    def change(self, item: Mapping[str, Any]) -> None:
        self._claims[read_key(item)] = parse_claim(item)

    def remove(self, item: Mapping[str, Any]) -> None:
        self._claims.pop(read_key(item), None)

    def find(self, namespace: str, name: str) -> DeviceClaim | None:
        return self._claims.get(f"{namespace}/{name}")

    def held(self) -> Counter[tuple[str, str]]:
        """(driver, pool) -> devices that are given away."""
        return Counter(device for claim in list(self._claims.values()) for device in claim.has)

    def learn_drivers(self) -> dict[str, str]:
        """Device class -> driver, by the claims of one class that have devices of one driver."""
        found: dict[str, str] = {}
        for claim in list(self._claims.values()):
            drivers = {driver for driver, _ in claim.has}
            if len(claim.asked) == 1 and len(drivers) == 1:
                found[claim.asked[0][0]] = drivers.pop()
        return found
