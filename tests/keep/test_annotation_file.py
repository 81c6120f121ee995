"""Notes in a data folder: bounded, whole, and the same note is kept once whoever sends it."""

import json
from pathlib import Path
from threading import Thread

import pytest

from nodescope.base.errors import RequestRejected
from nodescope.base.findings.annotation import TEXT_CHARACTERS, build_annotation, parse_annotation_request
from nodescope.keep.annotation_file import ANNOTATIONS_MOST, FILE_NAME, add_annotation, read_annotations

AT = 1_772_366_400.0


def test_a_note_is_kept_once_and_in_order_of_time(tmp_path: Path) -> None:
    for text, at in (("second", AT + 1), ("first", AT), ("second", AT + 1)):
        add_annotation(tmp_path, build_annotation(text, at, 0.0))
    assert [(one.text, one.at) for one in read_annotations(tmp_path)] == [("first", AT), ("second", AT + 1)]


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    notes = [build_annotation(f"note {number}", AT + number, 0.0) for number in range(40)]
    threads = [Thread(target=add_annotation, args=(tmp_path, note)) for note in notes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_annotations(tmp_path)) == 40


def test_of_more_than_a_thousand_the_oldest_leave(tmp_path: Path) -> None:
    rows = [{"text": f"n{number}", "at": AT + number} for number in range(ANNOTATIONS_MOST)]
    (tmp_path / FILE_NAME).write_text(json.dumps({"annotations": rows}))
    add_annotation(tmp_path, build_annotation("newest", AT + 5000, 0.0))
    kept = read_annotations(tmp_path)
    assert (len(kept), kept[0].text, kept[-1].text) == (ANNOTATIONS_MOST, "n1", "newest")


def test_a_damaged_file_costs_what_cannot_be_read_of_it(tmp_path: Path) -> None:
    rows = [
        {"text": "good", "at": AT},
        {"text": 3},
        None,
        {"text": "x", "at": "soon"},
        {"text": "", "at": AT},
    ]
    (tmp_path / FILE_NAME).write_text(json.dumps({"annotations": rows}))
    assert [one.text for one in read_annotations(tmp_path)] == ["good"]
    (tmp_path / FILE_NAME).write_text("{")
    assert read_annotations(tmp_path) == []


def test_a_note_is_one_line_without_control_characters() -> None:
    assert build_annotation(" deployed\n2.1\x1b[31m ", AT, 0.0).text == "deployed 2.1 [31m"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "text wants"),
        (b'{"text": ""}', "text wants"),
        (json.dumps({"text": "x" * (TEXT_CHARACTERS + 1)}).encode(), "1 to 200 characters"),
        (b'{"text": "x", "at": "now"}', "at wants epoch seconds"),
        (b'{"text": "x", "at": true}', "at wants epoch seconds"),
        (b'{"text": "x", "at": 1772366400000}', "no moment of this century"),
    ],
)
def test_what_is_no_note_is_refused_with_what_is_accepted(body: bytes, said: str) -> None:
    with pytest.raises(RequestRejected, match=said):
        parse_annotation_request(body, AT)


def test_without_a_moment_it_is_of_now() -> None:
    assert parse_annotation_request(b'{"text": "x"}', AT).at == AT
