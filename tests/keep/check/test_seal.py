"""Small files know their checksum, and a single flipped bit is turned back."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.base.errors import ArchiveDamaged
from nodescope.keep.check.bit_repair import flip_bit, repair_bytes
from nodescope.keep.check.seal import seal, seal_json, unseal, unseal_json

BODY = json.dumps({"series": list(range(40))}).encode()


@given(st.binary(min_size=1, max_size=300), st.data())
def test_one_flipped_bit_is_found_from_the_checksum(data: bytes, draw: st.DataObject) -> None:
    """Forall data, bit: repair(flip(data, bit), crc32(data)) == data."""
    place = draw.draw(st.integers(0, len(data) - 1))
    damaged = flip_bit(data, place, draw.draw(st.integers(0, 7)))
    assert repair_bytes(damaged, zlib.crc32(data)) == data


def test_any_bit_of_a_sealed_file_may_flip() -> None:
    """Those of the seal included: the content is the same, and that it was damaged is known."""
    sealed = seal(BODY)
    for place in range(len(sealed)):
        for bit in range(8):
            found = unseal(flip_bit(sealed, place, bit))
            assert (found.data, found.is_sealed, found.is_repaired) == (BODY, True, True)
    assert not unseal(sealed).is_repaired


def test_any_bit_of_a_sealed_json_may_flip() -> None:
    """A flip within the name or digits of its sum leaves the content as it was."""
    sealed = seal_json({"series": list(range(40))})
    for place in range(len(sealed)):
        for bit in range(8):
            damaged = flip_bit(sealed, place, bit)
            found = unseal_json(damaged)
            if found.is_sealed:
                assert json.loads(found.data)["series"] == list(range(40))
            else:
                assert abs(place - sealed.index(b'"sum"')) < 90


@given(st.sets(st.integers(0, len(seal(BODY)) * 8 - 1), min_size=2, max_size=5))
def test_more_than_one_flip_is_never_taken_for_one(bits: set[int]) -> None:
    """The content is the one that was sealed, or it is refused, or it counts as never checked."""
    damaged = seal(BODY)
    for bit in bits:
        damaged = flip_bit(damaged, bit // 8, bit % 8)
    try:
        found = unseal(damaged)
    except ArchiveDamaged:
        return
    assert found.data == BODY or not found.is_sealed


def test_a_damaged_file_says_so() -> None:
    sealed = seal(BODY)
    with pytest.raises(ArchiveDamaged, match="another checksum than when it was written"):
        unseal(b"\0" * 20 + sealed[20:])
