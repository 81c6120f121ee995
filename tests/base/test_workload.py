"""Which workload a container belongs to, by the names that Kubernetes, docker and systemd make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.base.workload import UNSURE, Workload, find_workload, read_pod_name
from nodescope.base.workload.pod_name import ALPHABET, HASH_ALPHABET

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
RANDOM = st.text(ALPHABET, min_size=5, max_size=5)


def encode_hash(number: int) -> str:
    """As SafeEncodeString of the server does."""
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))


@pytest.mark.parametrize(
    ("pod", "kind", "name"),
    [
        ("catalog-66b6c48dd5-x2k4p", "Deployment", "catalog"),
        ("basket-thrvgrkvm-x2k4p", "Deployment", "basket"),
        ("my-strngth-x2k4p", UNSURE, "my-strngth"),
        ("coredns-5d78c9869d-4wvqz", "Deployment", "coredns"),
        ("web-bcd24-7fb96c846b-zx2q9", "Deployment", "web-bcd24"),
        ("web-abc12-7fb96c846b-zx2q9", "Deployment", "web-abc12"),
        ("report-20240101-7fb96c846b-zx2q9", "Deployment", "report-20240101"),
        ("report-29384756-x2k4p", "CronJob", "report"),
        ("report-1600000020-x2k4p", "CronJob", "report"),
        ("import-20240101-x2k4p", UNSURE, "import-20240101"),
        ("db-0", "StatefulSet", "db"),
        ("kafka-broker-12", "StatefulSet", "kafka-broker"),
        ("fluentd-x2k4p", UNSURE, "fluentd"),
        ("resize-3-x2k4p", UNSURE, "resize-3"),
        ("debug-shell", "pod", "debug-shell"),
        ("web-abc12", "pod", "web-abc12"),
        ("db-007", "pod", "db-007"),
        ("", "pod", ""),
        ("-x2k4p", "pod", "-x2k4p"),
    ],
)
def test_a_pods_name_tells_what_made_it(pod: str, kind: str, name: str) -> None:
    found = read_pod_name(pod)
    assert (found.kind, found.name) == (kind, name)


def test_a_static_pod_ends_in_its_nodes_name() -> None:
    """Also where the node's name ends as a StatefulSet's pod does; on another node the name says nothing."""
    found = read_pod_name("kube-apiserver-ip-10-0-0-5", "ip-10-0-0-5")
    assert (found.kind, found.name) == ("static pod", "kube-apiserver")
    assert read_pod_name("etcd-worker-1", "worker-2").kind == "StatefulSet"
    assert read_pod_name("worker-1", "worker-1").kind == "StatefulSet"


@given(NAMES, st.integers(min_value=100_000, max_value=2**32 - 1), RANDOM)
def test_every_replica_of_a_deployment_has_its_name(name: str, number: int, random: str) -> None:
    """forall names, hashes of six digits or more, suffixes: the Deployment's own name comes back."""
    code = encode_hash(number)
    assert set(code) <= set(HASH_ALPHABET)
    assert read_pod_name(f"{name}-{code}-{random}").name == name


@given(st.from_regex(r"[a-z]{40,70}", fullmatch=True), st.integers(10**9, 2**32 - 1), RANDOM)
def test_a_name_that_was_cut_is_still_one_for_all_replicas(name: str, number: int, random: str) -> None:
    """The server keeps 58 characters of name and hash; what is left of the name is the workload's."""
    wanted = f"{name}-{encode_hash(number)}-"
    found = read_pod_name(wanted[:58] + random)
    assert name.startswith(found.name) or found.kind == UNSURE
    assert found.name == name[:58] or len(name) < 58


@given(st.text(max_size=80), st.text(max_size=20))
def test_any_text_has_an_owner(pod: str, node: str) -> None:
    """Names are tenants' text: no name raises, and none is lost."""
    found = read_pod_name(pod, node)
    assert pod.startswith(found.name)
    assert found.name or not pod


def test_the_api_goes_before_the_name() -> None:
    told = find_workload(namespace="shop", pod="agent-6b5c88dd-x2k4p", owner="DaemonSet/agent-6b5c88dd")
    assert told == Workload("shop", "agent-6b5c88dd", "DaemonSet", "api")
    guessed = find_workload(namespace="shop", pod="agent-6b5c88dd-x2k4p")
    assert guessed == Workload("shop", "agent", "Deployment", "pod name")


@pytest.mark.parametrize(
    ("owner", "kind", "name"),
    [
        ("Job/report-29384756", "CronJob", "report"),
        ("Job/migrate", "Job", "migrate"),
        ("Job/import-20240101", "Job", "import-20240101"),
        ("StatefulSet/db", "StatefulSet", "db"),
        ("Rollout/shop", "Rollout", "shop"),
    ],
)
def test_an_owner_is_told_by_what_made_it(owner: str, kind: str, name: str) -> None:
    found = find_workload(pod="whatever-x2k4p", owner=owner)
    assert (found.kind, found.name, found.known_by) == (kind, name, "api")


def test_a_static_pods_owner_is_its_node() -> None:
    """As the API server has it: a mirror pod is controlled by the Node."""
    found = find_workload(namespace="kube-system", pod="etcd-cp-0", owner="Node/cp-0")
    assert found == Workload("kube-system", "etcd", "static pod", "api")


@pytest.mark.parametrize(
    ("names", "workload"),
    [
        ({"container": "shop-web-1"}, Workload("", "shop-web", "container", "container name")),
        ({"container": "shop_web_12"}, Workload("", "shop_web", "container", "container name")),
        (
            {"container": "web.2.x3ti0erg11rjpg64m75kej2mz"},
            Workload("", "web", "container", "container name"),
        ),
        ({"image": "registry.example:5000/shop/web:1.4"}, Workload("", "web", "container", "image")),
        ({"image": "web@sha256:00ff"}, Workload("", "web", "container", "image")),
        (
            {"service": "/system.slice/nginx.service"},
            Workload("", "nginx.service", "service", "service name"),
        ),
        (
            {"service": "/system.slice/getty@tty1.service"},
            Workload("", "getty@.service", "service", "service name"),
        ),
        ({"container_id": "3f" * 32}, Workload("", "3f3f3f3f3f3f", "container", "id")),
    ],
)
def test_without_kubernetes_names_and_images_tell(names: dict[str, str], workload: Workload) -> None:
    assert find_workload(**names) == workload
