"""The rules that we ship: complete, tested one by one, and with a runbook each."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.conftest import need_tool

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/rules.yaml"
TESTS = ROOT / "deploy/prometheus/rules_test.yaml"
RUNBOOKS = ROOT / "docs/runbooks.md"


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def recorded() -> list[str]:
    return [rule["record"] for rule in rules() if "record" in rule]


def cases() -> list[dict[str, Any]]:
    tests = yaml.safe_load(TESTS.read_text())["tests"]
    return [case for test in tests for case in test.get("alert_rule_test", [])]


@pytest.mark.parametrize("alert", alerts(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_is_tested_firing_and_not_firing(alert: dict[str, Any]) -> None:
    """Once it fires with exactly the labels that are listed, once for nobody."""
    mine = [case["exp_alerts"] for case in cases() if case["alertname"] == alert["alert"]]
    assert [] in mine
    assert any(mine)


@pytest.mark.parametrize("alert", alerts(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_says_what_to_do(alert: dict[str, Any]) -> None:
    """A severity, a sentence, and a heading of the runbooks of its own name."""
    assert alert["labels"]["severity"] in ("info", "warning", "critical")
    assert alert["annotations"]["summary"].endswith(".")
    assert alert["annotations"]["runbook"] == f"docs/runbooks.md#{alert['alert'].lower()}"
    assert f"\n### {alert['alert']}\n" in RUNBOOKS.read_text()


def test_every_runbook_has_its_alert() -> None:
    headings = re.findall(r"^### (\w+)$", RUNBOOKS.read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(alert["alert"] for alert in alerts())


def test_every_selector_names_the_job() -> None:
    """What kubelet or node_exporter also publish must not be counted twice."""
    published = re.compile(
        r"\b((?:container|node|gpu|fpga|pcm|nodescope|metrics)_\w+|up)\b(?!\s*\()(?!:)(\{[^}]*\})?"
    )
    for rule in rules():
        for name, selector in published.findall(strip_grouping(rule["expr"])):
            if name.endswith(("_seconds", "_bytes", "_total", "_info")) or selector or name == "up":
                assert (
                    re.search(r'job=~?"nodescope[^"|]*(\|nodescope[^"|]*)*"', selector)
                    or name == "kube_node_info"
                ), (rule, name)


def strip_grouping(expression: str) -> str:
    """Without recorded names and label lists: what is left are series."""
    plain = re.sub(r"\b[a-z]+:[\w:]+", "", expression)
    return re.sub(r"\b(by|on|group_left|group_right)\s*\([^)]*\)", "", plain)


def test_recorded_names_say_what_they_are_kept_by() -> None:
    """level:what:how, and only the container level grows with pods."""
    for name in recorded():
        level, what, how = name.split(":")
        assert level in ("node", "container", "namespace", "workload", "cluster"), name
        assert what, name
        assert how, name


@pytest.mark.real
@pytest.mark.parametrize(
    "words",
    [("check", "rules", "--lint-fatal", str(RULES)), ("test", "rules", str(TESTS))],
    ids=["check", "test"],
)
def test_promtool_agrees(words: tuple[str, ...]) -> None:
    """Every alert, firing and not firing, by Prometheus' own engine."""
    checked = subprocess.run([need_tool("promtool"), *words], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
