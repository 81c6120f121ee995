"""What does not go together is refused by helm with its reason, and what does nothing is told in the notes."""

import shutil
from pathlib import Path

import pytest
from tests.chart.chart import CHART, run_helm
from tests.chart.test_combinations import REFUSED

pytestmark = pytest.mark.real


def refuse(*values: str, kube_version: str = "1.35.0") -> str:
    words = [word for value in values for word in ("--set", value)]
    done = run_helm("template", "nodescope", str(CHART), "--kube-version", kube_version, *words)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("values", [tuple(sorted(values)) for values in REFUSED])
def test_a_scheduler_that_would_be_refused_is_refused_by_helm(values: tuple[str, ...]) -> None:
    """Every call was 401, or plain HTTP to a port of TLS, and helm had said that all was well."""
    assert "extender.tls.from=off" in refuse(*values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("extender.enabled=true", "extender.tls.from=secret"), "extender.tls.serverSecret"),
        (
            ("extender.enabled=true", "extender.tls.from=secret", "extender.tls.serverSecret=one"),
            "extender.tls.clientSecret",
        ),
        (("adapter.enabled=true", "adapter.tls.from=secret"), "adapter.tls.caBundle"),
        (("security.clientCa=true",), "security.tlsSecret"),
        (
            ("extender.enabled=true", "scheduler.schedulerName=default-scheduler"),
            "default-scheduler is the cluster's own",
        ),
    ],
)
def test_a_value_that_needs_another_says_which(values: tuple[str, ...], said: str) -> None:
    assert said in refuse(*values)


@pytest.mark.parametrize(
    ("values", "one", "other"),
    [
        (("viewer.port=9100",), "agent.ports.metrics", "viewer.port"),
        (("agent.ports.probes=9400",), "agent.ports.probes", "agent.ports.extra"),
        (("pcm.enabled=true", "pcm.port=8051"), "viewer.probePort", "pcm.port"),
        (("extender.enabled=true", "extender.port=8890"), "extender.port", "extender.httpPort"),
        (("adapter.enabled=true", "adapter.probePort=6443"), "adapter.port", "adapter.probePort"),
        (("mcp.enabled=true", "mcp.port=8081"), "mcp.port", "mcp.probePort"),
        (
            ("clusterViewer.enabled=true", "clusterViewer.port=8051"),
            "clusterViewer.port",
            "clusterViewer.probePort",
        ),
    ],
)
def test_two_listeners_of_one_pod_need_two_ports(values: tuple[str, ...], one: str, other: str) -> None:
    """One of them would not start, again and again."""
    assert f"{one} and {other} are both" in refuse(*values)


def test_a_port_of_what_is_off_is_nobody_s() -> None:
    words = ("--kube-version", "1.35.0", "--set", "viewer.enabled=false,viewer.port=9100,mcp.port=8081")
    assert run_helm("template", "nodescope", str(CHART), *words).returncode == 0


def read_notes(folder: Path, values: str, version: str = "1.35.0") -> str:
    """helm template leaves NOTES out, so that they are rendered as an object of a copy."""
    shutil.copytree(CHART, folder / "chart")
    notes = (CHART / "templates/NOTES.txt").read_text()
    told = "told: |\n" + "".join(f"  {line}\n" for line in notes.splitlines())
    (folder / "chart/templates/told.yaml").write_text(told)
    words = ("--kube-version", version, "--set", values, "--show-only", "templates/told.yaml")
    done = run_helm("template", "nodescope", str(folder / "chart"), *words)
    assert "describe daemonset/nodescope" in done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("version", "said"), [("1.35.0", "(narrowed by a Validating"), ("1.29.0", "of any node: no Validating")]
)
def test_the_notes_promise_the_policy_only_where_there_is_one(
    tmp_path: Path, version: str, said: str
) -> None:
    assert said in read_notes(tmp_path, "kubernetes.annotate={fpga}", version)


@pytest.mark.parametrize(
    ("alone", "mended", "said"),
    [
        ("extender.enabled=true", "kubernetes.annotate={fpga}", "No agent tells the extender anything"),
        ("clusterViewer.enabled=true,viewer.enabled=false", "viewer.enabled=true", "it finds no node"),
        ("mcp.enabled=true,viewer.enabled=false", "viewer.enabled=true", "it finds no node"),
        (
            "prometheus.enabled=true,security.tokenSecret=x",
            "security.tokenSecret=",
            "The chart's Prometheus is for a first look",
        ),
    ],
)
def test_the_notes_say_what_does_nothing_by_itself(
    tmp_path: Path, alone: str, mended: str, said: str
) -> None:
    assert said in read_notes(tmp_path / "alone", alone)
    assert said not in read_notes(tmp_path / "mended", f"{alone},{mended}")
