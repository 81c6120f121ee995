"""The native parsers and their Python twins: where the native one answers, it answers the same."""

import math
import random
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodescope.base.errors import ParseError
from nodescope.base.metric import Metric
from nodescope.collect.layout import (
    Fields,
    GridLayout,
    KeyValues,
    Number,
    OperationSums,
    PairSums,
    PressureLines,
    ProcessStat,
)
from nodescope.collect.native import describe_layout, load_native

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


@pytest.mark.parametrize("name", LAYOUTS)
@given(files=st.lists(disturbed(), min_size=1, max_size=4))
@example(files=[b"usage_usec 1\noom_kill 2\n", b"oom_kill 2\nusage_usec 1\n"])
@settings(max_examples=1500, deadline=None)
def test_where_the_native_parser_answers_the_plain_one_answers_the_same(
    name: str, files: list[bytes]
) -> None:
    """
    forall sequences of files: native(file) is None, or native(file) == plain(file) cell by cell.

    Sequences, because both remember where keys stood in the file before.
    """
    layout = LAYOUTS[name]
    capsule = native.make_layouts([describe_layout(layout)])
    parse = layout.parser()
    for data in files:
        answer = native.parse_bytes(capsule, data)
        plain = plain_answer(parse, data)
        if answer is not None:
            assert plain is not None, data
            assert all(same(*pair) for pair in zip(answer, plain, strict=True)), (data, answer, plain)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_native_parser_is_sure_of_what_the_kernel_writes(name: str) -> None:
    """Falling back is for odd bytes; at least one kernel text of each layout is answered natively."""
    capsule = native.make_layouts([describe_layout(LAYOUTS[name])])
    assert any(native.parse_bytes(capsule, text) is not None for text in TEXTS)


def test_a_hundred_thousand_calls_leave_no_memory_behind() -> None:
    """Resident memory after 10^5 calls is within a MiB of what it was after the first thousand."""
    chooser = random.Random(1)

    def call(times: int) -> None:
        for _ in range(times):
            capsule = native.make_layouts([describe_layout(LAYOUTS[chooser.choice(list(LAYOUTS))])])
            native.parse_bytes(capsule, chooser.choice(TEXTS))

    def resident_bytes() -> int:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096

    call(1000)
    before = resident_bytes()
    call(100_000)
    assert resident_bytes() - before < 2**20
