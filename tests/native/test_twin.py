"""The native parsers and their Python twins: where the native one answers, it answers the same."""

import math
import os
import random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

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
    Pids,
    PressureLines,
    ProcessStat,
    plan_rows,
)
from nodescope.collect.files.native import ENTRY, describe_layout, load_native

NATIVE, WHY = load_native("auto")
pytestmark = pytest.mark.skipif(NATIVE is None, reason=WHY)
native = cast("Any", NATIVE)


def named(*names: str) -> dict[str, Metric]:
    return {name: Metric(name, "gauge", "A number.") for name in names}


def placed(*places: int) -> dict[int, Metric]:
    return {place: Metric(f"field.{place}", "gauge", "A number.") for place in places}


STALLS = {
    (line, name): Metric(f"{line}.{name}", "gauge", "A number.")
    for line in ("some", "full")
    for name in ("avg10", "total")
}
LAYOUTS: dict[str, GridLayout] = {
    "number": Number(Metric("n", "gauge", "A number.")),
    "limit": Number(Metric("n", "gauge", "A number."), unlimited_from=2.0**62),
    "key_values": KeyValues(named("usage_usec", "nr_periods", "oom_kill", "MemFree")),
    "pressure": PressureLines(STALLS),
    "fields": Fields(placed(0, 2)),
    "process_stat": ProcessStat(placed(14, 15, 22, 24)),
    "pair_sums": PairSums(named("rbytes", "wbytes")),
    "operation_sums": OperationSums(named("Read", "Write")),
    "pids": Pids(Metric("count", "gauge", "A number."), Metric("check", "gauge", "A number.")),
    "stat": KeyValues(named("ctxt", "btime", "processes")),
}
ROWS = {
    "cores": DeviceRows(
        placed(0, 3, 7), keep=lambda name: name.startswith("cpu") and name != "cpu", least_fields=4
    ),
    "disks": DeviceRows(placed(0, 2, 13), name_at=2, least_fields=11),
    "interfaces": DeviceRows(placed(0, 1, 15), separator=b":", skip_lines=2, least_fields=16),
}
# What the kernel writes, to be cut, doubled and disturbed.
TEXTS = (
    b"123\n",
    b"max\n",
    b"max 100000\n",
    b"9223372036854771712\n",
    b"-1\n",
    b"usage_usec 4834\nuser_usec 1021\nsystem_usec 3812\nnr_periods 40\noom_kill 2\n",
    b"MemTotal:       24689688 kB\nMemFree:        23254084 kB\nHugePages_Total:       0\n",
    b"some avg10=1.84 avg60=0.90 avg300=0.31 total=48210377\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
    b"some avg10=1.84 avg60=0.90 avg300=0.31 total=48210377\n",
    b"0.15 0.24 0.30 2/345 6789\n",
    b"42 (a) b) S 1 42 42 0 -1 4194368 30 0 0 0 11 12 0 0 20 0 1 0 8931 100 200 18446744073709551615 1 1\n",
    b"8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n253:0 rbytes=10 wbytes=20\n",
    b"8:0 Read 4096\n8:0 Write 0\n8:0 Total 4096\nTotal 4096\n",
    b"",
    b"42\n4711\n99999\n",
    (
        b"cpu  10 20 30 40 5 0 1 0 0 0\ncpu0 5 10 15 20 3 0 1 0 0 0\ncpu1 5 10 15 20 2 0 0 0 0 0\n"
        b"intr 1234 0 9 0 1\nctxt 987\nbtime 1700000000\nprocesses 4711\nsoftirq 99 0 1 2\n"
    ),
    b"   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n   8       1 sda1 1 0 3 4 5 6 7 8 9 10 11\n",
    (
        b"Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
        b"  eth0:100 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    ),
)
PIECES = (
    b"\n",
    b" ",
    b"\t",
    b":",
    b"=",
    b"max",
    b"0",
    b"9" * 19,
    b"9" * 400,
    b"-",
    b".",
    b"1e5",
    b"nan",
    b"\x00",
    b"\xff",
    b"\r",
    b"usage_usec 1\n",
)


@st.composite
def disturbed(draw: st.DrawFn) -> bytes:
    """Kernel text with pieces put in, cut out or swapped; sometimes plain noise."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(st.sampled_from((b"", *PIECES))) + text[stop:]
    return text


def plain_answer(parse: Any, data: bytes) -> list[float] | None:
    try:
        return cast("list[float]", parse(data))
    except ParseError:
        return None


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def check_same(name: str, files: list[bytes]) -> int:
    """How many of the files the native parser answered, each as the plain one did."""
    layout = LAYOUTS[name]
    capsule = native.make_layouts([describe_layout(layout)])
    parse = layout.parser()
    answered = 0
    for data in files:
        answer = native.parse_bytes(capsule, data)
        plain = plain_answer(parse, data)
        if answer is not None:
            answered += 1
            assert plain is not None, data
            assert all(same(*pair) for pair in zip(answer, plain, strict=True)), (data, answer, plain)
    return answered


def check_rows(name: str, files: list[bytes]) -> int:
    """The same for tables: what was learned from the first file meets the others."""
    layout = ROWS[name]
    try:
        names, _ = layout.parser()(files[0])
    except ParseError:
        return 0
    plan = plan_rows(layout, files[0], names)
    if plan is None:
        return 0
    capsule = native.make_layouts([describe_layout(plan)])
    answered = 0
    for data in files:
        answer = native.parse_bytes(capsule, data)
        if answer is not None:
            answered += 1
            found, rows = layout.parser()(data)
            assert found == names, data
            flat = [value for row in rows for value in row]
            assert all(same(*pair) for pair in zip(answer, flat, strict=True)), (data, answer, flat)
    return answered


CHECKS = {**dict.fromkeys(LAYOUTS, check_same), **dict.fromkeys(ROWS, check_rows)}


@pytest.mark.parametrize("name", CHECKS)
@given(files=st.lists(disturbed(), min_size=1, max_size=4))
@example(files=[b"usage_usec 1\noom_kill 2\n", b"oom_kill 2\nusage_usec 1\n"])
@settings(max_examples=300, deadline=None)
def test_where_the_native_parser_answers_the_plain_one_answers_the_same(
    name: str, files: list[bytes]
) -> None:
    """
    forall sequences of files: native(file) is None, or native(file) == plain(file) cell by cell.

    Sequences, because both remember where keys stood in the file before.
    """
    CHECKS[name](name, files)


def disturb(chooser: random.Random, text: bytes) -> bytes:
    for _ in range(chooser.randrange(4)):
        start = chooser.randrange(len(text) + 1)
        stop = min(len(text), start + chooser.randrange(12))
        text = text[:start] + chooser.choice((b"", *PIECES)) + text[stop:]
    return text


def test_many_random_sequences_are_answered_the_same() -> None:
    """
    The same with files that resemble each other, which is what happens; far more of them.

    NODESCOPE_TWIN_CASES=1000000 makes it a long night; the seed is told by a failure.
    """
    cases = int(os.environ.get("NODESCOPE_TWIN_CASES", "10000"))
    seed = random.SystemRandom().randrange(2**32)
    chooser = random.Random(seed)
    done = answered = 0
    while done < cases:
        name, text = chooser.choice(list(CHECKS)), chooser.choice(TEXTS)
        files = [disturb(chooser, text) if chooser.random() < 0.7 else text for _ in range(4)]
        try:
            answered += CHECKS[name](name, files)
        except (AssertionError, ParseError) as error:
            raise AssertionError(f"seed {seed}, case {done}, {name}: {files}") from error
        done += len(files)
    # Nearly nothing answered would mean nearly nothing tested.
    assert answered > cases / 50


@pytest.mark.parametrize("name", CHECKS)
def test_the_native_parser_is_sure_of_what_the_kernel_writes(name: str) -> None:
    """Falling back is for odd bytes; at least one kernel text of each layout is answered natively."""
    assert any(CHECKS[name](name, [text, text]) == 2 for text in TEXTS)


def test_a_hundred_thousand_calls_leave_no_memory_behind() -> None:
    """Resident memory after 10^5 calls is within a MiB of what it was after the first thousand."""
    chooser = random.Random(1)
    described = [describe_layout(layout) for layout in LAYOUTS.values()]
    described += [
        describe_layout(plan)
        for layout in ROWS.values()
        for text in TEXTS
        if (plan := plan_rows(layout, text, []))
    ]
    folder, file = os.open("/proc", os.O_RDONLY), os.open("/proc/stat", os.O_RDONLY)
    program = np.array([(file, 0, 0), (-1, 0, 0), (file, 99, 0)], dtype=ENTRY)
    values, status = np.empty(100), np.empty(3, dtype=np.int32)

    def call(times: int) -> None:
        for _ in range(times):
            capsule = native.make_layouts([chooser.choice(described)])
            native.parse_bytes(capsule, chooser.choice(TEXTS))
            if chooser.random() < 0.1:
                native.list_pids(folder)
                native.read_grid(capsule, program, values, status)

    def resident_bytes() -> int:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096

    call(1000)
    before = resident_bytes()
    call(100_000)
    os.close(folder)
    os.close(file)
    assert resident_bytes() - before < 2**20
