"""Archives whose sidecars were lost, or never written: starts, ends and kills are told by samples."""

from pathlib import Path

import pytest

from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.events import Happening, read_events

END_MS = 1_770_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("demo")
    write_node(DemoRequest(made, 1 / 3, 8, 7, END_MS, "demo-1"), "0", lambda _: None)
    return made


def list_told(folder: Path) -> list[Happening]:
    """Without plain starts: the demo's own are at the moment at which it begins."""
    return read_events(read_catalog([folder]), kinds=("oom", "exit", "restart"))


def key(one: Happening) -> tuple[str, str]:
    return one.kind, one.subject.label("l_container_id") or ""


def test_samples_tell_what_the_sidecars_told(folder: Path) -> None:
    """The same kills, ends and restarts of the same containers, each within three seconds."""
    written = {key(one): one for one in list_told(folder) if one.at_ms < END_MS - 35_000}
    for sidecar in folder.rglob("*.containers"):
        sidecar.unlink()
    seen = {key(one): one for one in list_told(folder)}
    assert {kind for kind, _ in written} == {"oom", "exit", "restart"}
    assert seen.keys() == written.keys()
    for name, one in written.items():
        assert abs(seen[name].at_ms - one.at_ms) <= 3000
    killed = next(one for one in seen.values() if one.kind == "oom")
    was = written[key(killed)]
    assert killed.facts["memory_limit_bytes"] == was.facts["memory_limit_bytes"]


def test_who_was_there_from_the_beginning_or_is_there_still_did_neither_start_nor_end(folder: Path) -> None:
    catalog = read_catalog([folder])
    told = {one.subject.identity for one in read_events(catalog)}
    whole = {
        one.identity
        for one in catalog.containers()
        if one.first_ms <= (catalog.from_ms or 0) + 5000 and one.last_ms >= (catalog.to_ms or 0) - 5000
    }
    assert whole
    assert not told & whole
