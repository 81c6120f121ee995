"""What the chart makes of its values, and what it refuses."""

import filecmp
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.chart.chart import CHART, EVERYTHING, ROOT, find_program, of_kind, render, render_text, run_helm
from tests.chart.schemas import write_schemas

from nodescope.cli import build_parser

pytestmark = pytest.mark.real


def test_lint_finds_nothing() -> None:
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_the_plain_manifests_are_what_the_chart_renders(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "tools/render-manifests", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rendered = sorted(path.name for path in tmp_path.glob("*.yaml"))
    kept = sorted(path.name for path in (ROOT / "deploy/manifests").glob("*.yaml"))
    assert rendered == kept
    _, changed, errors = filecmp.cmpfiles(tmp_path, ROOT / "deploy/manifests", rendered, shallow=False)
    assert not changed + errors, "run `make manifests`"


def test_the_defaults_ask_for_no_cluster_wide_right() -> None:
    kinds = {thing["kind"] for thing in render()}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding", "Role", "ValidatingAdmissionPolicy"}


@pytest.mark.parametrize(
    ("value", "component"),
    [
        ("kubernetes.names=true", "agent"),
        ("kubernetes.annotate={fpga}", "agent"),
        ("extender.enabled=true", "extender"),
    ],
)
def test_a_feature_that_needs_a_cluster_role_says_so(value: str, component: str) -> None:
    roles = of_kind(render(value), "ClusterRole")
    assert [role["metadata"]["name"] for role in roles] == [f"nodescope-nodescope-{component}"]
    values = (CHART / "values.yaml").read_text()
    section, key = value.split("=", maxsplit=1)[0].split(".")
    comment = re.search(rf"^{section}:\n(?:.*\n)*?((?:  #.*\n)+)  {key}:", values, re.MULTILINE)
    assert comment
    assert "ClusterRole" in comment[1]


@pytest.mark.parametrize(("version", "policies"), [("1.35.0", 1), ("1.30.0", 1), ("1.26.0", 0)])
def test_an_old_cluster_gets_no_admission_policy(version: str, policies: int) -> None:
    things = render("kubernetes.annotate={fpga}", kube_version=version)
    assert len(of_kind(things, "ValidatingAdmissionPolicy")) == policies
    assert len(of_kind(things, "ValidatingAdmissionPolicyBinding")) == policies


def test_the_policy_names_the_release_s_own_account() -> None:
    settings = ("template", "watch", str(CHART), "-n", "other", "--kube-version", "1.35.0")
    done = run_helm(*settings, "--set", "kubernetes.annotate={fpga}")
    things = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    (policy,) = of_kind(things, "ValidatingAdmissionPolicy")
    (binding,) = of_kind(things, "ValidatingAdmissionPolicyBinding")
    (account,) = of_kind(things, "ServiceAccount")
    expected = f"system:serviceaccount:other:{account['metadata']['name']}"
    assert expected in policy["spec"]["matchConditions"][0]["expression"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert "nodescope:nodescope-agent" not in done.stdout


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("agnet.perfmon=true", "agnet"),
        ("extender.policy=random", "policy"),
        ("kubernetes.annotate={gpu}", "annotate"),
        ("agent.ports.metrics=99999", "metrics"),
        ("consolidator.copyTo=ftp://x", "copyTo"),
        ("data.hostPath=relative", "hostPath"),
    ],
)
def test_a_wrong_value_is_refused_by_name(value: str, said: str) -> None:
    done = run_helm("template", "nodescope", str(CHART), "--set", value)
    assert done.returncode != 0
    assert said in done.stderr


def test_nothing_is_privileged_but_pcm_and_every_power_is_dropped_first() -> None:
    for thing in render(*EVERYTHING):
        template = (
            thing.get("spec", {}).get("template", {}) if thing["kind"] in {"DaemonSet", "Deployment"} else {}
        )
        for container in template.get("spec", {}).get("containers", []):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"], container["name"]
            if container["name"] == "pcm":
                continue
            assert not context.get("privileged"), container["name"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"]["drop"] == ["ALL"]
            assert set(context["capabilities"].get("add", [])) <= {"SYS_PTRACE", "PERFMON"}
            assert {"livenessProbe", "readinessProbe"} <= set(container) or container[
                "name"
            ] == "consolidator"
            assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
def test_every_argument_is_one_that_the_command_takes(values: tuple[str, ...]) -> None:
    seen = set()
    for thing in of_kind(render(*values), "DaemonSet") + of_kind(render(*values), "Deployment"):
        for container in thing["spec"]["template"]["spec"]["containers"]:
            if container["name"] in {"pcm", "prometheus"}:
                continue
            options, rest = build_parser().parse_known_args(container["args"])
            assert not rest, container["name"]
            seen.add(options.command)
    assert {"agent", "viewer", "consolidate"} <= seen


def test_every_host_path_and_capability_has_its_reason() -> None:
    lines = render_text(*EVERYTHING).splitlines()
    for number, line in enumerate(lines):
        reasoned = re.search(
            r"^\s+hostPath: |^\s+hostPID: |^\s+- SYS_|^\s+- PERFMON|^\s+privileged: true", line
        )
        if reasoned:
            before = "\n".join(lines[max(0, number - 12) : number])
            assert re.search(r"^\s+# \w", before, re.MULTILINE), line
    source = (CHART / "templates/daemonset.yaml").read_text()
    assert re.search(r"# [^\n]+\n\s+- SYS_PTRACE", source)
    assert re.search(r"# [^\n]+\n\s+hostPID: true", source)


def test_kubeconform_is_clean_and_would_not_be_with_a_misspelt_field(tmp_path: Path) -> None:
    schemas = write_schemas(tmp_path)
    kinds = "PodMonitor,ServiceMonitor,PrometheusRule"
    command = [
        find_program("kubeconform"),
        "-summary",
        "-output=json",
        f"-skip={kinds}",
        f"-schema-location={schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
    ]
    text = render_text(*EVERYTHING, "namespace.create=true")
    good = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    summary = json.loads(good.stdout)["summary"]
    assert good.returncode == 0, good.stdout
    assert summary["valid"] > 30
    assert not summary["errors"]
    assert not summary["invalid"]
    bad = subprocess.run(
        command, input=text.replace("hostPID:", "hostPIT:"), capture_output=True, text=True, check=False
    )
    assert bad.returncode != 0
    assert "hostPIT" in bad.stdout


def test_the_roles_are_those_that_the_scheduler_s_tests_use() -> None:
    """deploy/rbac is what the tests of agent and extender hold; the chart must not give more."""
    for component in ("agent", "extender"):
        kept = list(yaml.safe_load_all((ROOT / f"deploy/rbac/{component}.yaml").read_text()))
        rendered = render("kubernetes.names=true", "kubernetes.annotate={fpga}", "extender.enabled=true")
        (role,) = [
            thing
            for thing in of_kind(rendered, "ClusterRole")
            if thing["metadata"]["name"].endswith(component)
        ]
        (expected,) = of_kind(kept, "ClusterRole")
        assert role["rules"] == expected["rules"]
