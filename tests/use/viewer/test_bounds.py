"""What the viewer holds for others: exports piece by piece, so many live tails, names of any form."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.serve.stalled import hold_unread
from tests.use.viewer.asking import Asker

from nodescope.use.viewer.export_data import PIECE_ROWS, Extract, stream_extract, write_extract
from nodescope.use.viewer.live import LISTENERS_MOST
from nodescope.use.viewer.question import parse_span
from nodescope.use.viewer.routes_streams import LiveResponse, live


@pytest.mark.parametrize(
    "name", ["%00", "a%00b", "x" * 5000, "a/" * 3000, "%ff%fe", "..%2f..%2fetc%2fpasswd"]
)
def test_a_name_that_no_file_can_have_is_not_found(viewer: Asker, name: str) -> None:
    answer = viewer.get(f"/{name}")
    assert answer.status_code == 404
    assert answer.json()["error"] == "not found"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_is_streamed_and_writes_no_file(
    viewer: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Byte for byte the file that the command writes; with nowhere to put a temporary one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "does not exist"))
    answer = viewer.get("/api/export", params={"metric": "cpu,memory", "format": form})
    assert answer.status_code == 200
    view = viewer.viewer.view()
    extract = Extract(["cpu", "memory"], None, parse_span(view.snapshot, "", "", ""))
    out = tmp_path / f"x.{form}"
    write_extract(view, extract, out)
    assert answer.content == out.read_bytes()


@pytest.mark.parametrize("path", ["/api/containers", "/api/export?metric=cpu&format=csv"])
def test_who_does_not_read_is_cut_off_before_the_next_answer_is_made(viewer: Asker, path: str) -> None:
    stalled = hold_unread(viewer.viewer.connections)
    assert viewer.get(path).status_code == 200
    assert stalled.is_aborted


def test_pieces_of_an_export_are_small(viewer: Asker) -> None:
    """However long the file: a piece has PIECE_ROWS lines, beside the header's."""
    view = viewer.viewer.view()
    extract = Extract(["cpu", "memory"], None, parse_span(view.snapshot, "", "", ""))
    pieces = list(stream_extract(view, extract, "csv"))
    assert all(piece.count(b"\n") <= PIECE_ROWS + 1 for piece in pieces)
    assert sum(piece.count(b"\n") for piece in pieces) > 1


def test_what_cannot_be_exported_is_refused_before_anything_is_sent(viewer: Asker) -> None:
    assert viewer.get("/api/export", params={"metric": "nothing_like_it"}).status_code == 404


def test_no_more_live_tails_than_the_limit_however_fast_they_come(archive: Path) -> None:
    """All at the same moment: as many as the limit get one, and each is free again when its page has left."""
    with Asker(archive) as asker:

        async def ask_all() -> list[Any]:
            asks = [live(asker.viewer, metric=[], containers=[]) for _ in range(2 * LISTENERS_MOST)]
            return await asyncio.gather(*asks)

        found = asker._runner.run(ask_all())
        given = [one for one in found if isinstance(one, LiveResponse)]
        assert len(given) == asker.viewer.listeners == LISTENERS_MOST
        assert {one.status_code for one in found if one not in given} == {503}
        for one in given:
            one._end()
        assert asker.viewer.listeners == 0
