"""A file source is made whole, or not at all."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collect.hardware import make_context, write_files

from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.collect.files.layout import DeviceRows, Number
from nodescope.collect.run.source import Context, Declared, DeviceFile, FileSource, NodeFile

ONE = Metric("two.one", "gauge", "A number.")


def declare(context: Context) -> Iterator[Declared]:
    del context
    yield NodeFile("proc/one", Number(ONE))
    yield DeviceFile("proc/many", DeviceRows({0: ONE}), "disk", lambda name: Entity("disk", (name,)))


MAKE = FileSource("two", declare, absent="no /proc/one")


def test_a_source_that_fails_while_it_is_made_keeps_no_file_open(tmp_path: Path) -> None:
    """The first file was open already when the second was denied."""
    write_files(tmp_path, {"proc/one": 1, "proc/many": "sda 1"})
    context = make_context(tmp_path, {"proc/many": errno.EACCES})
    with pytest.raises(SourceFailed, match="proc/many"):
        MAKE(context)
    assert context.descriptors.pinned == 0
    whole = make_context(tmp_path)
    source = MAKE(whole)
    assert whole.descriptors.pinned > 0
    source.close()
    assert whole.descriptors.pinned == 0


def test_its_name_is_known_though_it_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="no /proc/one"):
        MAKE(make_context(tmp_path))
    assert MAKE.name == "two"
