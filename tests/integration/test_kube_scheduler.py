"""Placement by the stock kube-scheduler with our extender, on a real control plane."""

import http.client
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from tests.cluster.control_plane import RBAC, ControlPlane, wait_for
from tests.cluster.programs import Agent, Extender, run_agent, run_extender, run_program
from tests.support import NODES

from nodescope.base.clock import SystemClock
from nodescope.base.errors import KubernetesRefused
from nodescope.fpga.node_lease import LEASE_LABEL, path_leases
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.node_workloads import WORKLOADS_KEY
from nodescope.fpga.state import KEY, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker
from nodescope.kube.client import Client
from nodescope.use.scheduler.rating import BEST

pytestmark = pytest.mark.real

AGENT = "agent-token"
THREE = ("minikube", "minikube-m02", "minikube-m03")
ENABLED = {"fpga-scheduling.io/enabled": "true"}
# The seed's own workload, with the bitstream that its curl line reports.
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx-deployment
  labels:
    app: nginx
spec:
  replicas: 1
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      labels:
        app: nginx
        fpga-scheduling.io/enabled: "true"
        fpga-scheduling.io/bitstream-identifier: def
    spec:
      containers:
      - name: nginx
        image: nginx:1.17.10
        ports:
        - containerPort: 80
"""


@pytest.fixture
def cluster(plane: ControlPlane) -> ControlPlane:
    """Nothing in it but what the test makes; the extender's account as shipped."""
    plane.clear()
    for name in ("namespace", "extender"):
        plane.kubectl("apply", "-f", RBAC / f"{name}.yaml")
    return plane


@pytest.fixture
def extender(cluster: ControlPlane) -> Iterator[Extender]:
    kubeconfig = cluster.kubeconfig("extender-token")
    with run_extender(kubeconfig, cluster.extender_port, cluster.folder / "extender.log") as made:
        yield made


def post_by_curl(agent: Agent, timestamp_ms: int, reconfiguration_ms: int, bitstream: str) -> str:
    """The seed's line, word by word."""
    body = f"timestamp_ms={timestamp_ms}&reconfiguration_ms={reconfiguration_ms}&bitstream_identifier={bitstream}"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return httpx.post(f"{agent.url}/", content=body, headers=kind).text


def now_ms() -> int:
    return time.time_ns() // 10**6


def read_state(plane: ControlPlane, node: str) -> dict[str, Any]:
    text = plane.read_annotations(node).get(KEY)
    return json.loads(text) if text else {}


def write_state(plane: ControlPlane, node: str, *events: FpgaEvent) -> None:
    """As an agent that was told these events would."""
    tracker = FpgaTracker(SystemClock())
    for event in events:
        tracker.accept(event)
    plane.annotate(node, **{KEY: render_state(tracker.read())})


def write_load(plane: ControlPlane, node: str, health: float, **metrics: float) -> None:
    load = NodeLoad(time.time(), 20, health, {f"mean_{name}": value for name, value in metrics.items()})
    plane.annotate(node, **{WINDOW_KEY: render_load(load)})


def wait_known(extender: Extender, annotation: str, count: int) -> None:
    line = f'nodescope_extender_annotations{{annotation="{annotation}",state="fresh"}}'
    wait_for("the extender has seen the annotations", lambda: extender.metric(line) == count, 30)


def test_the_walk_through_of_the_seed(cluster: ControlPlane, extender: Extender) -> None:
    """Three nodes, three agents, the seed's lines, its Deployment, a second wave, a plain pod."""
    for name in THREE:
        cluster.create_node(name)
    root = NODES / "bare" / "t0"
    with ExitStack() as running:
        agents = {
            name: running.enter_context(run_agent(root, cluster.kubeconfig(AGENT), name)) for name in THREE
        }
        assert post_by_curl(agents[THREE[0]], now_ms(), 10000, "abc") == "ok"
        assert post_by_curl(agents[THREE[1]], now_ms(), 10000, "def") == "ok"
        assert post_by_curl(agents[THREE[2]], now_ms(), 10000, "xyz") == "ok"
        wait_for("all annotations appear", lambda: all(read_state(cluster, name) for name in THREE), 10)
        # The literal line of 2023 counts in the totals only.
        assert post_by_curl(agents[THREE[0]], 1689181419598, 10000, "def") == "ok"
        late = 'fpga_events_total{timestamp="late"}'
        wait_for("it is in the totals", lambda: agents[THREE[0]].metric(late) == 1, 15)
    assert read_state(cluster, THREE[0])["recentBitstreamIdentifiers"] == {"abc": {}}
    wait_known(extender, "fpga", 3)
    workload = cluster.folder / "workload.yaml"
    workload.write_text(DEPLOYMENT)
    cluster.kubectl("apply", "-f", workload)
    (first,) = wait_for("the pod is placed", lambda: cluster.read_places("app=nginx"), 60).items()
    assert first[1] == THREE[1]
    assert extender.scores(f"default/{first[0]}")[THREE[1]] == BEST

    # Nine more at once: no annotation changes meanwhile, the ledger spreads them.
    cluster.kubectl("scale", "deployment", "nginx-deployment", "--replicas=10")
    places = wait_for(
        "all are placed",
        lambda: len(found := cluster.read_places("app=nginx")) == 10 and found,
        60,
    )
    counts = {name: list(places.values()).count(name) for name in THREE}
    assert min(counts.values()) >= 1
    assert max(counts.values()) <= 6

    # A plain pod is none of our business, whatever the annotations say.
    cluster.submit_pod("plain", {})
    cluster.wait_placed("plain")
    assert extender.metric('nodescope_extender_pods_total{verb="filter",kind="plain"}') >= 1
    assert extender.get("/explain?pod=default/plain").status_code == 404


def test_a_pod_goes_to_the_node_that_has_its_bitstream_whatever_times_were_reported(
    cluster: ControlPlane, extender: Extender
) -> None:
    """
    The walk-through with other times, all other plugins on and against it: its node is the fullest.

    With scores of 0 to 10 a load of 10 ms was a tie, and chance decided.
    """
    for name in THREE:
        cluster.create_node(name)
    wanted = [{"name": "app", "image": "x", "resources": {"requests": {"cpu": "3", "memory": "4Gi"}}}]
    with cluster.client() as client:
        spec = {"nodeName": THREE[1], "containers": wanted}
        client.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "full"}, "spec": spec})
    labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": "abc"}
    chosen = []
    for number, (took_ms, other_ms) in enumerate(
        [(10, 10_000), (0, 10_000), (10, 0), (0.5, 1e9), (1e9, 10)] * 2
    ):
        write_state(cluster, THREE[0], FpgaEvent(now_ms(), reconfiguration_ms=other_ms, bitstream="def"))
        write_state(cluster, THREE[1], FpgaEvent(now_ms(), reconfiguration_ms=took_ms, bitstream="abc"))
        wait_known(extender, "fpga", 2)
        cluster.submit_pod(f"asks-{number}", labels)
        chosen.append(cluster.wait_placed(f"asks-{number}"))
        cluster.kubectl("delete", "pod", f"asks-{number}", "--grace-period=0", "--force", "--wait=true")
        wait_for("it is gone", lambda: extender.metric("nodescope_extender_pods_in_flight") == 0, 30)
    assert chosen == [THREE[1]] * len(chosen)


def test_garbage_stale_and_absent_annotations_are_neutral(cluster: ControlPlane, extender: Extender) -> None:
    """Scheduling goes on, on a node that is known; /explain says of each why it scored so."""
    for name in ("good", "busy", "garbage", "stale", "absent"):
        cluster.create_node(name)
    write_state(cluster, "good", FpgaEvent(now_ms(), usage_ms=1000, bitstream="def"))
    write_state(cluster, "busy", FpgaEvent(now_ms(), usage_ms=250_000, bitstream="def"))
    write_state(cluster, "stale", FpgaEvent(now_ms(), usage_ms=1, bitstream="def"))
    old = json.loads(cluster.read_annotations("stale")[KEY])
    cluster.annotate("stale", **{KEY: json.dumps({**old, "updatedAt": time.time() - 3600})})
    cluster.annotate("garbage", **{KEY: '{"version": 2, "recentUsage": "a lot"'})
    wait_known(extender, "fpga", 2)
    labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": "def"}
    cluster.submit_pod("asks", labels)
    assert cluster.wait_placed("asks") == "good"
    found = {one["node"]: one for one in extender.explain("default/asks")["nodes"]}
    assert found["good"]["score"] == BEST
    assert found["busy"]["confidence"] == 1
    for name, word in {
        "garbage": "not JSON",
        "stale": "stale: written 36",
        "absent": "no annotation",
    }.items():
        assert word in found[name]["why"]
        assert found[name]["confidence"] == 0
        assert found["busy"]["score"] < found[name]["score"] < BEST


def test_without_the_extender_pods_are_placed_all_the_same(cluster: ControlPlane) -> None:
    """Nobody listens at its port."""
    cluster.create_node("alone")
    cluster.create_node("other")
    cluster.submit_pod("orphan", ENABLED)
    assert cluster.wait_placed("orphan") in ("alone", "other")


def test_an_extender_that_never_answers_holds_nobody_up(cluster: ControlPlane) -> None:
    """Somebody listens at its port and says nothing: kube-scheduler gives up on it, call by call."""
    cluster.create_node("alone")
    cluster.create_node("other")
    with socket.create_server(("127.0.0.1", cluster.extender_port)):
        for number in range(3):
            cluster.submit_pod(f"waits-{number}", ENABLED)
        for number in range(3):
            assert cluster.wait_placed(f"waits-{number}") in ("alone", "other")


def test_a_node_of_another_vendor_is_filtered(cluster: ControlPlane, extender: Extender) -> None:
    """And when no other is left, the pod waits with our reason in its event."""
    key = "fpga-scheduling.io/fpga-vendor"
    cluster.create_node("amd", **{key: "amd"})
    cluster.create_node("intel", **{key: "intel"})
    wait_for("the nodes are known", lambda: extender.metric("nodescope_extender_nodes") == 2, 30)
    cluster.submit_pod("picky", {**ENABLED, key: "intel"})
    assert cluster.wait_placed("picky") == "intel"
    assert extender.explain("default/picky")["refused"] == {"amd": "fpga vendor is not intel"}
    cluster.submit_pod("pickier", {**ENABLED, key: "lattice"})
    events = wait_for(
        "the refusal is told",
        lambda: "lattice" in (text := cluster.kubectl("get", "events", "-o", "yaml")) and text,
        30,
    )
    assert "0/2 nodes are available: 2 fpga vendor is not lattice" in events
    assert "pickier" not in cluster.read_places()


def test_gpu_and_balance_pods_go_by_load(cluster: ControlPlane, extender: Extender) -> None:
    """The same two nodes, the one with idle GPUs busy otherwise."""
    room = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}
    for name in ("one", "two"):
        cluster.create_node(name)
        with cluster.client() as client:
            client.patch(f"/api/v1/nodes/{name}/status", {"status": room})
    write_load(cluster, "one", 9.0, cpu_util=0.1, cpu_pressure=0.0, gpu_util=0.95)
    write_load(cluster, "two", 6.0, cpu_util=0.8, cpu_pressure=0.2, gpu_util=0.05)
    wait_known(extender, "window", 2)
    wanted = [{"name": "app", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    cluster.submit_pod("trains", {"nodescope.io/gpu-placement": "spread"}, containers=wanted)
    assert cluster.wait_placed("trains") == "two"
    cluster.submit_pod("serves", {"nodescope.io/balance": "true"})
    assert cluster.wait_placed("serves") == "one"
    assert "gpu_util" in extender.explain("default/trains")["nodes"][0]["facts"]


def test_whole_nodes_are_answered_without_any_watch(cluster: ControlPlane, tmp_path: Path) -> None:
    """nodeCacheCapable: false: kube-scheduler sends the nodes and takes the same form back."""
    cluster.create_node("cold")
    cluster.create_node("warm")
    write_state(cluster, "cold", FpgaEvent(now_ms(), reconfiguration_ms=9000, bitstream="abc"))
    write_state(cluster, "warm", FpgaEvent(now_ms(), reconfiguration_ms=9000, bitstream="def"))
    cluster.restart_scheduler(nodeCacheCapable=False)
    try:
        log = tmp_path / "extender.log"
        kubeconfig = cluster.kubeconfig("nobody-token")
        with run_extender(kubeconfig, cluster.extender_port, log, "--no-kubernetes") as extender:
            labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": "def"}
            cluster.submit_pod("whole", labels)
            assert cluster.wait_placed("whole") == "warm"
            assert extender.scores("default/whole")["cold"] < BEST
    finally:
        cluster.restart_scheduler()


def test_kube_scheduler_shows_its_certificate(cluster: ControlPlane, tmp_path: Path, openssl: str) -> None:
    """Mutual TLS as deploy/scheduler/config.yaml has it; without a certificate nobody gets in."""
    made: dict[str, tuple[Path, Path]] = {}
    for name in ("authority", "extender", "scheduler"):
        key, certificate = tmp_path / f"{name}.key", tmp_path / f"{name}.crt"
        signed: list[str | Path] = (
            [] if name == "authority" else ["-CA", made["authority"][1], "-CAkey", made["authority"][0]]
        )
        uses = "serverAuth,clientAuth"
        more = [] if name == "authority" else ["-addext", f"extendedKeyUsage={uses}"]
        command: list[str | Path] = [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ]
        names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
        files: list[str | Path] = ["-keyout", key, "-out", certificate]
        subprocess.run([*command, *names, *signed, *more, *files], check=True, capture_output=True)
        made[name] = (key, certificate)
    for name in ("cold", "warm"):
        cluster.create_node(name)
    write_state(cluster, "cold", FpgaEvent(now_ms(), reconfiguration_ms=9000, bitstream="abc"))
    write_state(cluster, "warm", FpgaEvent(now_ms(), reconfiguration_ms=9000, bitstream="def"))
    tls = {
        "caFile": str(made["authority"][1]),
        "certFile": str(made["scheduler"][1]),
        "keyFile": str(made["scheduler"][0]),
    }
    url = f"https://127.0.0.1:{cluster.extender_port}"
    start = ["extender", "--kubeconfig", str(cluster.kubeconfig("extender-token"))]
    start += ["--port", str(cluster.extender_port), "--tls-client-ca", str(made["authority"][1])]
    start += ["--tls-cert", str(made["extender"][1]), "--tls-key", str(made["extender"][0])]
    context = ssl.create_default_context(cafile=str(made["authority"][1]))
    context.load_cert_chain(made["scheduler"][1], made["scheduler"][0])
    cluster.restart_scheduler(urlPrefix=url, enableHTTPS=True, tlsConfig=tls)
    try:
        with run_program(start, tmp_path / "extender.log"), httpx.Client(verify=context) as client:

            def is_ready() -> bool:
                try:
                    return client.get(f"{url}/readyz").status_code == 200
                except httpx.HTTPError:
                    return False

            wait_for("the extender is ready", is_ready, 60)
            labels = {**ENABLED, "fpga-scheduling.io/bitstream-identifier": "def"}
            cluster.submit_pod("secret", labels)
            assert cluster.wait_placed("secret") == "warm"
            assert client.get(f"{url}/explain?pod=secret").json()["nodes"][0]["node"] == "warm"
            with pytest.raises(httpx.HTTPError):
                httpx.get(
                    f"{url}/readyz", verify=ssl.create_default_context(cafile=str(made["authority"][1]))
                )
    finally:
        cluster.restart_scheduler()


def test_the_policy_lets_an_agent_touch_its_own_node_and_our_keys_only(cluster: ControlPlane) -> None:
    """With real tokens of the shipped account, bound to pods on two nodes."""
    for name in ("namespace", "agent", "extender", "quiet", "policy"):
        cluster.kubectl("apply", "-f", RBAC / f"{name}.yaml")
    for name in ("mine", "yours"):
        cluster.create_node(name)
    try:
        own = cluster.issue_token("nodescope-agent", "mine")
        with cluster.client(own) as client:

            def patch(node: str, change: dict[str, Any]) -> str:
                try:
                    client.patch(f"/api/v1/nodes/{node}", change)
                except KubernetesRefused as error:
                    return str(error)
                return ""

            def annotate(node: str, key: str) -> str:
                return patch(node, {"metadata": {"annotations": {key: "x"}}})

            wait_for("the policy is in force", lambda: "own node" in annotate("yours", KEY), 30)
            assert annotate("mine", KEY) == ""
            assert annotate("mine", WINDOW_KEY) == ""
            assert annotate("mine", WORKLOADS_KEY) == ""
            assert "this one is on mine" in annotate("yours", KEY)
            assert "nodescope.io/workloads only" in annotate("mine", "human")
            assert "not spec, labels" in patch("mine", {"metadata": {"labels": {"a": "b"}}})
            assert "not spec, labels" in patch("mine", {"spec": {"unschedulable": True}})
            assert "not spec, labels" in patch("mine", {"metadata": {"finalizers": ["a.b/c"]}})
            assert "8192 characters" in patch("mine", {"metadata": {"annotations": {KEY: "x" * 8193}}})
            assert patch("mine", {"metadata": {"annotations": {KEY: "x" * 8192}}}) == ""
            cluster.annotate("mine", human="here")
            assert "managedFields" in patch("mine", {"metadata": {"managedFields": [{}]}})
            assert "only" in patch("mine", {"metadata": {"annotations": {"human": None}}})
            # What RBAC already refuses, it refuses in its own words.
            assert "cannot patch" in patch("mine/status", {"status": {}})
            # Its Lease: of its own node, under its own name, with two annotations and nothing else.
            leases = path_leases("nodescope")

            def lease(name: str, **about: Any) -> str:
                try:
                    client.create(leases, {"metadata": {"name": name, **about}})
                except KubernetesRefused as error:
                    return str(error)
                return ""

            wait_for("its policy, too", lambda: "its own node only" in lease("node.yours"), 30)
            assert "this one is on mine" in lease("nodescope-scheduler")
            assert "8192 characters" in lease("node.mine", annotations={WINDOW_KEY: "x" * 8193})
            assert "nodescope.io/window and" in lease("node.mine", annotations={"human": "x"})
            assert "no finalizers" in lease("node.mine", finalizers=["a.b/c"])
            assert "no finalizers" in lease("node.mine", labels={"a": "b"})
            owner = {"apiVersion": "v1", "kind": "Node", "name": "yours", "uid": "0"}
            assert "its own Node" in lease("node.mine", ownerReferences=[owner])
        bare = cluster.issue_token("nodescope-agent", None)
        with cluster.client(bare) as client, pytest.raises(KubernetesRefused, match="no node that its token"):
            client.patch("/api/v1/nodes/mine", {"metadata": {"annotations": {KEY: "x"}}})
        # A whole agent under the policy writes its own node, and makes its Lease, which goes with the Node.
        flags = ("--annotate", "fpga,window,workloads")
        with run_agent(NODES / "bare" / "t0", cluster.kubeconfig(own), "mine", *flags) as agent:
            agent.post(duration_ms="500", bitstream_identifier="abc")
            wait_for("its own", lambda: "version" in cluster.read_annotations("mine")[KEY], 20)
            with cluster.client() as client:
                made = wait_for("its lease", lambda: read_lease(client, "node.mine"), 20)
            wait_for("no word left", lambda: WINDOW_KEY not in cluster.read_annotations("mine"), 20)
            assert agent.get("/status").json()["annotations"]["reason"] == ""
        assert '"version":1' in made["metadata"]["annotations"][WINDOW_KEY]
        assert made["spec"]["holderIdentity"] == "mine"
        assert [one["name"] for one in made["metadata"]["ownerReferences"]] == ["mine"]
        with run_agent(NODES / "bare" / "t0", cluster.kubeconfig(own), "yours") as agent:
            agent.post(duration_ms="500", bitstream_identifier="abc")
            failed = 'nodescope_annotation_syncs_total{outcome="failed"}'
            wait_for("not another's", lambda: agent.metric(failed) >= 1, 20)
        # From before the policy was in force there may be our own try.
        assert cluster.read_annotations("yours").get(KEY) in (None, "x")
    finally:
        cluster.kubectl("delete", "-f", RBAC / "policy.yaml")


def read_lease(client: Client, name: str) -> dict[str, Any]:
    try:
        return client.read(f"{path_leases('nodescope')}/{name}")
    except KubernetesRefused:
        return {}


def test_what_agents_write_to_leases_places_pods(cluster: ControlPlane, extender: Extender) -> None:
    """A balance pod beside one Lease of a busy node, one of an idle one, and an older agent's annotation."""
    for name in ("leased-busy", "leased-idle", "older-busy"):
        cluster.create_node(name)
    with cluster.client() as client:
        for name, util in (("leased-busy", 0.95), ("leased-idle", 0.05)):
            load = NodeLoad(time.time(), 20, 9.0, {"mean_cpu_util": util, "mean_cpu_pressure": 0.0})
            about = {"name": f"node.{name}", "labels": {LEASE_LABEL: "true"}}
            notes = {WINDOW_KEY: render_load(load)}
            client.create(path_leases("nodescope"), {"metadata": {**about, "annotations": notes}})
    write_load(cluster, "older-busy", 9.0, cpu_util=0.95, cpu_pressure=0.0)
    try:
        wait_known(extender, "window", 3)
        cluster.submit_pod("calm", {"nodescope.io/balance": "true"})
        assert cluster.wait_placed("calm") == "leased-idle"
    finally:
        cluster.kubectl("-n", "nodescope", "delete", "leases", "--selector", f"{LEASE_LABEL}=true")


def test_the_accounts_have_no_right_more_than_they_use(cluster: ControlPlane) -> None:
    for name in ("namespace", "agent", "extender", "quiet"):
        cluster.kubectl("apply", "-f", RBAC / f"{name}.yaml")
    who = "--as=system:serviceaccount:nodescope:"
    events = {"create events", "patch events"}
    allowed = {
        "nodescope-agent": {"get pods", "list pods", "watch pods", "get nodes", "patch nodes", *events},
        "nodescope-extender": {
            f"{verb} {what}"
            for verb in ("list", "watch")
            for what in ("pods", "nodes", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io")
        },
        "nodescope-quiet": set(),
    }
    leases = {
        "nodescope-agent": [["get", "create", "patch"]],
        "nodescope-extender": [["list", "watch"]],
        "nodescope-quiet": [],
    }
    for account, rights in allowed.items():
        text = cluster.kubectl("auth", "can-i", "--list", f"{who}{account}")
        rows = [line.split() for line in text.splitlines()[1:] if "[/" not in line and "self" not in line]
        found = {f"{verb} {row[0]}" for row in rows for verb in " ".join(row[3:]).strip("[]").split()}
        assert found == rights, account
        # In its own namespace also what is written there.
        own = cluster.kubectl("auth", "can-i", "--list", f"{who}{account}", "-n", "nodescope")
        verbs = [line.split("[")[-1].strip("]").split() for line in own.splitlines() if "leases" in line]
        assert verbs == leases[account], account


def test_hostile_bodies_and_tokens_are_refused_on_the_wire(cluster: ControlPlane, tmp_path: Path) -> None:
    """10 MiB, noise, half a body, a wrong token, at the extender and at the agent; both live on."""
    secret = tmp_path / "token"
    secret.write_text("right")
    flags = ("--token-file", str(secret))
    kubeconfig = cluster.kubeconfig("extender-token")
    right, wrong = {"Authorization": "Bearer right"}, {"Authorization": "Bearer wrong"}
    random = Random(9)
    with (
        run_extender(kubeconfig, cluster.extender_port, tmp_path / "log", *flags) as extender,
        run_agent(NODES / "bare" / "t0", cluster.kubeconfig(AGENT), "x", *flags) as agent,
        httpx.Client(timeout=30) as client,
    ):
        for url in (f"{extender.url}/filter", f"{extender.url}/prioritize", f"{agent.url}/"):
            assert client.post(url, content=b"x", headers=wrong).status_code == 401
            assert client.post(url, content=b"x").status_code == 401
            assert post_large(url, right) == 413
            for _ in range(60):
                noise = random.randbytes(random.randrange(300))
                kind = random.choice(["application/x-www-form-urlencoded", "application/json"])
                found = client.post(url, content=noise, headers={**right, "Content-Type": kind})
                assert found.status_code == 400
                assert found.json()["detail"]
            host, port = url.split("/")[2].split(":")
            with socket.create_connection((host, int(port))) as half:
                half.sendall(b"POST /filter HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right\r\n")
                half.sendall(b"Content-Length: 100\r\n\r\n{")
        assert client.get(f"{extender.url}/explain", headers=wrong).status_code == 401
        assert extender.is_ready()
        assert agent.is_ready()


def post_large(url: str, headers: dict[str, str]) -> int:
    """10 MiB; a server that answers early may close before all is sent."""
    host, port = url.split("/")[2].split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.putrequest("POST", "/" + url.split("/", 3)[3])
    for key, value in {**headers, "Content-Length": str(10 * 2**20)}.items():
        connection.putheader(key, value)
    connection.endheaders()
    try:
        for _ in range(10):
            connection.send(b"x" * 2**20)
    except (BrokenPipeError, ConnectionResetError):
        pass
    try:
        return connection.getresponse().status
    finally:
        connection.close()
