"""Places that are shared fairly, and a count of who misbehaved."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nodescope.serve.bounds.places import CREDIT, STRIKES_EACH, Places, Strikes, name_address

ADDRESSES = st.sampled_from("abcde")


@given(st.lists(ADDRESSES, max_size=60), st.integers(1, 12), st.integers(1, 12))
def test_places_are_bounded_in_sum_and_for_each_address(arrivals: list[str], most: int, each: int) -> None:
    """
    forall arrivals: len <= most, count(address) <= each, and the newcomer has a place.

    Whoever gives way is of an address that has at least as many guests as any other.
    """
    places: Places[int] = Places(most, each)
    homes: dict[int, str] = {}
    for number, address in enumerate(arrivals):
        if not places.has_room(address):
            counts = Counter(homes[one] for one in places)
            chosen = places.choose(address, Strikes(100))
            assert chosen is not None
            own = counts[address] >= each
            assert homes[chosen] == address if own else counts[homes[chosen]] == max(counts.values())
            assert places.leave(chosen)
        homes[number] = address
        places.enter(number, address)
        assert number in places
        assert len(places) <= most
        assert places.count(address) <= each


def test_an_address_with_strikes_gives_way_first() -> None:
    """Although another one has more guests, and has been there for longer."""
    places: Places[str] = Places(3, 3)
    for guest, address in (("old", "good"), ("older", "good"), ("bad", "hostile")):
        places.enter(guest, address)
    strikes = Strikes(100)
    strikes.add("hostile")
    assert places.choose("new", strikes) == "bad"
    assert places.choose("new", Strikes(100)) == "old"


def test_a_guest_without_a_rank_stays() -> None:
    places: Places[int] = Places(2, 2)
    places.enter(1, "a")
    places.enter(2, "b")
    assert places.choose("c", Strikes(10), lambda guest: None if guest == 1 else 0) == 2
    assert places.choose("c", Strikes(10), lambda _: None) is None


def test_strikes_are_forgotten_and_forgiven_within_bounds() -> None:
    strikes = Strikes(20)
    for _ in range(15):
        strikes.add("a")
    assert strikes.count("a") == STRIKES_EACH
    for _ in range(40):
        strikes.forgive("b")
    assert -2 * CREDIT <= strikes.count("b") < 0
    assert strikes.count("a") == 0, "two generations later"


def test_a_network_of_ipv6_is_one_address() -> None:
    """One machine has all of a /64; an IPv4 address in IPv6's form is itself."""
    assert name_address(("2001:db8::1", 1, 0, 0)) == name_address(("2001:db8::ffff", 2, 0, 0))
    assert name_address(("2001:db8:0:1::1", 1, 0, 0)) != name_address(("2001:db8::1", 1, 0, 0))
    assert name_address(("::ffff:10.0.0.1", 1, 0, 0)) == name_address(("10.0.0.1", 9)) == "10.0.0.1"
    assert name_address(None) == name_address(("",)) == ""
