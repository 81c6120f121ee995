"""Cache occupancy and memory bandwidth: gauges, counters, and words instead of numbers."""

from pathlib import Path

import numpy as np
import pytest
from tests.collect.hardware import make_context, value, write_files

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.collect.sources.resctrl import ResctrlSource

FOLDER = "sys/fs/resctrl"


def write_domain(folder: Path, number: str, occupancy: object, total: object, local: object = 0) -> None:
    files = {"llc_occupancy": occupancy, "mbm_total_bytes": total, "mbm_local_bytes": local}
    write_files(
        folder, {f"{FOLDER}/mon_data/mon_L3_{number}/{file}": content for file, content in files.items()}
    )


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_files(tmp_path, {f"{FOLDER}/info/L3_MON/num_rmids": 144})
    write_domain(tmp_path, "00", 7340032, 1_000_000)
    write_domain(tmp_path, "01", 1048576, 5_000_000)
    return tmp_path


def test_bandwidth_is_the_growth_of_all_domains(node: Path) -> None:
    source = ResctrlSource(make_context(node))
    source.parse(source.read(), 0)
    write_domain(node, "00", 7340032, 3_000_000)
    write_domain(node, "01", 1048576, 9_000_000)
    (block,) = source.parse(source.read(), 2_000_000_000)
    assert value(block, "resctrl.llc_occupancy") == 7340032
    moved = block.values[:, block.table.columns["resctrl.memory"]].sum()
    seconds = block.values[:, block.table.columns["resctrl.memory.seconds"]].sum()
    assert moved / seconds == pytest.approx(3_000_000)


@pytest.mark.parametrize("word", ["Unavailable", "Error", "Unassigned", ""])
def test_a_word_instead_of_a_number_is_missing(node: Path, word: str) -> None:
    """AMD's assignable counters say Unassigned since Linux 6.18."""
    source = ResctrlSource(make_context(node))
    source.parse(source.read(), 0)
    write_domain(node, "00", word, word)
    (block,) = source.parse(source.read(), 1_000_000_000)
    assert np.isnan(value(block, "resctrl.mbm_total_bytes"))
    assert value(block, "resctrl.memory.seconds") == 0.0
    assert value(block, "resctrl.llc_occupancy", 1) == 1048576


def test_a_counter_that_was_reset_counts_neither_bytes_nor_time(node: Path) -> None:
    source = ResctrlSource(make_context(node))
    source.parse(source.read(), 0)
    write_domain(node, "00", 1, 5)
    (block,) = source.parse(source.read(), 1_000_000_000)
    assert (value(block, "resctrl.memory"), value(block, "resctrl.memory.seconds")) == (0.0, 0.0)


def test_nothing_but_words_is_failed_and_quotes_them(node: Path) -> None:
    for number in ("00", "01"):
        write_domain(node, number, "Unavailable", "Unavailable", "Unavailable")
    source = ResctrlSource(make_context(node))
    with pytest.raises(SourceFailed, match="Unavailable"):
        source.read()


def test_absence_has_three_reasons(tmp_path: Path) -> None:
    """No hardware, not mounted, mounted without monitoring: each with its remedy."""
    with pytest.raises(SourceAbsent, match="RDT"):
        ResctrlSource(make_context(tmp_path))
    (tmp_path / FOLDER).mkdir(parents=True)
    with pytest.raises(SourceAbsent, match="mount -t resctrl"):
        ResctrlSource(make_context(tmp_path))
    (tmp_path / FOLDER / "info").mkdir()
    with pytest.raises(SourceAbsent, match="cannot monitor"):
        ResctrlSource(make_context(tmp_path))
