"""
What we make of each fixture node: /metrics, window JSON and /status.

A changed golden is the change: `make golden` renews them, the diff is read in
review. Figures that depend on the machine that runs the test (CPU time, memory,
inodes, paths, the version) are masked.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from tests.support import FixtureNode, list_nodes, request_all

HERE = Path(__file__).parent
# Longer than the time between the instants, so that both frames are inside.
WINDOW_SECONDS = 20
WINDOW_SCOPES = ("cpu", "disk", "network", "pod", "process", "container", "service", "gpu")
MASKED = re.compile(
    r"^(nodescope_source_seconds_total|nodescope_process_cpu_seconds_total|nodescope_process_resident_bytes"
    r"|nodescope_ring_bytes|nodescope_build_info|node_exporter_build_info|node_scrape_collector_duration_seconds)"
    r"(\{.*\})? .*$",
    re.MULTILINE,
)
# The linter dislikes names that node_exporter and cAdvisor have given; exempt by name.
EXEMPT = re.compile(
    r"node_(memory|netstat|sockstat)_[A-Za-z]\w+ .*(camelCase|snake_case|base unit)"
    r"|node_(entropy_\w+_bits|hwmon_\w+|power_supply_\w+|timex_\w+|softnet_\w+|cooling_device_\w+) .*"
)


def mask_metrics(text: str) -> str:
    return MASKED.sub(lambda match: f"{match[1]}{mask_version(match[2] or '')} MASKED", text)


def mask_version(labels: str) -> str:
    return re.sub(r'(version|python|goarch|goos)="[^"]*"', r'\1="MASKED"', labels)


def mask_json(value: Any, key: str = "") -> Any:
    """Costs, sizes and what belongs to the machine that runs the test."""
    if key in (
        "cost_seconds",
        "used_ratio",
        "bytes",
        "permissions",
        "version",
        "settings",
        "reader",
        "files",
    ):
        return "MASKED"
    if isinstance(value, dict):
        return {name: mask_json(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [mask_json(item) for item in value]
    return value


def mask_inodes(window: Any) -> Any:
    """The second id of a container or service is its cgroup's inode."""
    for entity in window["entities"] if window["scope"] in ("container", "service") else ():
        entity["ids"][1] = "MASKED"
    return window


def render(content: Any) -> str:
    return json.dumps(mask_json(content), indent=1, ensure_ascii=False) + "\n"


def answer(node: FixtureNode) -> dict[str, str]:
    """The three goldens of a node, as its HTTP gives them."""
    node.run()
    scoped = {
        scope: f"/window?seconds={WINDOW_SECONDS}&scope={scope}&stats=last,rate" for scope in WINDOW_SCOPES
    }
    paths = ["/metrics", "/status", f"/metrics?window_seconds={WINDOW_SECONDS}", *scoped.values()]
    metrics, status, window, *windows = request_all(node.parts, paths)
    by_scope = {scope: mask_inodes(found.json()) for scope, found in zip(scoped, windows, strict=True)}
    return {
        "metrics.prom": mask_metrics(metrics.text),
        "window.json": render({"node": window.json(), **by_scope}),
        "status.json": render(status.json()),
    }


@pytest.fixture(params=["auto", "python"])
def reader(request: pytest.FixtureRequest) -> str:
    """The native reader where it was built, and the plain one: both give the same goldens."""
    return str(request.param)


@pytest.fixture
def node(request: pytest.FixtureRequest, tmp_path: Path, reader: str) -> Any:
    made = FixtureNode(request.param, tmp_path, reader)
    yield made
    made.close()


def is_renewing() -> bool:
    return os.environ.get("NODESCOPE_RENEW_GOLDEN") == "1"


@pytest.mark.parametrize("node", list_nodes(), indirect=True)
def test_a_node_gives_what_its_golden_says(node: FixtureNode) -> None:
    """/metrics, windows over both instants and /status are, byte for byte, what was reviewed."""
    folder = HERE / node.name
    for file, text in answer(node).items():
        if is_renewing():
            folder.mkdir(exist_ok=True)
            (folder / file).write_text(text)
        assert text == (folder / file).read_text(), f"{node.name}/{file} changed: make golden, read the diff"


@pytest.mark.parametrize("name", list_nodes())
def test_prometheus_client_reads_every_line(name: str) -> None:
    """The parser of another project sees as many samples as the golden has lines, no series twice."""
    text = (HERE / name / "metrics.prom").read_text().replace(" MASKED", " 0")
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(series) == sum(1 for line in text.splitlines() if not line.startswith("#"))
    assert len(series) == len(set(series))


@pytest.mark.parametrize("node", list_nodes(), indirect=True)
def test_openmetrics_says_the_same(node: FixtureNode) -> None:
    """The stricter format has every series of the plain one, by the parser of another project."""
    node.run()
    plain, strict = (node.parts.scrape.render((), openmetrics=is_open) for is_open in (False, True))
    parse: Any = openmetrics_families
    samples = [sample for family in parse(strict) for sample in family.samples]
    assert len(samples) == sum(1 for line in plain.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("node", list_nodes(), indirect=True)
def test_every_way_out_answers_on_every_node(node: FixtureNode) -> None:
    """No name, number or missing file makes an answer fail."""
    node.run()
    paths = ["/", "/live", "/healthz", "/health", "/readyz", "/status", "/metrics?source=container"]
    assert [found.status_code for found in request_all(node.parts, paths)] == [200] * len(paths)


@pytest.mark.parametrize("name", list_nodes())
def test_the_linter_of_prometheus_is_content(name: str) -> None:
    """Promtool finds nothing but the names that other projects fix, exempt by name."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")
    text = (HERE / name / "metrics.prom").read_text().replace(" MASKED", " 0")
    found = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    complaints = [line for line in (found.stdout + found.stderr).splitlines() if line.strip()]
    assert [line for line in complaints if not EXEMPT.search(line)] == []


@pytest.mark.parametrize("name", list_nodes())
def test_no_text_from_the_node_breaks_out_of_its_line(name: str) -> None:
    """Labels hold no control character: neither a terminal nor a log can be written to through them."""
    for file in ("metrics.prom", "window.json", "status.json"):
        text = (HERE / name / file).read_text()
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        assert not re.search(r"\\u00[01][0-9a-f]|\\n|\\t", text)
