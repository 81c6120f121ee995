"""
Records that another viewer sent: its tenants' text is cleaned here, whatever that viewer did.

A record is a frozen dataclass; what is inside it (records, tuples of records)
is treated alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from nodescope.base.text import clean_path, clean_text
from nodescope.use.answers.wire import JsonForm

Record = TypeVar("Record")
# Fields that are sentences; every other text is a name, and stands between quotation marks.
SENTENCES = frozenset({"sentence", "incidents", "background", "unseen"})
SENTENCE_CHARACTERS = 400


def parse_nodes(form: JsonForm[Record], content: Mapping[str, Any]) -> list[Record]:
    """One record a node."""
    return [clean_record(form.parse(one)) for one in content.get("nodes") or ()]


def clean_record(record: Record) -> Record:
    return change_texts(record, clean_field)


def clean_field(name: str, text: str) -> str:
    return clean_text(text, SENTENCE_CHARACTERS) if name in SENTENCES else clean_path(text)


def rename_node(record: Record, node: str) -> Record:
    """Under the name that the node has for who asks."""
    return change_texts(record, lambda name, text: node if name == "node" else text)


def change_texts(record: Record, change: Callable[[str, str], str]) -> Record:
    """The record with `change(field, text)` in place of each text in it, however deep."""
    changed = {
        one.name: change_value(one.name, getattr(record, one.name), change)
        for one in fields(cast(Any, record))
    }
    return cast(Record, replace(cast(Any, record), **changed))


def change_value(name: str, value: Any, change: Callable[[str, str], str]) -> Any:
    if isinstance(value, str):
        return change(name, value)
    if isinstance(value, tuple):
        return tuple(change_value(name, one, change) for one in value)
    return change_texts(value, change) if is_dataclass(value) else value
