"""README's moving picture moves, and is small."""

import struct

import pytest
from tests.docs.pages import ROOT
from tools.moving_picture import TARGET, join_pictures, list_chunks

LARGEST_BYTES = 600_000


def list_frames(film: bytes) -> list[tuple[int, bytes]]:
    """Milliseconds and the picture of each."""
    frames = [content for name, content in list_chunks(film) if name == b"ANMF"]
    return [(int.from_bytes(content[12:15], "little"), content[16:]) for content in frames]


def make_picture(content: bytes) -> bytes:
    part = struct.pack("<4sI", b"VP8 ", len(content)) + content + b"\0" * (len(content) % 2)
    return struct.pack("<4sI4s", b"RIFF", len(part) + 4, b"WEBP") + part


def test_the_readme_shows_a_picture_that_moves() -> None:
    film = (ROOT / TARGET).read_bytes()
    frames = list_frames(film)
    assert f"]({TARGET})" in (ROOT / "README.md").read_text()
    assert len({picture for _, picture in frames}) >= 8
    assert all(milliseconds >= 200 for milliseconds, _ in frames)
    assert len(film) <= LARGEST_BYTES


def test_pictures_become_one_film_in_their_order() -> None:
    film = join_pictures([(make_picture(b"abc"), 300), (make_picture(b"wxyz"), 700)], 8, 4)
    assert struct.unpack_from("<I", film, 4)[0] == len(film) - 8
    assert [(time, picture[8:][:3]) for time, picture in list_frames(film)] == [(300, b"abc"), (700, b"wxy")]


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="not a WebP picture"):
        list(list_chunks(b"\x89PNG" + bytes(20)))
