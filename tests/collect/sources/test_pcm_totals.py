"""PCM's intervals as counters: exact over any window."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.hardware import make_pcm

from nodescope.base.block import Block
from nodescope.collect.sources.pcm.csv_stream import PcmRow, parse_header
from nodescope.collect.sources.pcm.source import write_header

COLUMNS = (
    ("System", "Date"),
    ("System", "Time"),
    ("System", "IPC"),
    ("System", "INST"),
    ("System", "ACYC"),
    ("System", "L3MISS"),
    ("System", "L2MISS"),
    ("System", "L3HIT"),
    ("System", "READ"),
    ("System", "WRITE"),
    ("System", "AFREQ"),
    ("System", "TIME(ticks)"),
    ("System Core C-States", "C0res%"),
    ("System", "Proc Energy (Joules)"),
    ("Core3 (Socket 0)", "IPC"),
    ("Core3 (Socket 0)", "L3MISS"),
)
HEADER = parse_header(*(",".join(names) + "," for names in zip(*COLUMNS)))
GOOD = (
    "0.95",
    "60.00",
    "64.00",
    "0.03",
    "0.15",
    "0.80",
    "1.80",
    "0.20",
    "0.50",
    "2400.00",
    "25.00",
    "18.00",
    "1.20",
    "0.01",
)


def make_answer(*rows: tuple[str, ...], columns: tuple[tuple[str, str], ...] = COLUMNS) -> dict[str, object]:
    header = parse_header(*(",".join(names) + "," for names in zip(*columns)))
    return {"tables": [{"header": write_header(header), "rows": [list(row) for row in rows]}]}


def row_at(second: int, cells: tuple[str, ...] = GOOD, step: float = 1.0) -> tuple[str, ...]:
    at = second * step
    return ("2025-07-19", f"10:{int(at) // 60:02d}:{at % 60:06.3f}", *cells)


def with_cell(metric: str, text: str, group: str = "System") -> tuple[str, ...]:
    place = COLUMNS.index((group, metric)) - 2
    return (*GOOD[:place], text, *GOOD[place + 1 :])


def value(block: Block, name: str, row: int = 0) -> float:
    return float(block.values[row, block.table.columns[name]])


def test_the_first_row_is_the_base_and_counts_nothing() -> None:
    """Its interval is not known; what it offers is."""
    blocks = make_pcm().parse(make_answer(row_at(0)), 0)
    system = blocks[0]
    assert value(system, "pcm.instructions") == 0.0
    assert value(system, "pcm.lines.first") == 1.0
    assert np.isnan(value(system, "pcm.dram_energy"))


def test_counts_become_sums_in_base_units() -> None:
    """Millions and gigabytes of an interval; two rows of five seconds each."""
    blocks = make_pcm().parse(make_answer(*(row_at(n, step=5.0) for n in range(3))), 0)
    system, core = blocks[-2:]
    assert value(system, "pcm.instructions") == pytest.approx(120e6)
    assert value(system, "pcm.l3_misses") == pytest.approx(0.06e6)
    assert value(system, "pcm.l3_misses.seconds") == pytest.approx(10.0)
    assert value(system, "pcm.memory") == pytest.approx(4.0e9)
    assert value(system, "pcm.energy") == pytest.approx(36.0)
    assert value(system, "pcm.c0.in_state") == pytest.approx(2.5)
    assert value(system, "pcm.covered") == pytest.approx(10.0)
    assert value(core, "pcm.core.l3_misses") == pytest.approx(0.02e6)
    assert core.entities[0].labels == (("core", "3"), ("socket", "0"))


def test_one_block_per_row_and_level() -> None:
    """A burst of three rows is three moments: nothing is blurred."""
    blocks = make_pcm().parse(make_answer(*(row_at(n) for n in range(3))), 60_000_000_000)
    assert [block.table.name for block in blocks] == ["pcm", "pcm.core"] * 3
    assert [block.mono_ns for block in blocks[::2]] == [58_000_000_000, 59_000_000_000, 60_000_000_000]


@pytest.mark.parametrize("text", ["-1.00", "18446744073.71", "N/A", "-5.00", ""])
def test_a_missing_cell_makes_the_window_shorter_not_wrong(text: str) -> None:
    """The rate over what was measured is the rate; seconds of the lost interval are not in it."""
    answer = make_answer(row_at(0), row_at(1), row_at(2, with_cell("READ", text)), row_at(3))
    system = make_pcm().parse(answer, 0)[-2]
    assert value(system, "pcm.memory") == pytest.approx(2 * 2.0e9)
    assert value(system, "pcm.memory.seconds") == pytest.approx(2.0)
    assert value(system, "pcm.memory_written.seconds") == pytest.approx(3.0)
    assert (
        sum(
            value(system, f"pcm.cells.{reason}")
            for reason in ("sentinel", "wrapped", "not_available", "out_of_range", "empty")
        )
        == 1
    )


def test_a_ratio_takes_both_halves_or_neither() -> None:
    """Cycles without instructions would lower the IPC of the window."""
    answer = make_answer(row_at(0), row_at(1), row_at(2, with_cell("INST", "N/A")))
    system = make_pcm().parse(answer, 0)[-2]
    assert value(system, "pcm.instructions") / value(system, "pcm.cycles") == 60 / 64


def test_an_idle_core_adds_nothing() -> None:
    """IPC -1 of a core without cycles is no measurement."""
    core = make_pcm().parse(
        make_answer(row_at(0), row_at(1, with_cell("IPC", "-1.00", "Core3 (Socket 0)")), row_at(2)), 0
    )[-1]
    assert value(core, "pcm.core.ipc.cycles") == pytest.approx(1.0)
    assert np.isnan(value(core, "pcm.core.cycles"))


def test_what_the_command_line_hid_is_added_up_from_the_sockets() -> None:
    """`-nsys` leaves only Date and Time to the system."""
    columns = (
        *COLUMNS[:2],
        *((f"Socket {socket}", metric) for socket in (0, 1) for metric in ("READ", "WRITE", "INST", "ACYC")),
        ("Proc Energy (Joules)", "SKT0"),
        ("Proc Energy (Joules)", "SKT1"),
    )
    cells = ("1.00", "0.50", "100.00", "50.00", "3.00", "0.50", "20.00", "50.00", "77.00", "54.00")
    blocks = make_pcm().parse(make_answer(row_at(0, cells), row_at(1, cells), columns=columns), 0)
    system = blocks[-2]
    assert value(system, "pcm.memory") == pytest.approx(5.0e9)
    assert value(system, "pcm.memory.seconds") == pytest.approx(1.0)
    assert value(system, "pcm.energy") == pytest.approx(131.0)
    assert value(system, "pcm.instructions") / value(system, "pcm.cycles") == pytest.approx(1.2)


def test_states_of_cores_are_a_mean_not_a_sum() -> None:
    """Two cores asleep for a second are a machine asleep for a second."""
    columns = (*COLUMNS[:2], ("Core0 (Socket 0)", "C1res%"), ("Core1 (Socket 0)", "C1res%"))
    cells = ("50.00", "100.00")
    system = make_pcm().parse(make_answer(row_at(0, cells), row_at(1, cells), columns=columns), 0)[-2]
    assert value(system, "pcm.c1.in_state") == pytest.approx(0.75)
    assert value(system, "pcm.c1.seconds") == pytest.approx(1.0)


def test_a_socket_that_is_missing_makes_the_sum_missing() -> None:
    """Half a machine is not the machine."""
    columns = (
        *COLUMNS[:2],
        ("Socket 0", "READ"),
        ("Socket 0", "WRITE"),
        ("Socket 1", "READ"),
        ("Socket 1", "WRITE"),
    )
    good, bad = ("1.00", "0.50", "3.00", "0.50"), ("1.00", "0.50", "18446744073.71", "0.50")
    source = make_pcm()
    system = source.parse(make_answer(row_at(0, good), row_at(1, good), row_at(2, bad), columns=columns), 0)[
        -2
    ]
    assert value(system, "pcm.memory.seconds") == pytest.approx(1.0)


def test_chosen_cores_do_not_speak_for_the_system() -> None:
    """`-yc 7` counts one core of many."""
    columns = (*COLUMNS[:2], ("Core7 (Socket 0)", "INST"), ("Core7 (Socket 0)", "ACYC"))
    blocks = make_pcm().parse(
        make_answer(row_at(0, ("5.00", "4.00")), row_at(1, ("5.00", "4.00")), columns=columns), 0
    )
    assert np.isnan(value(blocks[-2], "pcm.instructions"))
    assert value(blocks[-1], "pcm.core.instructions") == pytest.approx(5e6)


def test_sums_survive_another_set_of_cores() -> None:
    """A restart after a hotplug: who stays goes on."""
    source = make_pcm()
    source.parse(make_answer(row_at(0), row_at(1)), 0)
    columns = (*COLUMNS[:2], ("Core3 (Socket 0)", "L3MISS"), ("Core4 (Socket 0)", "L3MISS"))
    core = source.parse(make_answer(row_at(2, ("0.01", "0.02")), columns=columns), 0)[-1]
    assert value(core, "pcm.core.l3_misses", 0) == pytest.approx(0.02e6)
    assert value(core, "pcm.core.l3_misses", 1) == pytest.approx(0.02e6)


def test_bandwidth_is_held_against_the_highest_seen_or_the_configured_peak() -> None:
    source = make_pcm()
    system = source.parse(make_answer(row_at(0), row_at(1), row_at(2, with_cell("READ", "0.80"))), 0)[-2]
    # 2 GB/s, then 1 GB/s against the 2 seen.
    assert value(system, "pcm.memory_share") / value(system, "pcm.memory_share.capacity") == pytest.approx(
        0.75
    )
    assert "highest seen, 2 GB/s" in source.note
    source = make_pcm()
    source._totals.peak_bytes_per_second = 20e9
    system = source.parse(make_answer(row_at(0), row_at(1)), 0)[-2]
    assert value(system, "pcm.memory_share") / value(system, "pcm.memory_share.capacity") == pytest.approx(
        0.1
    )
    assert "configured" in source.note


cells = st.one_of(
    st.decimals(0, 100, places=2).map(str), st.sampled_from(["-1.00", "N/A", "", "18446744073.71"])
)


@given(st.lists(cells, min_size=2, max_size=30))
def test_a_window_is_the_sum_of_its_parts(reads: list[str]) -> None:
    """
    forall rows: sum(pcm.memory_read) == sum(good cells) and its seconds == how many were good

    The first row is the base: it counts nothing.
    """
    rows = [row_at(n, with_cell("READ", text)) for n, text in enumerate(reads)]
    system = make_pcm().parse(make_answer(*rows), 0)[-2]
    good = [float(text) for text in reads[1:] if text not in ("-1.00", "N/A", "", "18446744073.71")]
    if any(text not in ("-1.00", "N/A", "", "18446744073.71") for text in reads):
        assert value(system, "pcm.memory_read") == pytest.approx(sum(good) * 1e9)
        assert value(system, "pcm.memory_read.seconds") == pytest.approx(len(good))
    bad = Counter(text in ("-1.00", "N/A", "", "18446744073.71") for text in reads)[True]
    assert (
        sum(
            value(system, f"pcm.cells.{reason}")
            for reason in ("sentinel", "not_available", "empty", "wrapped")
        )
        == bad
    )


def test_the_header_is_made_again_as_it_was() -> None:
    """An answer can be saved and replayed: write and parse are inverse."""
    assert parse_header(*write_header(HEADER)).columns == HEADER.columns
    assert PcmRow(HEADER, row_at(0)).header is HEADER
