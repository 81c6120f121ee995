"""Two exporters of one node: what is the same, what differs, what is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.serve.prometheus_parse import parse_text
from nodescope.use.peers.compare import compare, is_near, render

OURS = """node_load1 1
node_netstat_Tcp_InSegs{} 10
container_cpu_usage_seconds_total{id="/a",pod="web",cpu="total"} 5
container_fs_reads_total{id="/a",device="/dev/a"} 1
container_fs_reads_total{id="/a",device="/dev/b"} 2
"""


def test_every_series_of_theirs_is_sorted_into_one_of_four() -> None:
    theirs = parse_text(
        'go_info 1\nnode_load1 1 1700000000000\ncontainer_cpu_usage_seconds_total{id="/a",image=""} 5\n'
        'container_cpu_usage_seconds_total{id="/b"} 1\nnode_netstat_Tcp_InSegs 99\nnode_other{x="1"} 1\nnode_other{x="2"} 1\n',
        has_timestamps=True,
    )
    found = compare(parse_text(OURS), theirs, parse_text(OURS))
    assert found.same == 2
    assert [one.name for one in found.different] == ["node_netstat_Tcp_InSegs"]
    assert found.missing_series == [("container_cpu_usage_seconds_total", (("id", "/b"),))]
    assert found.missing_names == {"node_other": 2}
    assert found.total == 6
    lines = render("peer", found, 1)
    assert lines[0].startswith("peer: 6 series, 2 the same, 1 with other values")
    assert any("theirs 99, ours 10 to 10" in line for line in lines)


def test_a_label_that_they_do_not_split_by_is_summed() -> None:
    found = compare(parse_text(OURS), parse_text('container_fs_reads_total{id="/a"} 3\n'), parse_text(OURS))
    assert (found.same, found.different) == (1, [])


@given(st.floats(-1e12, 1e12), st.floats(0, 1e9), st.floats(0, 1), st.booleans())
def test_what_lies_between_our_readings_is_near(
    first: float, growth: float, share: float, is_counter: bool
) -> None:
    """forall theirs in [first, last]: is_near(first, last, theirs)."""
    assert is_near(first, first + growth, first + growth * share, is_counter=is_counter)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_counter", "near"),
    [
        ((10, 11), 12, True, False),
        ((10, 10), 10.4, False, True),
        ((10, 10), 12, False, False),
        ((1, 1), 2, True, False),
    ],
)
def test_what_lies_outside_is_not(
    ours: tuple[float, float], theirs: float, is_counter: bool, near: bool
) -> None:
    assert is_near(*ours, theirs, is_counter=is_counter) is near
