"""
A bounded number of places, shared fairly among addresses.

Nobody is refused for coming late. Where there are too many, one of the address
with the most guests gives way: whoever opens a thousand connections displaces
only their own.
"""

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from typing import Any, Generic, TypeVar

Guest = TypeVar("Guest")
# The part of an IPv6 address that names a network: one machine has all of the rest.
NETWORK_BITS = 64
# More are not counted for one address.
STRIKES_EACH = 8
CREDIT = 4


def name_address(peer: Any) -> str:
    """The address that a connection is counted under; empty where it has none."""
    try:
        if "." in peer[0] and ":" not in peer[0]:
            # As the kernel writes it; parsing it would be a third of what accepting costs.
            return str(peer[0])
        found = ip_address(peer[0].partition("%")[0])
    except (ValueError, IndexError, TypeError, AttributeError):
        return ""
    if isinstance(found, IPv6Address):
        plain = found.ipv4_mapped
        return str(plain) if plain else str(IPv6Address(int(found) >> NETWORK_BITS << NETWORK_BITS))
    return str(found)


class Strikes:
    """
    How often connections of an address had to be closed lately, less the answers that it has read.

    Two generations of counts: the older one is dropped when the younger one
    has its number of strikes and of answers.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._given = 0

    def add(self, address: str) -> None:
        self._count(address, 1)

    def forgive(self, address: str) -> None:
        self._count(address, -1)

    def _count(self, address: str, step: int) -> None:
        self._young[address] = max(-CREDIT, min(STRIKES_EACH, self._young.get(address, 0) + step))
        self._given += 1
        if self._given >= self._most:
            self._old, self._young, self._given = self._young, {}, 0

    def count(self, address: str) -> int:
        """Below zero: an address that reads what it asks for."""
        return self._young.get(address, 0) + self._old.get(address, 0)


class Places(Generic[Guest]):
    """Guests by address, in the order in which they came."""

    def __init__(self, most: int, most_each: int) -> None:
        self.most = most
        self.most_each = most_each
        self._guests: dict[Guest, str] = {}
        self._by_address: dict[str, dict[Guest, None]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __iter__(self) -> Iterator[Guest]:
        return iter(tuple(self._guests))

    def __contains__(self, guest: Guest) -> bool:
        return guest in self._guests

    def enter(self, guest: Guest, address: str) -> None:
        self._guests[guest] = address
        self._by_address.setdefault(address, {})[guest] = None

    def leave(self, guest: Guest) -> bool:
        """Whether it had a place."""
        address = self._guests.pop(guest, None)
        if address is None:
            return False
        del self._by_address[address][guest]
        if not self._by_address[address]:
            del self._by_address[address]
        return True

    def count(self, address: str) -> int:
        return len(self._by_address.get(address, ()))

    def has_room(self, address: str) -> bool:
        return len(self._guests) < self.most and self.count(address) < self.most_each

    def choose_first(self, strikes: Strikes) -> Guest | None:
        """The first that came of the address with the most strikes, then with the most guests."""
        counted = ((strikes.count(home), len(guests), home) for home, guests in self._by_address.items())
        worst = max(counted, default=None)
        return next(iter(self._by_address[worst[2]])) if worst else None

    def choose(
        self, address: str, strikes: Strikes, rank: Callable[[Guest], Any] = lambda _: 0
    ) -> Guest | None:
        """
        Who gives way to a newcomer of this address; None where nobody can.

        One of the newcomer's own where the address has all its places. Else
        one of the addresses with the most strikes, then with the most guests.
        Among these the highest rank, then the first that came; a guest whose
        rank is None stays.
        """
        if self.count(address) >= self.most_each:
            return pick_highest(self._by_address[address], rank)
        tiers: dict[tuple[int, int], list[Guest]] = {}
        for home, guests in self._by_address.items():
            tiers.setdefault((strikes.count(home), len(guests)), []).extend(guests)
        found = (pick_highest(tiers[tier], rank) for tier in sorted(tiers, reverse=True))
        return next((guest for guest in found if guest is not None), None)

    def oldest(self) -> Guest | None:
        return next(iter(self._guests), None)


def pick_highest(guests: Iterable[Guest], rank: Callable[[Guest], Any]) -> Guest | None:
    """The first of those with the highest rank; None where all stay."""
    ranked = [(order, guest) for guest in guests if (order := rank(guest)) is not None]
    return max(ranked, key=lambda one: one[0])[1] if ranked else None
