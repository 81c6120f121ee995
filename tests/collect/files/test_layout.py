"""Layout parsers: any bytes in, values or ParseError out; on what a kernel writes, the obvious answer."""

import math
import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import IS_THOROUGH, examples

from nodescope.base.errors import ParseError
from nodescope.base.metric import Metric
from nodescope.collect.files.layout import (
    DeviceRows,
    Fields,
    GridLayout,
    KeyValues,
    Number,
    OperationSums,
    PairSums,
    PressureLines,
    ProcessStat,
    parse_number,
)


def named(name: str) -> Metric:
    return Metric(name, "gauge", "A number.")


KEYS = ("anon", "file", "max", "nr_periods")
DEVICE_FIELDS = (0, 1, 3)
GRID_LAYOUTS: Mapping[str, GridLayout] = {
    "number": Number(named("number")),
    "limit": Number(named("limit"), unlimited_from=2.0**62),
    "key values": KeyValues({key: named(key) for key in KEYS}),
    "pressure": PressureLines(
        {(line, word): named(f"{line}.{word}") for line in ("some", "full") for word in ("total", "avg10")}
    ),
    "pressure totals": PressureLines({(line, "total"): named(f"{line}.total") for line in ("some", "full")}),
    "fields": Fields({0: named("first"), 2: named("third")}),
    "process stat": ProcessStat({14: named("utime"), 22: named("start")}),
    "pair sums": PairSums({key: named(key) for key in ("rbytes", "wbytes")}),
    "operation sums": OperationSums({key: named(key) for key in ("Read", "Write")}),
}
ROW_LAYOUTS: Mapping[str, DeviceRows] = {
    "stat": DeviceRows({place: named(f"f{place}") for place in DEVICE_FIELDS}, least_fields=2),
    "diskstats": DeviceRows({place: named(f"f{place}") for place in DEVICE_FIELDS}, name_at=2),
    "net/dev": DeviceRows({place: named(f"f{place}") for place in DEVICE_FIELDS}, separator=b":"),
}
# One kept parser per layout: what it remembers of one file meets the next.
GRID_PARSERS = {name: layout.parser() for name, layout in GRID_LAYOUTS.items()}
ROW_PARSERS = {name: layout.parser() for name, layout in ROW_LAYOUTS.items()}

# Pieces of real files, so that the search starts near what kernels write.
PIECES = (
    b"anon 4096\nfile 12\nmax 3\nnr_periods 0\n",
    b"MemTotal:       24689688 kB\n",
    b"some avg10=1.84 avg60=0.90 avg300=0.31 total=48210377\n",
    b"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    b"4242 (tmux: server) S 1 4242 4242 0 -1 4194368 3096 0 0 0 7 8 0 0 20 0 1 0 8931 1 2\n",
    b"8:0 rbytes=1 wbytes=2 rios=3 wios=4\n",
    b"8:0 Read 4096\n8:0 Write 1\nTotal 4097\n",
    b"   259       0 nvme0n1 33104 1212 2621440 9021\n",
    b"  eth0: 1215     14    0    0\n",
    b"cpu0 1393280 32966 572056 13343292\n",
    b"0.20 0.18 0.12 1/80 11206\n",
    b"max 100000\n",
    b"9223372036854771712",
    b"-1",
    b"max",
    b"nan",
    b"inf",
    b"1e999",
    b"1_000",
    b"9" * 400,
    b"\xff\xfe",
    b"\x00",
    b"\n",
    b" ",
    b":",
    b"=",
    b")",
)
NEAR = st.lists(
    st.sampled_from(PIECES) | st.binary(max_size=6) | st.integers(0, 10**30).map(lambda n: b"%d" % n),
    max_size=6,
).map(b"".join)


@st.composite
def cut(draw: st.DrawFn) -> bytes:
    """A real piece with some bytes missing: a file read while it was written."""
    data = draw(NEAR)
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, len(data)))
    return data[:start] + data[stop:]


ANYTHING = st.binary(max_size=60) | NEAR | cut()
# 10^5 cases in CI: each of these bytes goes into each of the parsers.
EXAMPLES = 8400


def test_ten_to_the_fifth_cases_are_tried_in_ci() -> None:
    """cases == examples * parsers, each example with a fresh and a kept parser."""
    assert EXAMPLES * (len(GRID_LAYOUTS) + len(ROW_LAYOUTS)) >= 10**5
    if IS_THOROUGH:
        assert examples(EXAMPLES).max_examples == EXAMPLES


def check_values(data: bytes, values: Sequence[float], width: int) -> None:
    assert len(values) == width
    for value in values:
        assert isinstance(value, float)
        if math.isinf(value):
            # Unlimited is said with the word, or by cgroup v1's huge number or -1.
            assert value > 0
            assert b"max" in data or b"-" in data or re.search(rb"[0-9]{19}", data)


@given(ANYTHING)
@examples(EXAMPLES)
@example(b"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
@example(b"9" * 400)
@example(b"\xb2")
@example(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
@example(b"max 1 max")
def test_any_bytes_give_values_or_a_parse_error(data: bytes) -> None:
    """forall bytes, layouts: parse(bytes) is one float per metric, or ParseError; nothing else."""
    for name, layout in GRID_LAYOUTS.items():
        for parse in (layout.parser(), GRID_PARSERS[name]):
            try:
                values = parse(data)
            except ParseError:
                continue
            check_values(data, values, len(layout.metrics))
    for name, rows_layout in ROW_LAYOUTS.items():
        for parse_rows in (rows_layout.parser(), ROW_PARSERS[name]):
            try:
                names, rows = parse_rows(data)
            except ParseError:
                continue
            assert len(names) == len(rows)
            for row in rows:
                check_values(data, row, len(DEVICE_FIELDS))


# -- one number ---------------------------------------------------------------


@given(st.integers(-(2**63), 2**64))
def test_a_whole_number_is_itself(number: int) -> None:
    """forall integers a kernel can write: parse(str(n)) == float(n)"""
    assert parse_number(b"%d" % number) == float(number)


@given(st.integers(0, 10**6), st.integers(0, 99))
def test_a_number_with_a_point_is_itself(whole: int, hundredths: int) -> None:
    text = f"{whole}.{hundredths:02d}"
    assert parse_number(text.encode()) == float(text)


@pytest.mark.parametrize(
    "token", [b"nan", b"inf", b"1e5", b"1_000", b"+1", b"0x10", b"", b"1.", b".5", b"--1"]
)
def test_the_wider_grammar_of_python_is_refused(token: bytes) -> None:
    """What float() takes and no kernel writes is damage, not a number."""
    with pytest.raises(ParseError):
        parse_number(token)


def test_the_huge_number_and_the_minus_of_cgroup_v1_mean_unlimited() -> None:
    parse = Number(named("limit"), unlimited_from=2.0**62).parser()
    assert parse(b"9223372036854771712\n") == [math.inf]
    assert parse(b"-1\n") == [math.inf]
    assert parse(b"104857600\n") == [104857600.0]


# -- key value ----------------------------------------------------------------


@st.composite
def key_value_files(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Distinct keys in any order, wanted and unwanted."""
    keys = draw(st.permutations([*KEYS, "x", "y", "z"]))
    count = draw(st.integers(1, len(keys)))
    return [(key, draw(st.integers(0, 2**64))) for key in keys[:count]]


@given(st.lists(key_value_files(), min_size=1, max_size=6), st.sampled_from(("{} {}\n", "{}:   {} kB\n")))
@examples(600)
@example([[("anon", 1), ("x", 2)], [("anon", 1), ("file", 2)]], "{} {}\n")
def test_key_values_equal_a_dictionary_file_after_file(files: list[list[tuple[str, int]]], form: str) -> None:
    """
    forall sequences of files: parse(file)[key] == dict(file)[key], NaN where the key is not.

    What the parser remembers of earlier files never changes an answer.
    """
    parse = KeyValues({key: named(key) for key in KEYS}).parser()
    for lines in files:
        data = "".join(form.format(key, value) for key, value in lines).encode()
        known = dict(lines)
        if not known.keys() & set(KEYS):
            with pytest.raises(ParseError):
                parse(data)
            continue
        for key, value in zip(KEYS, parse(data)):
            assert value == float(known[key]) if key in known else math.isnan(value)


# -- pressure -----------------------------------------------------------------

PRESSURE_LINE = st.fixed_dictionaries(
    {
        "avg10": st.integers(0, 9999).map(lambda n: n / 100),
        "avg60": st.just(0.5),
        "avg300": st.just(0.25),
        "total": st.integers(0, 2**63),
    }
)


def write_pressure(lines: Mapping[str, Mapping[str, float]]) -> bytes:
    shown = [
        f"{line} avg10={f['avg10']:.2f} avg60={f['avg60']:.2f} avg300={f['avg300']:.2f} total={f['total']}\n"
        for line, f in sorted(lines.items(), reverse=True)
    ]
    return "".join(shown).encode()


@given(st.fixed_dictionaries({}, optional={"some": PRESSURE_LINE, "full": PRESSURE_LINE}))
@example({"full": {"avg10": 0.0, "avg60": 0.0, "avg300": 0.0, "total": 7}})
def test_pressure_lines_equal_what_was_written(lines: dict[str, dict[str, float]]) -> None:
    """A line that this kernel does not write is NaN: cpu had no full before 5.13, irq has no some."""
    wanted = [(line, word) for line in ("some", "full") for word in ("total", "avg10")]
    parse = PressureLines({pair: named(".".join(pair)) for pair in wanted}).parser()
    if not lines:
        with pytest.raises(ParseError):
            parse(b"")
        return
    for (line, word), value in zip(wanted, parse(write_pressure(lines))):
        if line in lines:
            assert value == pytest.approx(float(lines[line][word]))
        else:
            assert math.isnan(value)


# -- fields, stat, sums ---------------------------------------------------------


@given(st.lists(st.integers(0, 2**60), min_size=1, max_size=6))
def test_fields_are_counted_from_zero(numbers: list[int]) -> None:
    parse = Fields({0: named("first"), 2: named("third")}).parser()
    data = " ".join(map(str, numbers)).encode() + b"\n"
    if len(numbers) < 3:
        with pytest.raises(ParseError, match="expected 3 fields or more"):
            parse(data)
    else:
        assert parse(data) == [float(numbers[0]), float(numbers[2])]


@given(st.binary(max_size=15), st.lists(st.integers(0, 2**40), min_size=19, max_size=30))
@example(b") S 1 (", list(range(19)))
@example(b"a\nb", list(range(19)))
def test_a_process_name_may_hold_anything(name: bytes, numbers: list[int]) -> None:
    """Fields are counted from behind the last parenthesis, so the name cannot shift them."""
    parse = GRID_LAYOUTS["process stat"].parser()
    data = b"7 (" + name + b") S " + " ".join(map(str, numbers)).encode()
    # Field 4 of proc(5) is the first number behind the state.
    assert parse(data) == [float(numbers[14 - 4]), float(numbers[22 - 4])]


def test_a_stat_line_without_a_name_is_refused() -> None:
    with pytest.raises(ParseError):
        GRID_LAYOUTS["process stat"].parser()(b" ".join(b"%d" % n for n in range(60)))


DEVICES = st.tuples(st.integers(0, 259), st.integers(0, 15)).map("{0[0]}:{0[1]}".format)


@given(st.dictionaries(DEVICES, st.tuples(*[st.integers(0, 2**50)] * 3), max_size=5))
def test_pairs_are_summed_over_devices(devices: dict[str, tuple[int, int, int]]) -> None:
    """An empty io.stat is zero: the kernel means that nothing was read yet."""
    parse = GRID_LAYOUTS["pair sums"].parser()
    lines = [f"{d} rbytes={r} wbytes={w} rios={n} wios=0\n" for d, (r, w, n) in devices.items()]
    reads, writes = (float(sum(v[place] for v in devices.values())) for place in (0, 1))
    assert parse("".join(lines).encode()) == [reads, writes]


@given(st.dictionaries(DEVICES, st.tuples(*[st.integers(0, 2**50)] * 2), max_size=5))
def test_operations_are_summed_over_devices_without_the_total(devices: dict[str, tuple[int, int]]) -> None:
    parse = GRID_LAYOUTS["operation sums"].parser()
    lines = [f"{d} Read {r}\n{d} Write {w}\n{d} Sync 9\n" for d, (r, w) in devices.items()]
    lines.append("Total 12345\n")
    reads, writes = (float(sum(v[place] for v in devices.values())) for place in (0, 1))
    assert parse("".join(lines).encode()) == [reads, writes]


# -- rows -----------------------------------------------------------------------

DEVICE_NAMES = st.text("abcxyz0189-.@", min_size=1, max_size=6)


@given(st.dictionaries(DEVICE_NAMES, st.lists(st.integers(0, 2**50), min_size=1, max_size=5), max_size=5))
@pytest.mark.parametrize(
    ("layout", "form"),
    [("diskstats", "   8       0 {} {}\n"), ("net/dev", "  {}:{}\n"), ("net/dev", "{}: {}\n")],
)
def test_a_row_per_device_with_nan_for_what_older_kernels_lack(
    layout: str, form: str, devices: dict[str, list[int]]
) -> None:
    data = "".join(form.format(name, " ".join(map(str, numbers))) for name, numbers in devices.items())
    names, rows = ROW_LAYOUTS[layout].parser()(data.encode())
    assert names == list(devices)
    for numbers, row in zip(devices.values(), rows):
        for place, value in zip(DEVICE_FIELDS, row):
            assert value == numbers[place] if place < len(numbers) else math.isnan(value)


def test_header_lines_and_rows_that_are_no_devices_are_passed_over() -> None:
    layout = DeviceRows({0: named("f0")}, skip_lines=2, keep=lambda name: name != "lo", separator=b":")
    names, rows = layout.parser()(b"Inter-| Receive\n face |bytes\n lo: 1\neth0: 2\n\n")
    assert (names, rows) == (["eth0"], [[2.0]])


def test_a_row_with_too_few_numbers_names_the_device() -> None:
    layout = DeviceRows({0: named("f0")}, name_at=2, least_fields=11)
    with pytest.raises(ParseError, match="sda: expected 11 numbers or more, got 2"):
        layout.parser()(b"8 0 sda 1 2\n")


def test_a_name_that_is_no_utf8_survives_as_surrogates() -> None:
    names, _ = ROW_LAYOUTS["net/dev"].parser()(b"\xff\xfe0: 1 2 3 4\n")
    assert names == [b"\xff\xfe0".decode("utf-8", "surrogateescape")]
