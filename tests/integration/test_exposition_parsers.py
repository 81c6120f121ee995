"""What /metrics says, read by everybody who reads it: promtool, both parsers, gzip."""

import gzip
import math
import re
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from tests.cgroups import Cgroups
from tests.integration.agents import Agent, running_agent, wait_for
from tests.integration.exposition import OPENMETRICS, family_names, find, parse, sample_lines

pytestmark = pytest.mark.real

# node_exporter derives these from the kernel's own words in /proc/meminfo and
# /proc/net/dev; they are what its dashboards ask for.
CAMEL_CASE = re.compile(r"node_(memory|network|netstat|sockstat)_[A-Za-z0-9_]*[A-Z][A-Za-z0-9_]* ")
# node_exporter counts entropy in bits, as the kernel does.
BITS = re.compile(r"node_entropy_\w+_bits use base unit")


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with running_agent("--label", "rack=b4") as running:
        yield running


def is_of_node_exporter(line: str) -> bool:
    """What the linter has against a name that dashboards ask for as it is."""
    return bool(BITS.match(line) or (CAMEL_CASE.match(line) and "snake_case" in line))


def test_the_linter_finds_nothing_but_node_exporter_s_names(agent: Agent, promtool: str) -> None:
    """Case and units of names that node_exporter has, too."""
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=agent.scrape(), capture_output=True, text=True, check=False
    )
    findings = (checked.stdout + checked.stderr).strip().splitlines()
    assert [line for line in findings if not is_of_node_exporter(line)] == []


def test_the_linter_has_nothing_against_a_node_with_containers(
    agent: Agent, promtool: str, cgroups: Cgroups
) -> None:
    """Neither while it runs nor when its obituary is shown."""
    container = cgroups.container()
    container.spawn(["sleep", "600"])
    identifier = "/" + container.path
    wait_for(lambda: find(agent.scrape(), "container_processes", id=identifier), "the container")
    while_it_runs = agent.scrape()
    cgroups.remove(container)
    wait_for(
        lambda: find(agent.scrape(), "nodescope_container_exit_cpu_seconds", id=identifier), "its obituary"
    )
    for text in (while_it_runs, agent.scrape()):
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        findings = (checked.stdout + checked.stderr).strip().splitlines()
        assert [line for line in findings if not is_of_node_exporter(line)] == []


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_the_parser_reads_every_line(agent: Agent, openmetrics: bool) -> None:
    """As many samples as lines, none NaN, no timestamp, each series once."""
    headers = {"Accept": OPENMETRICS} if openmetrics else {}
    answer = agent.client.get("/metrics", headers=headers)
    expected = "application/openmetrics-text" if openmetrics else "text/plain; version=0.0.4"
    assert answer.headers["content-type"].startswith(expected)
    families = parse(answer.text, openmetrics=openmetrics)
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) == len(sample_lines(answer.text))
    assert not any(math.isnan(sample.value) for sample in samples)
    assert all(sample.timestamp is None for sample in samples)
    identities = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_families_are_contiguous_and_described(agent: Agent, openmetrics: bool) -> None:
    """One HELP and one TYPE per family, before all of its lines, and nothing between them."""
    text = agent.client.get("/metrics", headers={"Accept": OPENMETRICS} if openmetrics else {}).text
    names = family_names(text)
    assert len(set(names)) == len(names)
    helped = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP ")]
    assert helped == names
    current = ""
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            current = line.split()[2]
        elif line and not line.startswith("#"):
            name = re.split(r"[{ ]", line, maxsplit=1)[0]
            assert re.fullmatch(re.escape(current) + "(_total|_bucket|_sum|_count)?", name), line
    assert text.endswith("# EOF\n") == openmetrics


def test_both_flavours_have_the_same_series(agent: Agent) -> None:
    """Accept chooses the form, never the content."""
    plain = parse(agent.scrape())
    other = parse(agent.client.get("/metrics", headers={"Accept": OPENMETRICS}).text, openmetrics=True)

    def names(families: list[object]) -> set[str]:
        return {sample.name for family in families for sample in family.samples}  # type: ignore[attr-defined]

    assert names(list(plain)) == names(list(other))


def fetch_raw(client: httpx.Client, path: str, encoding: str) -> tuple[bytes, str]:
    with client.stream("GET", path, headers={"Accept-Encoding": encoding}) as answer:
        return b"".join(answer.iter_raw()), answer.headers.get("content-encoding", "")


def test_gzip_is_the_same_text(agent: Agent) -> None:
    """Within one tick the packed and the plain answer are equal byte by byte."""

    def compare() -> bool:
        # Narrowed to sources: what the agent says about itself moves with every request.
        path = "/metrics?source=cpu&source=memory&source=process&source=vmstat"
        before, _ = fetch_raw(agent.client, path, "identity")
        zipped, encoding = fetch_raw(agent.client, path, "gzip")
        after, _ = fetch_raw(agent.client, path, "identity")
        assert encoding == "gzip"
        assert len(zipped) < len(before)
        return before == after == gzip.decompress(zipped)

    wait_for(compare, "three answers within one tick")


def test_a_client_that_refuses_gzip_gets_none(agent: Agent) -> None:
    """q=0 means no, as in RFC 9110 section 12.4.2."""
    for encoding in ("identity", "gzip;q=0", "gzip; q=0.0, identity", "br"):
        body, used = fetch_raw(agent.client, "/metrics", encoding)
        assert used == "", encoding
        assert body.startswith(b"# HELP"), encoding


def test_one_source_can_be_had_alone_and_a_wrong_one_is_refused(agent: Agent) -> None:
    text = agent.get("/metrics?source=memory").text
    assert find(text, "node_memory_MemTotal_bytes")
    assert all(name.startswith("node_memory_") for name in family_names(text))
    refused = agent.get("/metrics?source=memry")
    assert refused.status_code == 400
    assert 'did you mean "memory"?' in refused.json()["detail"]
