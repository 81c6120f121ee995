"""Energy counters: wraps, names, permissions."""

import errno
from pathlib import Path

import pytest
from tests.collect.hardware import make_context, value, write_files

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.collect.run.counter_sum import CounterSum
from nodescope.collect.sources.rapl import RaplSource, name_zone

FOLDER = "sys/class/powercap"


def write_zone(folder: Path, zone: str, name: str, energy_uj: int, largest: int = 262143328850) -> None:
    files = {"name": name, "energy_uj": energy_uj, "max_energy_range_uj": largest}
    write_files(folder, {f"{FOLDER}/{zone}/{file}": content for file, content in files.items()})


def test_power_is_the_growth_of_the_packages(tmp_path: Path) -> None:
    """Two packages; cores, memory and the mmio twins are not added a second time."""
    write_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    write_zone(tmp_path, "intel-rapl:0:0", "core", 500_000)
    write_zone(tmp_path, "intel-rapl:1", "package-1", 5_000_000)
    write_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1_000_000)
    source = RaplSource(make_context(tmp_path))
    source.parse(source.read(), 0)
    write_zone(tmp_path, "intel-rapl:0", "package-0", 41_000_000)
    write_zone(tmp_path, "intel-rapl:1", "package-1", 25_000_000)
    (block,) = source.parse(source.read(), 2_000_000_000)
    assert [entity.ids[1] for entity in block.entities] == ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"]
    joules = block.values[[0, 2], block.table.columns["rapl.package.energy"]].sum()
    seconds = block.values[[0, 2], block.table.columns["rapl.package.seconds"]].sum()
    assert joules / seconds == pytest.approx(30.0)
    assert value(block, "rapl.core.energy_uj", 1) == 500_000
    assert dict(block.entities[2].labels) == {"index": "1", "path": "/sys/class/powercap/intel-rapl:1"}


def test_a_wrap_is_growth_not_a_reset(tmp_path: Path) -> None:
    """max_energy_range_uj is where the counter starts over."""
    write_zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000, 10_000_000)
    source = RaplSource(make_context(tmp_path))
    source.parse(source.read(), 0)
    write_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000, 10_000_000)
    (block,) = source.parse(source.read(), 1_000_000_000)
    assert value(block, "rapl.package.energy") == pytest.approx(2.0)


def test_a_wrap_after_a_long_gap_is_not_guessed() -> None:
    """It may have wrapped more than once: neither energy nor time is counted."""
    growth = CounterSum()
    growth.add("x", 9.0, 0.0, 10.0)
    grown = growth.add("x", 1.0, 100.0, 10.0)
    assert grown is not None
    assert (grown.total, grown.seconds) == (0.0, 0.0)


def test_denied_says_why_and_what_to_do(tmp_path: Path) -> None:
    write_zone(tmp_path, "intel-rapl:0", "package-0", 1)
    source = RaplSource(make_context(tmp_path, {f"{FOLDER}/intel-rapl:0/energy_uj": errno.EACCES}))
    with pytest.raises(SourceFailed, match="root only"):
        source.read()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_an_unreadable_counter_is_failed_never_zero_watts(tmp_path: Path, number: int) -> None:
    write_zone(tmp_path, "intel-rapl:0", "package-0", 1)
    source = RaplSource(make_context(tmp_path, {f"{FOLDER}/intel-rapl:0/energy_uj": number}))
    with pytest.raises(SourceFailed, match="cannot be read"):
        source.read()


def test_no_powercap_is_absent_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="virtual machine"):
        RaplSource(make_context(tmp_path))


def test_zones_are_named_as_node_exporter_names_them() -> None:
    counts: dict[str, int] = {}
    assert name_zone("package-1", counts) == ("package", 1)
    assert [name_zone("dram", counts), name_zone("dram", counts)] == [("dram", 0), ("dram", 1)]
