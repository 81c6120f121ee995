"""Answers about workloads: use over a span, deploys, restarts; on archives whose every level is planted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.use.mcp.asking import Asker, asking
from tests.use.played_node import CORES, END_MS, Played, write_played

from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.use.mcp.tools.top_containers import render_lead

OLD, NEW = "catalog-66b6c48dd5", "catalog-7fb96c846b"
SPLIT = 1800
SPLIT_MS = END_MS - (3600 - SPLIT) * 1000
JOBS = [
    Played(f"etl-{29_384_000 + n}-x2k{n % 7 + 2}p".replace("3p", "4p"), "etl", 60 * n, 60 * n + 10, 2.0)
    for n in range(50)
]
CATALOG = [
    *(Played(f"{OLD}-{name}", "app", 0, SPLIT, 0.4, image="catalog:1.4") for name in ("bcdf2", "x2k4p")),
    *(Played(f"{NEW}-{name}", "app", SPLIT, 3600, 0.8, image="catalog:1.5") for name in ("zx2q9", "wv5bb")),
]
RESTARTED = [
    Played("db-0", "postgres", 0, SPLIT, 0.2, image="postgres:16"),
    Played("db-0", "postgres", SPLIT + 5, 3600, 0.4, image="postgres:16", life=1),
]
STEADY = [Played("web-5d78c9869d-4wvqz", "web", 0, 3600, 0.3)]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_played(tmp_path_factory.mktemp("played"), [*JOBS, *CATALOG, *RESTARTED, *STEADY])


@pytest.fixture(scope="module")
def asker(played: Path) -> Iterator[Asker]:
    with asking(played) as found:
        yield found


def named(answer: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in answer["findings"] if one["evidence"]["workload"] == name)


def test_short_jobs_are_one_line_ranked_by_what_they_used_over_the_hour(asker: Asker) -> None:
    """Fifty jobs of ten seconds with two cores used 0.28 cores: less than what runs all the time."""
    answer = asker.ask("top_containers", by="cpu", limit=12)
    order = [one["evidence"]["workload"] for one in answer["findings"]]
    assert order == ["catalog", "web", "db", "etl"]
    etl = named(answer, "etl")["evidence"]
    assert etl["over_span"] == pytest.approx(50 * 10 * 2 / 3600, rel=0.15)
    assert etl["mean"] == pytest.approx(2.0, rel=0.05)
    assert (etl["pods"], etl["workload_kind"]) == (50, "CronJob")
    assert "while it was there" in named(answer, "etl")["sentence"]
    assert etl["share_of_node"] == pytest.approx(etl["over_span"] / CORES)


def test_the_order_can_be_turned_and_totals_are_of_all(asker: Asker) -> None:
    down = asker.ask("top_containers", by="cpu", limit=1)
    up = asker.ask("top_containers", by="cpu", limit=1, order="ascending")
    assert [one["findings"][0]["evidence"]["workload"] for one in (down, up)] == ["catalog", "etl"]
    assert up["figures"]["total_over_span"] == down["figures"]["total_over_span"]
    everybody = asker.ask("top_containers", by="cpu", limit=12)
    total = sum(one["evidence"]["over_span"] for one in everybody["findings"])
    assert total == pytest.approx(down["figures"]["total_over_span"])


def test_containers_can_still_be_ranked_one_by_one(asker: Asker) -> None:
    answer = asker.ask("top_containers", by="cpu", group="container", limit=12)
    assert answer["findings"][0]["container"] == f"{NEW}-wv5bb/app"
    assert answer["figures"]["ranked"] == len(JOBS) + len(CATALOG) + 2


def test_a_deploy_is_told_with_its_image_per_pod_and_when(asker: Asker) -> None:
    """Not "was not there", not "ambiguous"."""
    answer = asker.ask("summarize_container", container="catalog")
    (change,) = [one for one in answer["findings"] if one["kind"] == "deploy"]
    assert change["sentence"].startswith('"catalog": twice the CPU per pod since 2026-03-01 11:30:00 UTC')
    assert "a new image, catalog:1.5 instead of catalog:1.4" in change["sentence"]
    assert (change["at"], change["metric"]) == (SPLIT_MS / 1000, "cpu")
    facts = change["evidence"]
    assert (facts["before"], facts["after"]) == (pytest.approx(0.4, rel=0.02), pytest.approx(0.8, rel=0.02))
    assert (facts["before_sum"], facts["after_sum"]) == (
        pytest.approx(0.8, rel=0.02),
        pytest.approx(1.6, rel=0.02),
    )


def test_a_deploy_is_a_change_of_the_metric_that_was_asked_for(asker: Asker) -> None:
    answer = asker.ask("analyze_container", container="catalog", study="changepoint", metric="cpu")
    assert answer["status"] == "found"
    assert "twice the CPU per pod" in answer["headline"]
    quiet = asker.ask("analyze_container", container="catalog", study="changepoint", metric="memory")
    assert "twice" not in quiet["headline"]


def test_windows_on_both_sides_of_a_deploy_are_compared(asker: Asker) -> None:
    times = {"a_from": "-55m", "a_to": "-35m", "b_from": "-25m", "b_to": "now"}
    one = asker.ask("compare_windows", container="catalog", **times)
    whole = asker.ask("compare_windows", **times)
    for answer in (one, whole):
        (cpu,) = [
            row for row in answer["findings"] if row.get("container") == "catalog" and row["metric"] == "cpu"
        ]
        facts = cpu["evidence"]
        assert (facts["a_avg"], facts["b_avg"]) == (
            pytest.approx(0.4, rel=0.02),
            pytest.approx(0.8, rel=0.02),
        )
        assert (facts["before"], facts["after"]) == (facts["a_avg"], facts["b_avg"])
        assert (facts["a_pods"], facts["b_pods"]) == (2, 2)
        assert "catalog:1.5 instead of catalog:1.4" in cpu["sentence"]
    assert not any("only in window" in line for line in whole["not_looked_at"] if "catalog" in line)


def test_without_windows_the_deploy_goes_before_what_changed_more(tmp_path: Path) -> None:
    """Somebody else's CPU rose tenfold at the same time."""
    other = [Played("job-x", "job", 0, SPLIT, 0.1), Played("job-x", "job", SPLIT, 3600, 1.0, life=1)]
    with asking(write_played(tmp_path, [*CATALOG, *other, *STEADY])) as asker:
        whole = asker.ask("compare_windows")
        given = asker.ask("compare_windows", b_from=str(SPLIT_MS / 1000))
    assert whole["findings"][0]["container"] == "catalog"
    assert given["findings"][0]["container"] != "catalog"


def test_a_level_that_doubled_with_a_restart_is_told(asker: Asker) -> None:
    """No study looks across a restart; the levels on both sides do."""
    answer = asker.ask("analyze_container", container="db", study="changepoint", metric="cpu")
    assert "changed with a restart" in answer["headline"]
    (restart,) = answer["findings"]
    assert restart["kind"] == "restart"
    facts = restart["evidence"]
    assert (facts["before"], facts["after"]) == (pytest.approx(0.2, rel=0.03), pytest.approx(0.4, rel=0.03))
    same = asker.ask("analyze_container", container="db", study="changepoint", metric="memory")
    assert "did not step on its own" in same["headline"]
    assert same["findings"][0]["evidence"]["before"] == same["findings"][0]["evidence"]["after"]


def test_a_pod_and_a_container_are_asked_for_by_their_own_names(asker: Asker) -> None:
    answer = asker.ask("summarize_container", container=f"{NEW}-zx2q9")
    assert answer["looked_at"].startswith(f"shop/{NEW}-zx2q9/app on n1, Deployment catalog by its pod name")
    assert not [one for one in answer["findings"] if one["kind"] == "deploy"]


def test_a_workload_on_two_nodes_is_one_question(tmp_path: Path) -> None:
    """A deploy that moved the pod to another node: both nodes are asked."""
    image = "catalog:1.4"
    write_played(tmp_path / "n1", [Played(f"{OLD}-bcdf2", "app", 0, SPLIT, 0.4, image=image)])
    write_played(tmp_path / "n2", [Played(f"{OLD}-x2k4p", "app", SPLIT, 3600, 0.8, image=image)], node="n2")
    with asking(tmp_path) as asker:
        answer = asker.ask("analyze_container", container="catalog", study="changepoint", metric="cpu")
        assert "with new pods, on another node (n2)" in answer["headline"]
        times = {"a_from": "-55m", "a_to": "-35m", "b_from": "-25m", "b_to": "now"}
        compared = asker.ask("compare_windows", container="catalog", **times)
        assert compared["findings"][0]["evidence"]["b_avg"] == pytest.approx(0.8, rel=0.02)


def test_page_cache_that_fills_the_limit_is_not_critical(tmp_path: Path) -> None:
    """60 of 500 MiB anonymous at 98 % of the limit: the kernel drops the rest before it kills."""
    cache = Played("cache-0", "cache", 0, 600, 0.1, anon_mib=60, file_mib=430, limit_mib=500)
    full = Played("full-0", "full", 0, 600, 0.1, anon_mib=470, file_mib=20, limit_mib=500)
    write_played(tmp_path, [cache, full], 600)
    with asking(tmp_path) as asker:
        quiet = asker.ask("summarize_container", container="cache")
        assert quiet["headline"].startswith("Nothing concerning")
        (note,) = [one for one in quiet["findings"] if one["kind"] == "page_cache"]
        assert (
            "60 MiB of 500 MiB cannot be reclaimed (12 %), which is not near an OOM kill" in note["sentence"]
        )
        assert note["evidence"]["kept_share"] == pytest.approx(0.12)
        worried = asker.ask("summarize_container", container="full")
        assert worried["findings"][0]["kind"] == "critical"
        assert worried["findings"][0]["evidence"]["kept_share"] == pytest.approx(0.94)
        ranked = asker.ask("top_containers", by="memory")["findings"]
        shares = {one["evidence"]["workload"]: one["evidence"]["kept_share"] for one in ranked}
        assert shares == {"cache": pytest.approx(0.12), "full": pytest.approx(0.94)}
        assert all("98 % of its memory limit" in one["sentence"] for one in ranked)


def test_of_several_pods_the_one_that_changed_is_named(asker: Asker) -> None:
    """The figures are of the pod; the question was about the StatefulSet."""
    answer = asker.ask("analyze_container", container="catalog", study="summary", metric="cpu")
    told = {one["container"] for one in answer["findings"]}
    assert told == {f"{one.pod}/app" for one in CATALOG}
    assert all(one["sentence"].startswith(f'"{one["container"]}"') for one in answer["findings"])


def test_the_next_call_keeps_the_span(asker: Asker) -> None:
    answer = asker.ask("top_containers", by="cpu", from_="-40m", to="-10m")
    given = answer["next"]["arguments"]
    assert (given["from"], given["to"]) == ("2026-03-01T11:19:59Z", "2026-03-01T11:49:59Z")


def test_without_windows_the_newest_deploy_parts_them(asker: Asker) -> None:
    """Of the workload that is asked about, and of all of a node."""
    for given in ({"container": "catalog"}, {}):
        answer = asker.ask("compare_windows", **given)
        assert "with a new image, catalog:1.5 instead of catalog:1.4" in answer["headline"]
        first = answer["findings"][0]
        assert (first["from"], first["to"]) == (SPLIT_MS / 1000 - 1800, pytest.approx(END_MS / 1000, abs=2))
        assert first["evidence"]["a_avg"] == pytest.approx(0.4, rel=0.05)
        assert first["evidence"]["b_avg"] == pytest.approx(0.8, rel=0.05)


def test_without_a_deploy_the_halves_are_compared_and_some_moments_alone_are_not_enough(asker: Asker) -> None:
    same = asker.ask("compare_windows", container="web")
    assert same["status"] == "none"
    error = asker.error("compare_windows", container="web", a_from="-1h")
    assert "a_to, b_from, b_to is missing; give all four" in error
    at = f"{SPLIT_MS / 1000}"
    for alone in ("b_from", "a_to"):
        facts = asker.ask("compare_windows", container="catalog", **{alone: at})["findings"][0]["evidence"]
        assert (facts["a_avg"], facts["b_avg"]) == (
            pytest.approx(0.4, rel=0.02),
            pytest.approx(0.8, rel=0.02),
        )


def test_who_was_restarted_is_said_first_and_alone(asker: Asker) -> None:
    answer = asker.ask("list_containers", sort="restarts")
    assert answer["headline"].endswith(
        'containers was restarted, most often "shop/db-0/postgres" on n1: 1 time.'
    )
    assert [one["container"] for one in answer["findings"]] == ["db-0/postgres"]


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("cpu", "used the most CPU"),
        ("threads", "had the most threads"),
        ("pressure_cpu", "waited the most for CPU"),
    ],
)
def test_a_ranking_is_said_in_words(by: str, words: str) -> None:
    assert render_lead(by, "most") == words


def test_gpu_time_and_memory_are_part_of_a_deploy(tmp_path: Path) -> None:
    """Twice as much per pod, by the processes on the GPU; a workload without one says nothing of GPUs."""
    gpus = [0.2, 0.2, 0.4, 0.4]
    catalog = [replace(one, gpus=share) for one, share in zip(CATALOG, gpus, strict=True)]
    with asking(write_played(tmp_path, [*catalog, *STEADY])) as asker:
        told = {
            one["metric"]: one for one in asker.ask("summarize_container", container="catalog")["findings"]
        }
        assert told["gpu"]["sentence"].startswith('"catalog": twice the GPU per pod since')
        assert "0.2 GPUs before, 0.4 GPUs after" in told["gpu"]["sentence"]
        assert "twice the GPU memory per pod" in told["gpu_memory"]["sentence"]
        compared = asker.ask("compare_windows", container="catalog")
        facts = next(one["evidence"] for one in compared["findings"] if one["metric"] == "gpu")
        assert (facts["a_avg"], facts["b_avg"]) == (
            pytest.approx(0.2, rel=0.02),
            pytest.approx(0.4, rel=0.02),
        )
        quiet = asker.ask("compare_windows", container="web")
        assert "gpu" not in {one["metric"] for one in quiet["findings"]}


@pytest.mark.parametrize(
    ("told", "sentence", "code"),
    [
        ("1 Error {}", "(exit code 1, Error)", 1),
        ("137 OOMKilled {}", "was OOM-killed", 137),
        ("1 Error 000000000000", "(exit code not known)", None),
        ("", "(exit code not known)", None),
    ],
)
def test_an_exit_code_is_told_where_the_api_said_it_of_that_run(
    tmp_path: Path, told: str, sentence: str, code: int | None
) -> None:
    first, second = RESTARTED
    second = replace(second, previous_exit=told.format(first.entity().ids[0][:12]))
    with asking(write_played(tmp_path, [first, second, *STEADY])) as asker:
        answer = asker.ask("summarize_container", container="db")
    (restart,) = [one for one in answer["findings"] if one["kind"] in ("restart", "oom_kill")]
    assert sentence in restart["sentence"]
    assert restart["evidence"].get("exit_code") == code


def test_jobs_count_in_a_nodes_summary_by_how_long_they_ran(played: Path) -> None:
    """Fifty jobs of ten seconds with two cores are 0.28 cores of the node, whose own CPU time was not measured."""
    with asking(played) as asker:
        figures = asker.ask("summarize_node")["figures"]
        ranked = asker.ask("top_containers", by="cpu")["figures"]
    assert figures["cpu_mean"] == pytest.approx(ranked["total_over_span"], rel=0.05)


def test_kills_are_counted_and_dated(tmp_path: Path) -> None:
    """Not averaged to `0 count over the span`; where there is none, the answer is no."""
    write_node(DemoRequest(tmp_path, 1 / 3, 8, 7, END_MS, "demo-1"), "0", lambda _: None)
    for sidecar in (True, False):
        with asking(tmp_path) as asker:
            killed = asker.ask("top_containers", by="oom_kills")
            none = asker.ask("top_containers", by="oom_kills", from_="-1m")
        assert killed["status"] == "found", sidecar
        (first, *_) = killed["findings"]
        assert first["kind"] == "oom_kill"
        assert (first["evidence"]["kills"], len(killed["findings"])) == (1, 1)
        assert "was OOM-killed once, at 2026-" in killed["headline"]
        assert (none["status"], none["headline"][:26]) == ("none", "No: nobody was OOM-killed ")
        for path in tmp_path.rglob("*.containers"):
            path.unlink()


def test_a_limit_full_of_page_cache_is_told_apart_in_the_ranking_by_limits(tmp_path: Path) -> None:
    cache = Played("logs-x2k4p", "logs", 0, 3600, 0.1, anon_mib=60, file_mib=430, limit_mib=500)
    tight = Played("db-0", "db", 0, 3600, 0.1, anon_mib=450, file_mib=20, limit_mib=500)
    with asking(write_played(tmp_path, [cache, tight])) as asker:
        answer = asker.ask("top_containers", by="memory_limit_share")
    assert "12 % without page cache that can be reclaimed" in answer["headline"]
    assert [round(one["evidence"]["kept_share"], 2) for one in answer["findings"]] == [0.12, 0.9]


def test_a_deploy_of_two_hours_ago_is_found_although_several_replicas_run_since(tmp_path: Path) -> None:
    """Without a span: the last hour has no change, so six hours are looked at."""
    long_ago = [
        *(Played(f"{OLD}-{name}", "app", 0, 5000, 0.4) for name in ("bcdf2", "x2k4p")),
        *(Played(f"{NEW}-{name}", "app", 5000, 14_400, 0.8) for name in ("zx2q9", "wv5bb")),
    ]
    with asking(write_played(tmp_path, [*long_ago, replace(STEADY[0], end=14_400)], 14_400)) as asker:
        answer = asker.ask("analyze_container", container="catalog", study="changepoint", metric="cpu")
    assert answer["status"] == "found"
    assert "twice the CPU per pod" in answer["headline"]


def test_a_word_of_one_pod_is_not_said_of_all(asker: Asker) -> None:
    """A restart has a last start; pods that run side by side have not."""
    for name, words in (("catalog", "in its newest pod"), ("db", "since its last start")):
        answer = asker.ask("summarize_container", container=name)
        told = [one["sentence"] for one in answer["findings"] if one["kind"] == "summary"]
        assert any(words in one for one in told), told
        other = "since its last start" if name == "catalog" else "in its newest pod"
        assert not any(other in one for one in told), told
