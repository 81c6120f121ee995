"""PCM's CSV, of every generation and in every state of disrepair."""

import csv
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.collect import pcm_texts
from tests.samples import find_samples, list_samples

from nodescope.collect.sources.pcm import cell as pcm_cell
from nodescope.collect.sources.pcm import csv_stream as pcm_csv
from nodescope.collect.sources.pcm.csv_stream import LINE_REASONS, PcmColumn, PcmRow, PcmStream, parse_cells


def read_all(data: bytes | str) -> tuple[list[PcmRow], PcmStream]:
    stream = PcmStream()
    rows = stream.feed(data if isinstance(data, bytes) else data.encode())
    return rows + stream.finish(), stream


def cells_of(row: PcmRow) -> dict[tuple[str, str], float]:
    cells = parse_cells(row, Counter())
    return {key: float(cells[place]) for key, place in row.header.places.items()}


# -- generations -------------------------------------------------------------


def test_a_modern_file_gives_every_row_the_unterminated_last_one_included() -> None:
    """The last row has no newline, and is whole."""
    rows, stream = read_all(pcm_texts.MODERN)
    assert len(rows) == 2
    assert cells_of(rows[1])["Core1 (Socket 0)", "L3MISS"] == 0.04
    assert not stream.ignored


def test_a_legacy_file_has_semicolons_and_sparse_groups() -> None:
    """A group that stands once holds for the empty cells behind it; the old energy column is the system's."""
    rows, _ = read_all(pcm_texts.LEGACY)
    cells = cells_of(rows[0])
    assert cells["System", "TIME(ticks)"] == 3410.0
    assert cells["System", "Proc Energy (Joules)"] == 2.37
    assert cells["Socket 0", "IPC"] == 0.589
    assert math.isnan(cells["Socket 0", "TEMP"])
    assert cells_of(rows[1])["Socket 0", "TEMP"] == 69


def test_empty_group_cells_belong_to_the_group_before_them() -> None:
    """202104 to 202302 left the groups of the TMA columns empty."""
    rows, _ = read_all(pcm_texts.SPARSE_TMA)
    assert cells_of(rows[0])["System", "Retiring(%)"] == 11
    assert cells_of(rows[0])["System", "READ"] == 1.80


def test_power_planes_of_two_sockets_are_named_in_the_order_of_the_data() -> None:
    """The header doubles its keys; the data are plane 0 and 1 of one socket, then of the next."""
    rows, _ = read_all(pcm_texts.POWER_PLANES)
    cells = cells_of(rows[0])
    assert cells["Power Plane 1 Energy (Joules)", "SKT0"] == 2.0
    assert cells["Power Plane 0 Energy (Joules)", "SKT1"] == 3.0


def test_of_two_columns_with_one_key_the_first_counts() -> None:
    """Duplicate keys are tolerated; every cell is still there by its place."""
    text = "System,System,X,X,\nDate,Time,A,A,\n2024-01-01,00:00:00.000,1,2,\n"
    rows, _ = read_all(text)
    assert cells_of(rows[0])["X", "A"] == 1
    assert parse_cells(rows[0], Counter())[3] == 2


def test_renamed_columns_are_one_column() -> None:
    """MCDRAM is HBM, QPI is UPI, Socket0 is Socket 0."""
    text = "System;;;;Socket0;\nDate;Time;MCDRAM_READ;TotalQPIin;QPI0;\n2019-01-01;00:00:00.000;1;2;3;\n"
    rows, _ = read_all(text)
    assert rows[0].header.columns[2:] == (
        PcmColumn("System", "HBM_READ"),
        PcmColumn("System", "TotalUPIin"),
        PcmColumn("Socket 0", "UPI0"),
    )


def test_offline_cores_and_dies_are_columns_like_others() -> None:
    rows, _ = read_all(pcm_texts.OFFLINE)
    assert cells_of(rows[0])["Core0 (Socket -1)", "IPC"] == 0.5
    assert math.isnan(cells_of(rows[0])["Core1 (Socket 0)", "IPC"])
    rows, _ = read_all(pcm_texts.DIES)
    assert cells_of(rows[0])["SKT0.1", "IPC"] == 0.6
    assert cells_of(rows[0])["Core0 (Socket 10)", "IPC"] == 0.7


def test_pcm_memory_has_no_group_for_its_date_and_empty_channels() -> None:
    missing: Counter[str] = Counter()
    rows, _ = read_all(pcm_texts.MEMORY)
    assert [parse_cells(row, missing)[4] for row in rows] == [758.60, 759.60]
    assert missing == {"empty": 2}


def test_pcm_pcie_repeats_its_header_and_has_no_date() -> None:
    rows, stream = read_all(pcm_texts.PCIE)
    assert [row.fields[1] for row in rows] == ["10875256", "9920484", "20875256", "19920484"]
    assert len({id(row.header) for row in rows}) == 1
    assert not stream.ignored


def test_a_merged_header_is_taken_apart() -> None:
    rows, _ = read_all(pcm_texts.MERGED)
    assert cells_of(rows[1])["Core3 (Socket 0)", "IPC"] == 1.01


# -- lines --------------------------------------------------------------------

HEADER = b"System,System,System,System,\nDate,Time,IPC,READ,\n"
ROW = b"2025-07-19,18:27:0%d.085,0.95,1.80,"


@pytest.mark.parametrize(
    ("text", "reason", "rows"),
    [
        (b"\n" + ROW % 1, "blank", 1),
        (b"DEBUG: caught signal to continue execution.\n" + ROW % 1, "foreign", 1),
        (ROW % 1 + b"DEBUG: caught signal to continue execution.\n" + ROW % 2, "tail", 2),
        (b"2025-07-19,18:27:0\n" + ROW % 1, "short", 1),
        (b"2025-07-19,18:27:01.085,0.95,1.8\n" + ROW % 2, "short", 1),
        (b"95,1.80,\n" + ROW % 1, "short", 1),
        (ROW % 1 + b"0.95,1.80,\n" + ROW % 2, "long", 1),
        (b"2025-07-19,99,0.95,1.80,\n" + ROW % 1, "bad_date", 1),
        (ROW % 1 + b"\n" + ROW % 1, "duplicate", 1),
        (b"Link 3 is disabled\n" + HEADER + ROW % 1, "foreign", 1),
    ],
)
def test_a_line_that_is_no_row_is_dropped_and_counted(text: bytes, reason: str, rows: int) -> None:
    """Each by its own reason; the rows beside it stay."""
    found, stream = read_all(HEADER + text)
    assert len(found) == rows
    assert stream.ignored[reason] == 1
    assert set(stream.ignored) <= set(LINE_REASONS)


def test_text_before_the_header_is_not_a_header() -> None:
    """PCM_NO_RDT=1 makes pcm print a line before it."""
    rows, stream = read_all(b"Disabling RDT usage because PCM_NO_RDT=1\n" + HEADER + ROW % 1)
    assert len(rows) == 1
    assert rows[0].header.columns[2] == PcmColumn("System", "IPC")
    assert stream.ignored == {"foreign": 1}


def test_a_line_without_end_is_not_kept() -> None:
    """Somebody's binary file: memory stays bounded, and the next row is read."""
    stream = PcmStream()
    stream.feed(HEADER)
    for _ in range(3):
        stream.feed(b"x" * (pcm_csv.LINE_BYTES // 2))
    assert len(stream._open) <= pcm_csv.LINE_BYTES
    assert len(stream.feed(b"\n" + ROW % 1 + b"\n")) == 1
    assert stream.ignored["too_long"] == 1


def test_a_whole_row_is_accepted_before_its_newline() -> None:
    """Newline-first writing would otherwise make every sample one interval late."""
    stream = PcmStream()
    stream.feed(HEADER[:-1])
    assert stream.settle() == []
    stream.feed(b"\n" + (ROW % 1)[:-3])
    assert stream.settle() == []
    stream.feed((ROW % 1)[-3:])
    assert len(stream.settle()) == 1
    assert stream.settle() == []
    assert stream.feed(b"\n" + ROW % 2) == []
    assert len(stream.settle()) == 1
    assert not stream.ignored


def test_what_follows_an_accepted_row_on_its_line_is_a_tail() -> None:
    stream = PcmStream()
    stream.feed(HEADER + ROW % 1)
    assert len(stream.settle()) == 1
    assert stream.feed(b"0.00,0.01\n") == []
    assert stream.ignored == {"tail": 1}


def test_a_number_that_the_end_of_the_file_may_have_cut_is_missing() -> None:
    """Without a separator at the end nobody knows: as many decimals as above it, or missing."""
    whole, cut = pcm_texts.MERGED.rstrip(), pcm_texts.MERGED.rstrip()[:-1]
    assert read_all(whole)[0][1].fields[-1] == "1.01"
    assert read_all(cut)[0][1].fields[-1] == ""


def test_a_restart_may_change_the_columns() -> None:
    """Appended to one file: each row knows its own header."""
    other = b"System,System,System,\nDate,Time,READ,\n2025-07-19,18:28:00.000,7.00,\n"
    rows, _ = read_all(HEADER + ROW % 1 + b"\n" + other)
    assert [len(row.header.columns) for row in rows] == [4, 3]


# -- cells --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "metric", "expected", "reason"),
    [
        ("0.95", "IPC", 0.95, ""),
        ("0.00", "L3MISS", 0.0, ""),
        (" 11680", "L3OCC", 11680.0, ""),
        ("4.47 ", "DRAM Energy (Joules)", 4.47, ""),
        (" 12%", "UPI0", 12.0, ""),
        ("3.41e+03", "TIME(ticks)", 3410.0, ""),
        ("", "IPC", None, "empty"),
        ("  ", "IPC", None, "empty"),
        ("N/A", "TEMP", None, "not_available"),
        ("-nan", "L3MPI", None, "not_a_number"),
        ("nan", "L3MPI", None, "not_a_number"),
        ("inf", "L3MPI", None, "not_a_number"),
        ("1e999", "L3MPI", None, "not_a_number"),
        ("-1.00", "IPC", None, "sentinel"),
        ("-1", "AFREQ", None, "sentinel"),
        ("-25.00", "PhysIPC%", None, "sentinel"),
        ("18446744073.71", "READ", None, "wrapped"),
        ("18446744073709.55", "L3MISS", None, "wrapped"),
        ("-117174.00", "FREQ", None, "out_of_range"),
        ("-281738.12", "UncFREQ (Ghz)", None, "out_of_range"),
        ("756320.01", "LLCRDMISSLAT (ns)", None, "out_of_range"),
        ("140.00", "C0res%", None, "out_of_range"),
        ("1_000", "INST", None, "unparsable"),
        ("0.9x", "IPC", None, "unparsable"),
        ("DEBUG", "IPC", None, "unparsable"),
    ],
)
def test_a_cell_is_a_number_or_a_reason(text: str, metric: str, expected: float | None, reason: str) -> None:
    """Zero is a measurement; everything that is none has a name."""
    value, found = pcm_cell.parse_cell(text, metric, pcm_cell.choose_range("System", metric))
    assert found == reason
    assert math.isnan(value) if expected is None else value == expected


numbers = st.floats(allow_nan=True, allow_infinity=True).map(str)
odd_cells = st.one_of(
    numbers,
    st.sampled_from(["N/A", "-1.00", "", " ", "-nan", "18446744073.71", "12%", "1_0"]),
    st.text("0123456789.e+-xN/A% ", max_size=8),
)


@given(st.lists(odd_cells, min_size=3, max_size=3))
@example(["1_0", "2", "3"])
@example(["18446744073.71", "0", "-0.0"])
def test_the_fast_and_the_slow_way_agree(cells: list[str]) -> None:
    """
    forall cells: parse_cells(row) == [parse_cell(cell) for cell in row], reasons included

    A row of plain numbers is parsed at once; one odd cell sends it the slow way.
    """
    header = pcm_csv.parse_header("System,System,System,System,System,", "Date,Time,IPC,READ,TEMP,")
    row = PcmRow(header, ("2025-01-01", "00:00:00.000", *cells))
    missing: Counter[str] = Counter()
    found = parse_cells(row, missing)[2:]
    expected = [
        pcm_cell.parse_cell(cell, column.metric, column.bounds)
        for cell, column in zip(cells, header.columns[2:])
    ]
    np.testing.assert_array_equal(found, [value for value, _ in expected])
    assert missing == Counter(reason for _, reason in expected if reason)
    assert missing.total() == np.isnan(found).sum()


# -- any bytes ------------------------------------------------------------------

pieces = st.sampled_from(
    [
        *(text.encode() for text in pcm_texts.ALL.values()),
        HEADER,
        ROW % 1,
        ROW % 2,
        b"\n",
        b"\r\n",
        b",",
        b"DEBUG: x",
        b"\x00\xff",
    ]
)
documents = st.lists(st.one_of(pieces, st.binary(max_size=40)), max_size=12).map(b"".join)


@given(documents, st.lists(st.integers(1, 300), max_size=40))
@settings(max_examples=300)
def test_the_same_bytes_give_the_same_rows_however_they_arrive(data: bytes, steps: list[int]) -> None:
    """forall splits of the bytes into pieces: the same rows, the same counts; and nothing raises."""
    whole, stream = read_all(data)
    split = PcmStream()
    rows: list[PcmRow] = []
    rest = data
    for step in steps:
        rows += split.feed(rest[:step])
        rest = rest[step:]
    rows += split.feed(rest) + split.finish()
    assert [row.fields for row in rows] == [row.fields for row in whole]
    assert +split.ignored == +stream.ignored


@given(documents)
@settings(max_examples=300)
def test_every_cell_is_a_number_in_range_or_counted(data: bytes) -> None:
    """forall bytes: cells >= 0 or NaN; sum(missing) == NaNs; each row has its header's columns."""
    rows, _ = read_all(data)
    missing: Counter[str] = Counter()
    nans = 0
    for row in rows:
        cells = parse_cells(row, missing)
        assert len(cells) == len(row.header.columns)
        first = 2 if row.header.is_dated else 0
        nans += int(np.isnan(cells[first:]).sum())
        assert (np.isnan(cells) | (cells >= 0)).all()
        assert not np.isinf(cells).any()
    assert missing.total() == nans
    assert set(missing) <= set(pcm_cell.REASONS)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.integers(1, 7))
def test_settling_never_changes_a_good_stream(values: list[int], step: int) -> None:
    """forall good streams, quiet moments: rows accepted early == rows accepted late."""
    rows = [
        f"2025-01-01,00:{n // 60:02d}:{n % 60:02d}.000,{value / 1e9:.2f},1.00,"
        for n, value in enumerate(values)
    ]
    data = HEADER[:-1] + b"".join(b"\n" + row.encode() for row in rows)
    stream = PcmStream()
    found: list[PcmRow] = []
    for start in range(0, len(data), step):
        found += stream.feed(data[start : start + step])
        found += stream.settle()
    found += stream.finish()
    assert [",".join(row.fields) + "," for row in found] == rows
    assert not +stream.ignored


# -- the samples ----------------------------------------------------------------

DATE = re.compile(r"\d{4}-\d\d-\d\d")


def read_independently(path: Path) -> tuple[list[str], list[list[str]]]:
    """
    A plain reader: Python's csv, rows with the header's number of fields only.

    Returns metric names and rows; a doubled last row once.
    """
    text = path.read_text(encoding="ascii", errors="replace")
    separator = ";" if text.split("\n")[1].count(";") > 5 else ","
    rows = list(csv.reader(text.splitlines(), delimiter=separator))
    is_single = "pcie" in path.name or " - " in rows[0][0]
    header = rows[0 if is_single else 1]
    names = header[:-1] if not header[-1] else header
    good: list[list[str]] = []
    for row in rows[1 if is_single else 2 :]:
        dated = "pcie" in path.name or (row and DATE.fullmatch(row[0]))
        if (
            dated
            and len(row) == len(header)
            and row != header
            and (not good or row != good[-1] or "pcie" in path.name)
        ):
            good.append(row[: len(names)])
    return names, good


def is_bad(text: str, metric: str, value: float | None) -> bool:
    """Whether a person would call a cell no measurement."""
    if value is None or math.isnan(value) or math.isinf(value) or value < 0 or value >= 1.8e10:
        return True
    return (metric.startswith("SKT") and value > 1e4) or (metric.startswith("P. Write") and value > 1e9)


def to_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


SAMPLES = list_samples("pcm/**/*.csv")


@pytest.mark.parametrize("path", SAMPLES or [None], ids=lambda path: path.name if path else "none")
def test_a_sample_parses_to_what_a_plain_reader_finds(path: Path | None) -> None:
    """Same rows, same numbers, and every cell that differs is counted by its reason."""
    path = path or find_samples("pcm")
    if path.stat().st_size == 0:
        assert read_all(path.read_bytes())[0] == []
        return
    names, expected = read_independently(path)
    rows, stream = read_all(path.read_bytes())
    assert [list(row.fields) for row in rows] == expected
    assert [column.metric for column in rows[0].header.columns] == [
        name.rpartition(" - ")[2] for name in names
    ]
    missing: Counter[str] = Counter()
    nans = 0
    first = 2 if rows[0].header.is_dated else 0
    for row, plain in zip(rows, expected, strict=True):
        cells = parse_cells(row, missing)
        for place in range(first, len(plain)):
            value = to_float(plain[place])
            if math.isnan(cells[place]):
                nans += 1
                assert is_bad(plain[place], names[place], value), (names[place], plain[place])
            else:
                assert cells[place] == value, (names[place], plain[place])
    assert missing.total() == nans
    lines = path.read_bytes().count(b"\n") + (not path.read_bytes().endswith(b"\n"))
    assert len(rows) + stream.ignored.total() <= lines
