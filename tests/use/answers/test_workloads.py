"""A name means a workload with all its pods; one pod, one container and one life are the special cases."""

from dataclasses import replace

import pytest
from tests.use.answers.lives import make_named

from nodescope.base.workload import UNSURE
from nodescope.use.answers.containers import ContainerAmbiguous, ContainerUnknown, Life
from nodescope.use.answers.workloads import find_target, group_workloads, name_apart


def give(life: Life, **details: str) -> Life:
    return replace(life, subject=replace(life.subject, details=details))


OLD = make_named("a1" * 32, "n1", "shop", "catalog-66b6c48dd5-x2k4p", "app", 0, 10)
AGAIN = make_named("a2" * 32, "n1", "shop", "catalog-66b6c48dd5-x2k4p", "app", 11, 20)
NEW = make_named("a3" * 32, "n2", "shop", "catalog-7fb96c846b-zx2q9", "app", 21, 99)
PROXY = make_named("a4" * 32, "n2", "shop", "catalog-7fb96c846b-zx2q9", "proxy", 21, 99)
DATABASE = make_named("db" * 32, "n1", "shop", "db-0", "postgres", 0, 99)
OTHER = make_named("0b" * 32, "n1", "stage", "db-0", "postgres", 0, 99)
JOBS = [
    make_named(f"{number:064x}", "n1", "batch", f"etl-{stem}-x2k4{letter}", "etl", number, number + 1)
    for number, (stem, letter) in enumerate([("bcd24", "b"), ("cdf25", "c"), ("dfg26", "d")])
]
EVERYBODY = [OLD, AGAIN, NEW, PROXY, DATABASE, OTHER, *JOBS]


def test_a_deploy_is_one_workload_with_its_pods_and_restarts() -> None:
    [catalog] = [one for one in group_workloads(EVERYBODY) if one.name == "catalog"]
    assert catalog.workload.kind == "Deployment"
    assert catalog.pods == (OLD.pod, NEW.pod)
    assert [life.id for life in catalog.lives] == [OLD.id, AGAIN.id, NEW.id, PROXY.id]
    assert (catalog.restarts, catalog.nodes) == (1, ("n1", "n2"))


@pytest.mark.parametrize("text", ["catalog", "shop/catalog", "deployment/catalog", "catal"])
def test_its_name_means_all_its_pods(text: str) -> None:
    assert len(find_target(EVERYBODY, text).pods) == 2


@pytest.mark.parametrize(
    ("text", "lives"),
    [
        (NEW.pod, [NEW, PROXY]),
        (f"shop/{NEW.pod}", [NEW, PROXY]),
        (f"{NEW.pod}/proxy", [PROXY]),
        (f"shop/{NEW.pod}/proxy", [PROXY]),
        (AGAIN.id, [AGAIN]),
        ("a2a2", [AGAIN]),
        ("catalog/app", [OLD, AGAIN, NEW]),
        ("shop/catalog/proxy", [PROXY]),
        ("proxy", [PROXY]),
        ("catalog-66b", [OLD, AGAIN]),
        ("stage/db", [OTHER]),
    ],
)
def test_a_pod_a_container_and_a_life_are_found_by_their_own_names(text: str, lives: list[Life]) -> None:
    found = find_target(EVERYBODY, text)
    assert sorted(life.id for life in found.lives) == sorted(life.id for life in lives)


def test_an_answer_about_one_pod_still_names_its_workload() -> None:
    found = find_target(EVERYBODY, f"{NEW.pod}/proxy")
    assert (found.name, found.workload.name) == (f"{NEW.pod}/proxy", "catalog")
    assert find_target(EVERYBODY, "catalog/app").full_name == "shop/catalog/app"


def test_two_workloads_of_one_name_are_ambiguous_and_two_pods_are_not() -> None:
    with pytest.raises(ContainerAmbiguous) as caught:
        find_target(EVERYBODY, "db")
    assert {life.namespace for life in caught.value.candidates} == {"shop", "stage"}
    with pytest.raises(ContainerUnknown):
        find_target(EVERYBODY, "katalog")


def test_jobs_that_one_program_names_are_one_workload() -> None:
    """Three names that differ only in random characters; two may be a coincidence."""
    assert len(find_target(EVERYBODY, "etl").pods) == 3
    apart = [one.name for one in group_workloads(JOBS[:2])]
    assert apart == ["etl-bcd24", "etl-cdf25"]


def test_jobs_with_other_containers_are_not_one_workload() -> None:
    other = [make_named(f"{9:064x}", "n1", "batch", "etl-fgh27-x2k4f", "loader", 0, 1)]
    assert [one.name for one in group_workloads([*JOBS, *other])] == ["etl", "etl-fgh27"]


def test_what_the_api_said_of_one_pod_holds_for_its_workload() -> None:
    """An archive may begin before the agent could ask: older lives have names only."""
    early = make_named("c1" * 32, "n1", "kube-system", "fluentd-x2k4p", "fluentd", 0, 10)
    told = give(
        make_named("c2" * 32, "n1", "kube-system", "fluentd-bcdf2", "fluentd", 11, 20),
        owner="DaemonSet/fluentd",
    )
    assert group_workloads([early])[0].workload.kind == UNSURE
    [both] = group_workloads([early, told])
    assert (both.workload.kind, both.workload.known_by) == ("DaemonSet", "api")


def test_in_a_ranking_a_single_pod_has_its_workloads_name() -> None:
    """Unless another namespace has a workload of that name: then the pod tells which one it is."""
    alone = [one.full_name for one in name_apart(group_workloads([NEW, DATABASE]))]
    assert alone == ["shop/catalog", "shop/db"]
    same = name_apart(group_workloads([DATABASE, OTHER]))
    assert [one.full_name for one in same] == ["shop/db-0/postgres", "stage/db-0/postgres"]
    for one in same:
        assert find_target([DATABASE, OTHER], one.full_name).lives == one.lives
