"""Whatever another viewer sent: its text is cleaned, however deep it stands."""

from dataclasses import dataclass

from nodescope.use.answers.foreign_record import clean_record, parse_nodes, rename_node
from nodescope.use.answers.wire import make_form


@dataclass(frozen=True, slots=True)
class Inner:
    node: str
    workload: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Outer:
    node: str
    samples: int
    share: float | None
    rows: tuple[Inner, ...]
    unseen: tuple[str, ...]


BAD = Outer("n\x1b[2J", 3, None, (Inner("n", 'a"b/' + "c" * 300, 'says "x"\n'),), ("line\x07 " + "y" * 900,))


def test_clean_every_text_however_deep() -> None:
    cleaned = clean_record(BAD)
    assert cleaned.node == "n [2J"
    assert (cleaned.samples, cleaned.share) == (3, None)
    row = cleaned.rows[0]
    assert row.workload.startswith("a'b/ccc")
    assert len(row.workload) < 300
    assert row.sentence == 'says "x" '
    assert cleaned.unseen[0].startswith("line ")
    assert len(cleaned.unseen[0]) == 400


def test_clean_twice_is_clean_once() -> None:
    assert clean_record(clean_record(BAD)) == clean_record(BAD)


def test_rename_the_node_everywhere_and_nothing_else() -> None:
    renamed = rename_node(BAD, "node-a")
    assert (renamed.node, renamed.rows[0].node) == ("node-a", "node-a")
    assert renamed.rows[0].workload == BAD.rows[0].workload
    assert renamed.unseen == BAD.unseen


def test_parse_a_record_for_each_node() -> None:
    form = make_form(Outer)
    assert parse_nodes(form, {"nodes": [form.render(BAD)]}) == [clean_record(BAD)]
    assert parse_nodes(form, {}) == []
