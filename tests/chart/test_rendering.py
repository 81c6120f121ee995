"""What the chart makes of its values, and what it refuses."""

import filecmp
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.chart.chart import (
    CHART,
    EVERYTHING,
    ROOT,
    Thing,
    find_program,
    of_kind,
    render,
    render_text,
    run_helm,
)
from tests.chart.schemas import write_schemas
from tests.cluster.kubelet import derive_service_links

from nodescope.base.settings_load import load_settings
from nodescope.cli import build_parser
from nodescope.commands.extender import HUNG_SECONDS

pytestmark = pytest.mark.real


def test_lint_finds_nothing() -> None:
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_the_plain_manifests_are_what_the_chart_renders(tmp_path: Path) -> None:
    find_program("helm")
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
        ("kubernetes.events=true", "agent"),
        ("extender.enabled=true", "extender"),
        ("adapter.enabled=true", "adapter"),
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


@pytest.mark.parametrize(("version", "is_new"), [("1.35.0", True), ("1.30.0", True), ("1.26.0", False)])
@pytest.mark.parametrize(
    ("value", "policies"), [("kubernetes.annotate={fpga}", 2), ("kubernetes.events=true", 1)]
)
def test_an_old_cluster_gets_no_admission_policy(
    value: str, policies: int, version: str, *, is_new: bool
) -> None:
    things = render(value, kube_version=version)
    policies = policies if is_new else 0
    assert len(of_kind(things, "ValidatingAdmissionPolicy")) == policies
    assert len(of_kind(things, "ValidatingAdmissionPolicyBinding")) == policies


@pytest.mark.parametrize("value", ["kubernetes.annotate={fpga}", "kubernetes.events=true"])
def test_the_policy_names_the_release_s_own_account(value: str) -> None:
    settings = ("template", "watch", str(CHART), "-n", "other", "--kube-version", "1.35.0")
    done = run_helm(*settings, "--set", value)
    things = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    policies = of_kind(things, "ValidatingAdmissionPolicy")
    bindings = of_kind(things, "ValidatingAdmissionPolicyBinding")
    (account,) = of_kind(things, "ServiceAccount")
    expected = f"system:serviceaccount:other:{account['metadata']['name']}"
    for policy, binding in zip(policies, bindings, strict=True):
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
        ("push.to=collector:4318", "/push/to"),
        ("alertmanager.urls={alertmanager:9093}", "/alertmanager/urls"),
        ("data.hostPath=relative", "hostPath"),
        ("extender.tls.from=nobody", "from"),
        ("clusterViewer.deadline=soon", "/clusterViewer/deadline"),
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
            if container["name"] in {"pcm", "prometheus", "scheduler"}:
                continue
            options, rest = build_parser().parse_known_args(container["args"])
            assert not rest, container["name"]
            seen.add(options.command)
    assert {"agent", "viewer", "consolidate"} <= seen


PUSH = (
    "push.to=http://collector.monitoring:4318",
    "push.headersSecret=otlp",
    "security.tokenSecret=t",
    "cluster=c1",
)


def test_a_pusher_is_a_container_of_its_own_without_any_right() -> None:
    (spec,) = [
        one for name, one in pod_specs(*PUSH).items() if "push" in [c["name"] for c in one["containers"]]
    ]
    (container,) = [one for one in spec["containers"] if one["name"] == "push"]
    options, rest = build_parser().parse_known_args(container["args"])
    assert (options.command, rest, options.cluster) == ("push", [], "c1")
    assert options.to == "http://collector.monitoring:4318"
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert mounts[str(options.headers_file.parent)] == "push-headers"
    assert mounts[str(options.agent_token_file.parent)] == "token"
    assert {one["name"] for one in spec["volumes"]} >= set(mounts.values())
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["runAsNonRoot"] is True
    assert not any("push" in [c["name"] for c in one["containers"]] for one in pod_specs().values())


def test_a_pusher_is_refused_where_it_could_not_read_the_agent() -> None:
    done = run_helm(
        "template",
        "nodescope",
        str(CHART),
        "--kube-version",
        "1.35.0",
        "--set",
        f"{PUSH[0]},security.tlsSecret=x",
    )
    assert done.returncode != 0
    assert "push.to reads the agent over 127.0.0.1" in done.stderr


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
    kubeconform = find_program("kubeconform")
    schemas = write_schemas(tmp_path)
    kinds = "PodMonitor,ServiceMonitor,PrometheusRule"
    command = [
        kubeconform,
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
        asked = ("kubernetes.names=true", "kubernetes.annotate={fpga}", "kubernetes.events=true")
        rendered = render(*asked, "extender.enabled=true")
        (role,) = [
            thing
            for thing in of_kind(rendered, "ClusterRole")
            if thing["metadata"]["name"].endswith(component)
        ]
        (expected,) = of_kind(kept, "ClusterRole")
        assert role["rules"] == expected["rules"]


def pod_specs(*values: str) -> dict[str, Thing]:
    found = of_kind(render(*values), "DaemonSet") + of_kind(render(*values), "Deployment")
    return {thing["metadata"]["name"]: thing["spec"]["template"]["spec"] for thing in found}


def test_the_kubelet_s_variables_of_our_own_services_stop_nobody() -> None:
    """Pods ask for none of them; and where a pod gets them all the same, every command starts."""
    assert all(spec["enableServiceLinks"] is False for spec in pod_specs(*EVERYTHING).values())
    links = derive_service_links(of_kind(render(*EVERYTHING), "Service"))
    assert links["NODESCOPE_EXTENDER_PORT"].startswith("tcp://")
    assert len([name for name in links if name.startswith("NODESCOPE_")]) > 15
    assert load_settings({}, links, {}).settings == load_settings({}, {}, {}).settings


@pytest.mark.parametrize("port", [9100, 9101, 9400, 8050])
def test_the_port_of_events_is_nobody_else_s(port: int) -> None:
    done = run_helm(
        "template",
        "x",
        str(CHART),
        "--kube-version",
        "1.35.0",
        "--set",
        f"fpga.enabled=true,fpga.port={port}",
    )
    assert done.returncode != 0
    assert f"fpga.port: {port} is another listener" in done.stderr


def test_events_are_taken_where_nothing_is_read() -> None:
    """Only the monitoring namespace reaches the ports that answer; every namespace reaches that of events."""
    things = render("fpga.enabled=true")
    (agent,) = of_kind(things, "DaemonSet")
    arguments = agent["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--fpga-listen=0.0.0.0:8080" in arguments
    assert "--listen=0.0.0.0:8080" not in arguments
    open_ports = {
        port["port"]
        for policy in of_kind(things, "NetworkPolicy")
        for rule in policy["spec"].get("ingress", [])
        for port in rule["ports"]
        if {"namespaceSelector": {}} in rule.get("from", [{"namespaceSelector": {}}])
    }
    assert open_ports == {8080}


def test_an_empty_list_of_peers_means_nobody() -> None:
    nobody = ("networkPolicy.from=null", "networkPolicy.mcpFrom=null")
    closed = (*nobody, "mcp.enabled=true", "clusterViewer.enabled=true")
    things = render(*closed)
    rules = {
        thing["metadata"]["name"]: thing["spec"].get("ingress") for thing in of_kind(things, "NetworkPolicy")
    }
    assert rules["nodescope-scrape"] == []
    assert rules["nodescope-mcp"] == []
    assert rules["nodescope-cluster"] == []
    text = render_text(*closed)
    assert "from: []" not in text
    assert "from:\n        []" not in text


def test_the_page_of_the_cluster_is_off_and_is_let_through_to_the_viewers_where_it_is_on() -> None:
    """Who may look at pages may look at it; beside the MCP server each has a policy of its own at the agents."""
    assert not [thing for thing in render() if thing["metadata"]["name"].startswith("nodescope-cluster")]
    things = render(
        "clusterViewer.enabled=true",
        "clusterViewer.allowedHosts={nodes.example}",
        "viewer.port=8150",
        "security.tokenSecret=secret-word",
        "mcp.enabled=true",
    )
    mine = {thing["kind"]: thing for thing in things if thing["metadata"]["name"] == "nodescope-cluster"}
    assert set(mine) == {
        "Deployment",
        "NetworkPolicy",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    }
    assert mine["Role"]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    spec = mine["Deployment"]["spec"]["template"]["spec"]
    arguments = spec["containers"][0]["args"]
    assert arguments[0] == "viewer"
    assert {
        "--kubernetes",
        "--namespace=nodescope",
        "--viewer-port=8150",
        "--allow-host=nodes.example",
    } <= set(arguments)
    assert {
        "--token-file=/etc/nodescope/token/token",
        "--viewer-token-file=/etc/nodescope/token/token",
    } <= set(arguments)
    assert mine["Service"]["spec"]["ports"] == [{"name": "page", "port": 8050, "targetPort": "page"}]
    policies = {
        thing["metadata"]["name"]: thing["spec"] for thing in things if thing["kind"] == "NetworkPolicy"
    }
    (looking,) = policies["nodescope-cluster"]["ingress"]
    assert looking["from"] == policies["nodescope-scrape"]["ingress"][0]["from"]
    for name, component in (("nodescope-viewer", "mcp"), ("nodescope-cluster-viewer", "cluster")):
        (asking,) = policies[name]["ingress"]
        (peer,) = asking["from"]
        assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
        assert asking["ports"] == [{"protocol": "TCP", "port": 8150}]


def test_pods_may_talk_to_what_they_need() -> None:
    def ports(*values: str) -> dict[str, list[int]]:
        return {
            thing["metadata"]["name"]: [
                port["port"] for rule in thing["spec"]["egress"] for port in rule["ports"]
            ]
            for thing in of_kind(render(*values), "NetworkPolicy")
            if thing["spec"]["policyTypes"] == ["Egress"]
        }

    assert ports() == {"nodescope-agent-out": []}
    everything = ports(*EVERYTHING)
    assert 6443 in everything["nodescope-agent-out"]
    assert 8888 in everything["nodescope-scheduler-out"]
    assert 8050 in everything["nodescope-mcp-out"]
    assert 8050 in everything["nodescope-cluster-out"]
    assert 9100 in everything["nodescope-adapter-out"]
    assert not ports("networkPolicy.egress=false")


def test_every_container_s_disk_is_limited() -> None:
    for name, spec in pod_specs(*EVERYTHING).items():
        for container in spec["containers"]:
            resources = container["resources"]
            assert "ephemeral-storage" in resources["limits"], (name, container["name"])
            assert "ephemeral-storage" in resources["requests"], (name, container["name"])


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (2, 1)])
def test_one_replica_can_be_drained(replicas: int, budgets: int) -> None:
    things = render("extender.enabled=true", f"extender.replicas={replicas}")
    assert len(of_kind(things, "PodDisruptionBudget")) == budgets


@pytest.mark.parametrize(
    ("values", "quotas"), [((), 1), (("priorityClassName=",), 0), (("priorityClassName=mine",), 0)]
)
def test_a_class_of_the_system_gets_its_quota(values: tuple[str, ...], quotas: int) -> None:
    assert len(of_kind(render(*values), "ResourceQuota")) == quotas


@pytest.mark.parametrize(
    ("source", "secrets", "certificates"),
    [("helm", 2, 0), ("certManager", 0, 3), ("secret", 0, 0), ("off", 0, 0)],
)
def test_certificates_come_from_where_the_values_say(source: str, secrets: int, certificates: int) -> None:
    own = ("extender.tls.serverSecret=one", "extender.tls.clientSecret=other") if source == "secret" else ()
    values = ("extender.enabled=true", f"extender.tls.from={source}", *own)
    things = render(*values)
    assert len(of_kind(things, "Secret")) == secrets
    assert len(of_kind(things, "Certificate")) == certificates
    (config,) = of_kind(things, "ConfigMap")
    (extender,) = yaml.safe_load(config["data"]["config.yaml"])["extenders"]
    assert extender["urlPrefix"].startswith("http://" if source == "off" else "https://")
    specs = pod_specs(*values)
    arguments = specs["nodescope-extender"]["containers"][0]["args"]
    assert ("--verbs-tls=/etc/nodescope/verbs" in arguments) == (source != "off")


@pytest.mark.parametrize(
    ("source", "secrets", "certificates"), [("helm", 1, 0), ("certManager", 0, 2), ("secret", 0, 0)]
)
def test_the_api_server_knows_who_signed_the_adapter_s_certificate(
    source: str, secrets: int, certificates: int
) -> None:
    own = ("adapter.tls.secret=mine", "adapter.tls.caBundle=Zm9v") if source == "secret" else ()
    things = render("adapter.enabled=true", "adapter.external=true", f"adapter.tls.from={source}", *own)
    assert len(of_kind(things, "Secret")) == secrets
    assert len(of_kind(things, "Certificate")) == certificates
    services = of_kind(things, "APIService")
    assert len(services) == 2
    for service in services:
        injected = "cert-manager.io/inject-ca-from" in service["metadata"].get("annotations", {})
        assert injected == (source == "certManager")
        assert bool(service["spec"].get("caBundle")) != injected
        assert not service["spec"].get("insecureSkipTLSVerify")


def test_external_metrics_are_left_to_others_unless_asked_for() -> None:
    """KEDA serves them; a second registration would take them away from it."""
    (service,) = of_kind(render("adapter.enabled=true"), "APIService")
    assert service["spec"]["group"] == "custom.metrics.k8s.io"


def test_agents_are_open_to_the_adapter_alone() -> None:
    (policy,) = [
        thing
        for thing in of_kind(render("adapter.enabled=true"), "NetworkPolicy")
        if thing["metadata"]["name"] == "nodescope-windows"
    ]
    (rule,) = policy["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "adapter"
    assert [port["port"] for port in rule["ports"]] == [9100]


@pytest.mark.parametrize("replicas", [1, 2])
def test_replicas_of_the_extender_know_each_other(replicas: int) -> None:
    values = ("extender.enabled=true", f"extender.replicas={replicas}")
    arguments = pod_specs(*values)["nodescope-extender"]["containers"][0]["args"]
    told = [one for one in arguments if one.startswith("--peers=")]
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind(render(*values), "Service")}
    if replicas == 1:
        assert not told
        assert "nodescope-extender-peers" not in services
        return
    assert told == ["--peers=nodescope-extender-peers.nodescope.svc:8890"]
    assert services["nodescope-extender-peers"]["clusterIP"] == "None"


def test_a_frozen_extender_is_restarted_within_ten_seconds() -> None:
    """Three failures in a row, each after a loop that hung for 3 s or no answer for 2 s."""
    (container,) = pod_specs("extender.enabled=true")["nodescope-extender"]["containers"]
    probe = container["livenessProbe"]
    assert HUNG_SECONDS + probe["periodSeconds"] * probe["failureThreshold"] <= 10
    assert probe["failureThreshold"] * probe["periodSeconds"] + probe["timeoutSeconds"] <= 10
    # A process that is stopped hears no SIGTERM: the pod's usual grace would be 30 s more.
    assert probe["terminationGracePeriodSeconds"] == 1


def test_the_scheduler_s_image_is_the_cluster_s_version() -> None:
    for version, tag in (("v1.31.4-gke.1183000", "v1.31.4"), ("v1.30.2+k3s1", "v1.30.2")):
        things = render("extender.enabled=true", kube_version=version)
        (image,) = [
            thing["spec"]["template"]["spec"]["containers"][0]["image"]
            for thing in of_kind(things, "Deployment")
            if thing["metadata"]["name"] == "nodescope-scheduler"
        ]
        assert image == f"registry.k8s.io/kube-scheduler:{tag}"


@pytest.mark.parametrize("component", ["mcp", "clusterViewer"])
@pytest.mark.parametrize(("has_authority", "trusted"), [(False, "tls.crt"), (True, "ca.crt")])
def test_who_asks_viewers_speaks_tls_where_they_do(component: str, has_authority: bool, trusted: str) -> None:
    """Without it every node is away; a viewer that asks for a certificate is shown the Secret's own."""
    values = (
        f"{component}.enabled=true",
        "security.tlsSecret=x",
        f"security.clientCa={str(has_authority).lower()}",
    )
    arguments = [
        word for spec in pod_specs(*values).values() for one in spec["containers"] for word in one["args"]
    ]
    assert f"--viewer-ca=/etc/nodescope/tls/{trusted}" in arguments
    assert ("--viewer-cert=/etc/nodescope/tls" in arguments) == has_authority
