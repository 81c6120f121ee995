"""The parser of other people's metrics reads what Prometheus' own client reads."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from nodescope.base.errors import ParseError
from nodescope.serve.prometheus_parse import parse_text

GOLDENS = sorted((Path(__file__).parents[1] / "golden").glob("*/metrics.prom"))
Sample = tuple[str, frozenset[tuple[str, str]], float]


def by_ours(text: str) -> set[Sample]:
    families = parse_text(text, most=100_000).values()
    return {(name, frozenset(labels), value) for one in families for name, labels, value in one.samples}


def by_theirs(text: str) -> set[Sample]:
    # Their parser adds _total to a counter that lacks it, as OpenMetrics wants it.
    plain = "\n".join(line for line in text.split("\n") if not line.startswith("# TYPE"))
    families = text_string_to_metric_families(plain)
    return {
        (one.name, frozenset(one.labels.items()), one.value) for family in families for one in family.samples
    }


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: str(path.parent.name))
def test_every_golden_is_read_as_the_client_of_prometheus_reads_it(path: Path) -> None:
    text = "\n".join(line for line in path.read_text().split("\n") if not line.endswith(" MASKED"))
    assert len(by_ours(text)) > 50
    assert by_ours(text) == by_theirs(text)


# What no terminal or page takes for a command; the rest is cleaned, which the client does not do.
HARMLESS = st.characters(max_codepoint=0x24F, categories=("L", "N", "P", "S"))


@given(st.text(HARMLESS, max_size=40), st.floats(allow_nan=False))
def test_any_label_and_any_number_come_back(value: str, number: float) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    text = f'name{{a="{escaped}"}} {"+Inf" if number == math.inf else number}\n'
    ((_, ours, read),) = by_ours(text)
    ((_, theirs, _),) = by_theirs(text)
    assert read == number
    assert ours == theirs


@pytest.mark.parametrize(
    "line", ["name{a=1} 1", "name", "name one", 'name{a="1",a="2"} 1', "na me 1", 'x{a="b} 1']
)
def test_a_wrong_line_is_named(line: str) -> None:
    with pytest.raises(ParseError, match="line 2"):
        parse_text(f"good 1\n{line}\n")
