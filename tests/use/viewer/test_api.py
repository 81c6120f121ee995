"""The viewer's answers over an archive: their shapes, their numbers, their refusals."""

import json
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from pydantic import BaseModel
from tests.use.viewer.archives import END_MS, HOURS, write_demo, write_foreign
from tests.use.viewer.asking import Asker

from nodescope.use.answers.wire import parse_about
from nodescope.use.viewer import shapes

ANSWERS: dict[str, type[BaseModel]] = {
    "/api/health": shapes.HealthJson,
    "/api/instance": shapes.InstanceJson,
    "/api/summary": shapes.SummaryJson,
    "/api/metrics": shapes.MetricsJson,
    "/api/filters": shapes.FiltersJson,
    "/api/containers": shapes.ContainersJson,
    "/api/containers?metric=none&sort=last_seen": shapes.ContainersJson,
    "/api/timeseries?metric=cpu": shapes.TimeseriesJson,
    "/api/timeseries?metric=memory&range=all&max_points=50": shapes.TimeseriesJson,
    "/api/timeseries?metric=memory&max_points=1&limits=off": shapes.TimeseriesJson,
    "/api/timeseries?metric=cpu.load_1m": shapes.TimeseriesJson,
    "/api/timeseries?metric=gpu_power&scope=gpu": shapes.TimeseriesJson,
    "/api/studies": shapes.StudiesJson,
    "/api/study/summary?metric=memory": shapes.StudyJson,
    "/api/study/changepoint?metric=memory&exact=on": shapes.StudyJson,
    "/api/events?range=all": shapes.EventsJson,
    "/api/workloads": shapes.WorkloadsJson,
}


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_has_the_shape_it_promises(viewer: Asker, path: str) -> None:
    """The OpenAPI document says what comes; an answer has no field beside it, and none missing."""
    content = viewer.json(path)
    shape = ANSWERS[path].model_validate(content, strict=False)
    said = shape.model_dump(by_alias=True)
    assert said.keys() == {key for key in content if key in said}


def test_a_study_is_rounded_unless_wanted_exact(viewer: Asker) -> None:
    rounded, exact = (
        [
            finding["confidence"]
            for result in viewer.json("/api/study/changepoint", metric="memory", range="all", **wanted)[
                "results"
            ]
            for finding in result["findings"]
        ]
        for wanted in ({}, {"exact": "on"})
    )
    assert rounded != exact
    assert rounded == [round(one, 4) for one in exact]


def test_an_archive_says_what_it_is(viewer: Asker) -> None:
    """Node, range and that nothing is live, from files alone."""
    found = viewer.json("/api/instance")
    assert found["nodes"] == ["demo-1"]
    assert found["to"] == pytest.approx(END_MS / 1000, abs=2)
    assert found["from"] == pytest.approx(END_MS / 1000 - HOURS * 3600, abs=2)
    assert found["live"] is False
    assert found["lag_seconds"] == pytest.approx(30, abs=2)


def test_each_node_says_its_own_range_and_containers(tmp_path: Path) -> None:
    """A list of nodes must not give every node the containers of all."""
    paths = [write_demo(tmp_path / name, name, count) for name, count in (("a", 8), ("b", 11))]
    with Asker(*paths) as viewer:
        found = viewer.json("/api/instance")
    sizes = {one["node"]: one for one in found["sizes"]}
    assert found["containers"] == sum(one["containers"] for one in sizes.values())
    assert sizes["a"]["containers"] < sizes["b"]["containers"]
    for name, one in sizes.items():
        about = parse_about(found, name)
        assert (about.containers, about.to_ms) == (one["containers"], round(one["to"] * 1000))


def test_totals_are_of_all_workloads_however_few_are_shown(viewer: Asker) -> None:
    whole, one = (viewer.json("/api/workloads", metric="cpu", range="all", limit=limit) for limit in (200, 1))
    assert whole["ranked"] == len(whole["workloads"]) == one["ranked"] > len(one["workloads"]) == 1
    used = sum(row["over_span"] for row in whole["workloads"])
    assert whole["total_over_span"] == one["total_over_span"] == pytest.approx(used)
    waits = viewer.json("/api/workloads", metric="pressure_cpu", range="all")
    assert waits["total_over_span"] is None, "shares of time do not add up"


def test_a_panel_shows_what_the_archive_holds(viewer: Asker, archive: Path) -> None:
    """Means, extremes and counts are those of DuckDB over the files themselves."""
    (one,) = viewer.json("/api/containers", sort="value", limit=1, metric="memory")["containers"]
    found = viewer.json("/api/timeseries", metric="memory", containers=one["id"], range="all", max_points=10)
    (series,) = found["series"]
    rows = (
        duckdb.connect()
        .cursor()
        .execute(
            "SELECT min(value), max(value), count(*), avg(value) FROM read_parquet(?) "
            "WHERE metric_name = 'cgroup.v2.memory.current' AND l_container_id = ?",
            [f"{archive}/dt=*/*/*.parquet", one["id"]],
        )
        .fetchall()
    )
    least, most, count, mean = rows[0]
    assert min(value for value in series["min"] if value is not None) == least
    assert max(value for value in series["max"] if value is not None) == most
    assert series["samples"] == count
    assert one["value"] == pytest.approx(mean, rel=1e-6)
    assert len(found["time"]) <= 10


def test_the_busiest_come_first_and_only_eight(viewer: Asker) -> None:
    """Without a choice a panel has the eight largest, in the order of the list; the killed life goes along."""
    listed = viewer.json("/api/containers", metric="cpu", range="all")["containers"]
    used = [one["over_span"] for one in listed if one["over_span"] is not None]
    assert used == sorted(used, reverse=True)
    found = viewer.json("/api/timeseries", metric="cpu", range="all")
    names = list(dict.fromkeys(one["name"] for one in listed if one["value"] is not None))[:8]
    drawn = [one["name"] for one in found["series"]]
    assert list(dict.fromkeys(drawn)) == names
    assert drawn.count(next(name for name in names if "cache" in name)) == 2, (
        "the life that ran out of memory"
    )


def test_ranges_may_be_said_in_every_way(viewer: Asker) -> None:
    """Relative, absolute, epoch and `range` mean the same range, and give the same bytes."""
    newest = viewer.json("/api/instance")["to"]
    told = [
        {"from": "-5m"},
        {"from": str(newest - 300), "to": str(newest)},
        {"from": "-300s", "to": "now"},
        {"range": "5m"},
        {"from": datetime.fromtimestamp(newest - 300, UTC).isoformat()},
    ]
    answers = [viewer.get("/api/timeseries", params={"metric": "cpu", **one}).text for one in told]
    assert len(set(answers)) == 1


def test_an_id_may_be_abbreviated(viewer: Asker) -> None:
    """Twelve characters, as docker has it; a beginning that two share is refused with both."""
    listed = viewer.json("/api/containers", range="all")["containers"]
    full = listed[0]["id"]
    found = viewer.json("/api/timeseries", metric="cpu", containers=full[:12])
    assert [one["id"] for one in found["series"]] == [full]
    beginnings = Counter(one["id"][0] for one in listed)
    letter = next(letter for letter, count in beginnings.items() if count > 1)
    refusal = viewer.get("/api/timeseries", params={"metric": "cpu", "containers": letter})
    assert refusal.status_code == 400
    assert "ambiguous" in refusal.json()["detail"]
    for one in [one["id"] for one in listed if one["id"].startswith(letter)][:5]:
        assert one[:12] in refusal.json()["detail"]


REFUSED = {
    "/api/timeseries?metric=memori": (404, "memory"),
    "/api/timeseries": (422, "metric"),
    "/api/timeseries?metric=cpu&containers=nobody": (404, "no container"),
    "/api/timeseries?metric=cpu&max_points=0": (422, "max_points"),
    "/api/timeseries?metric=cpu&max_points=10001": (422, "10000"),
    "/api/timeseries?metric=cpu&from=yesterday": (400, "-15m"),
    "/api/timeseries?metric=cpu&from=now&to=-1h": (400, "before"),
    "/api/timeseries?metric=cpu&range=1h&from=-1h": (400, "range stands alone"),
    "/api/timeseries?metric=cpu&range=soon": (400, "1h"),
    "/api/timeseries?metric=cpu&rate=perhaps": (422, "auto"),
    "/api/timeseries?metric=cpu&node=elsewhere": (404, "demo-1"),
    f"/api/timeseries?metric=cpu&containers={','.join(map(str, range(65)))}": (413, "64"),
    "/api/containers?sort=sise": (400, "value"),
    "/api/containers?labels=app": (400, "key:value"),
    "/api/containers?limit=0": (422, "limit"),
    "/api/study/tred?metric=cpu": (404, "trend"),
    "/api/export?format=csv": (400, "metric"),
    "/api/export?metric=cpu&format=pdf": (422, "csv"),
    "/api/live?metric=nothing": (404, "no metric"),
    "/api/live?metric=a,b,c,d,e,f,g,h,i,j,k,l,m": (413, "12"),
    "/api/live?metric=nobody/cpu": (400, "no scope"),
    "/api/timeserie": (404, "/api/timeseries"),
    f"/api/containers?search={'x' * 9000}": (414, "8192"),
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_is_refused_says_what_is_accepted(viewer: Asker, path: str) -> None:
    """JSON with error, detail and hint; never an empty 200, never a stack trace."""
    status, word = REFUSED[path]
    answer = viewer.get(path)
    content = answer.json()
    assert (answer.status_code, set(content)) == (status, {"error", "detail", "hint"}), answer.text
    assert word in content["detail"] + content["hint"]


def test_a_list_by_what_nobody_measured_is_still_a_list(viewer: Asker) -> None:
    """The demo has no disk reads: everybody is there, nobody has a value, and the panel says why not."""
    found = viewer.json("/api/containers", metric="disk_read", range="all")
    assert found["unit"] == "bytes/s"
    assert found["containers"]
    assert {one["value"] for one in found["containers"]} == {None}
    refusal = viewer.get("/api/timeseries?metric=disk_read")
    assert refusal.status_code == 404
    assert "was not collected here" in refusal.json()["detail"]


def test_a_list_without_a_metric_has_the_same_names_and_no_values(viewer: Asker) -> None:
    """Who there is, for those who rank by themselves: no sample is looked at."""
    listed, ranked = (
        viewer.json("/api/containers", range="all", sort="name", metric=metric) for metric in ("none", "cpu")
    )
    assert [one["id"] for one in listed["containers"]] == [one["id"] for one in ranked["containers"]]
    assert {one["value"] for one in listed["containers"]} == {None}
    assert [one["state"] for one in listed["containers"]] == [one["state"] for one in ranked["containers"]]


def test_limits_may_be_left_out(viewer: Asker) -> None:
    """They are queries of their own; the curves are the same without."""
    whole, bare = (viewer.json("/api/timeseries", metric="memory", limits=word) for word in ("on", "off"))
    assert any(one["limit"] for one in whole["series"])
    assert [{**one, "limit": None} for one in whole["series"]] == bare["series"]


def test_a_name_may_be_asked_of_a_node(viewer: Asker) -> None:
    """`memory` of the node is not that of its containers; a scope that is none is refused by name."""
    found = viewer.json("/api/timeseries", metric="memory", scope="node", range="all")
    (series,) = found["series"]
    assert (series["id"], found["unit"]) == ("node", "bytes")
    refusal = viewer.get("/api/timeseries?metric=memory&scope=nod")
    assert refusal.status_code == 400
    assert '"node"' in refusal.json()["detail"]


def test_only_get_is_answered(viewer: Asker) -> None:
    answer = viewer.request("POST", "/api/instance")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert answer.json()["error"]


# -- caching, headers, doors -------------------------------------------------------------


def test_an_answer_that_cannot_change_is_not_sent_twice(viewer: Asker) -> None:
    """Its tag comes back as 304; another question has another tag."""
    path = "/api/timeseries?metric=cpu&from=-5m&to=-1m"
    first = viewer.get(path)
    tag = first.headers["etag"]
    again = viewer.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    other = viewer.get(path.replace("-5m", "-6m"), headers={"If-None-Match": tag})
    assert other.status_code == 200
    assert other.headers["etag"] != tag


def test_a_new_file_makes_a_new_tag(tmp_path: Path, archive: Path) -> None:
    """The answer is named after the files it is made of."""
    copy = tmp_path / "copy"
    shutil.copytree(archive, copy)
    newest = max(copy.rglob("metrics-*.parquet"))
    aside = [(path, tmp_path / path.name) for path in (newest, newest.with_suffix(".containers"))]
    for path, away in aside:
        path.rename(away)
    with Asker(copy) as asker:
        question = "/api/timeseries?metric=cpu&range=all"
        before = asker.get(question)
        for there, away in reversed(aside):
            away.rename(there)
        asker.clock.turn(10)
        after = asker.get(question, headers={"If-None-Match": before.headers["etag"]})
        assert after.status_code == 200
        assert after.json()["to"] > before.json()["to"]


def test_every_answer_carries_the_policy(viewer: Asker) -> None:
    """The page, the data and a refusal alike: nothing from elsewhere, no guessing of types."""
    for path in ("/", "/api/instance", "/api/nothing"):
        headers = viewer.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_large_answers_are_compressed(viewer: Asker) -> None:
    answer = viewer.get("/api/timeseries?metric=cpu", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json()["metric"] == "cpu"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8050", 200),
        ("127.0.0.1", 200),
        ("[::1]:8050", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8050", 421),
        ("", 421),
    ],
)
def test_on_loopback_only_loopback_names_are_answered(viewer: Asker, host: str, status: int) -> None:
    """A site that points its own name at 127.0.0.1 (DNS rebinding) reads nothing."""
    assert viewer.get("/api/instance", headers={"Host": host}).status_code == status


def test_a_token_guards_the_data_but_not_the_probes(archive: Path) -> None:
    """By header, or by the cookie that /?token= gives a browser."""
    secret = "s3cret"  # noqa: S105
    with Asker(archive, admits=lambda header: header == f"Bearer {secret}") as asker:
        refusal = asker.get("/api/instance")
        assert (refusal.status_code, refusal.headers["www-authenticate"]) == (401, "Bearer")
        assert asker.get("/api/health").status_code == 200
        assert asker.get("/").status_code == 200
        assert asker.get("/openapi.json").status_code == 401
        assert asker.get("/api/instance", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
        assert asker.get("/?token=wrong").status_code == 401
        welcome = asker.get(f"/?token={secret}")
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
        assert "HttpOnly" in welcome.headers["set-cookie"]
        assert asker.get("/api/instance").status_code == 200


# -- the page ----------------------------------------------------------------------------


def test_an_installation_without_the_page_says_so(archive: Path, tmp_path: Path) -> None:
    with Asker(archive, static=tmp_path) as asker:
        answer = asker.get("/")
        assert answer.status_code == 200
        assert "Install nodescope again" in answer.text
        refusal = asker.get("/api/export?format=html")
        assert refusal.status_code == 503
        assert "install nodescope again" in refusal.json()["hint"]


def test_a_build_is_served_and_nothing_beside_it(archive: Path, tmp_path: Path) -> None:
    """Files with a hash in their name for ever, the page anew each time, no way out of the folder."""
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html><title>x</title>")
    (static / "assets" / "main-1a2b.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("secret")
    with Asker(archive, static=static) as asker:
        assert asker.get("/").headers["cache-control"] == "no-cache"
        script = asker.get("/assets/main-1a2b.js")
        assert "immutable" in script.headers["cache-control"]
        assert script.headers["content-type"].startswith("text/javascript")
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt", "//etc/passwd"):
            assert asker.get(path).status_code == 404, path


def test_the_offline_page_carries_what_the_page_would_ask_for(archive: Path, tmp_path: Path) -> None:
    """One element of JSON, in which nothing can end the element; the answers are those of the API."""
    page = '<html><script type="application/json" id="nodescope-data">null</script></html>'
    (tmp_path / "export.html").write_text(page)
    with Asker(archive, static=tmp_path) as asker:
        answer = asker.get("/api/export?format=html&metric=memory&metric=cpu&range=all")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].startswith("attachment")
        before, after = page.split("null")
        assert answer.text.startswith(before)
        assert answer.text.endswith(after)
        text = answer.text[len(before) : -len(after)]
        assert not set("<>&") & set(text)
        carried = json.loads(text)
        assert [one["metric"] for one in carried["timeseries"]] == ["memory", "cpu"]
        assert carried["events"] == asker.json("/api/events", range="all")
        assert any(result["findings"] for one in carried["findings"] for result in one["results"])


# -- several nodes, other people's files -----------------------------------------------------


def test_a_folder_of_nodes_is_served_as_nodes(tmp_path: Path) -> None:
    """Each with its own clock; node= narrows; what is no container says whose it is."""
    for number in (1, 2):
        write_demo(tmp_path / f"demo-{number}", f"demo-{number}", containers=3, hours=0.1)
    with Asker(tmp_path) as asker:
        found = asker.json("/api/instance")
        assert (found["nodes"], found["node"]) == (["demo-1", "demo-2"], "")
        load = asker.json("/api/timeseries", metric="cpu.load_1m")
        assert sorted(one["id"] for one in load["series"]) == ["node@demo-1", "node@demo-2"]
        only = asker.json("/api/timeseries", metric="cpu.load_1m", node="demo-2")
        assert [one["node"] for one in only["series"]] == ["demo-2"]
        busiest = asker.json("/api/timeseries", metric="cpu", range="2m")
        assert {one["node"] for one in busiest["series"]} == {"demo-1", "demo-2"}
        for one in busiest["series"]:
            assert sum(value is not None for value in one["mean"]) == one["samples"] > 0


HOSTILE = (
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "x" * 1024,
    "a,b;c'd\"e",
    "\x00\x1b[31m",
    "%2e%2e/..",
)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Names of somebody else's file go through every answer as they are, and break none."""
    write_foreign(tmp_path / "foreign.parquet", HOSTILE)
    with Asker(tmp_path / "foreign.parquet") as asker:
        listed = asker.json("/api/containers", metric="things")["containers"]
        assert {one["pod"] for one in listed} == set(HOSTILE)
        for one in listed:
            found = asker.json("/api/timeseries", metric="things", containers=one["id"])
            assert [series["id"] for series in found["series"]] == [one["id"]]
            assert (
                asker.get(
                    "/api/containers", params={"metric": "things", "search": one["pod"][:200]}
                ).status_code
                == 200
            )
        export = asker.get("/api/export?metric=things")
        assert export.headers["content-type"].startswith("text/csv")
        assert export.text.count("alert(1)") == 60
