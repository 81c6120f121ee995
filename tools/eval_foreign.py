"""
How many queries of other people's dashboards and rules nodescope answers, beside node_exporter and cAdvisor.

    python -m tools.eval_foreign --lists DIR [--missing]

DIR holds one list a file, one query a line: "kind title<TAB>selector selector ...". A real Prometheus scrapes
the agent with deploy/prometheus/kube-prometheus.yaml, and node_exporter and cAdvisor as kube-prometheus
does, on one machine with real pods. A query counts as answered when every selector has a series, under the job
that the rules name. cAdvisor gets the labels that kubelet would add to the pods that are made here; the agent
gets the files that containerd would have written for them.
"""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml
from tests.cgroups import Cgroups, Group, why_not
from tests.integration.agents import free_port, stop, wait_for
from tests.integration.peers.load import start_load
from tests.integration.peers.recipe import build_cadvisor_job, build_job, build_node_exporter_job
from tests.integration.peers.servers import agent_running, peer_running

BUNDLES = Path("/run/containerd/io.containerd.runtime.v2.task/k8s.io")
NODE = "worker-1"
INTERVAL = "3s"
# Slow families answer after half a minute, and Prometheus needs a scrape behind that.
SETTLE_SECONDS = 45.0
# A pod's end of a link, as a network plugin makes it.
NETWORK = "ip link set lo up; ip link add eth0 type veth peer name peer0; ip link set eth0 up; exec sleep 600"
SIDES = ("peers", "nodescope")
_SELECTOR = re.compile(r"[a-zA-Z_:][\w:]*(?:\{(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*\})?")


@dataclass(frozen=True)
class Query:
    """One query of a list: all of its selectors must have a series."""

    list_name: str
    title: str
    selectors: tuple[str, ...]


def read_lists(folder: Path) -> list[Query]:
    queries = []
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text().splitlines():
            title, _, selectors = line.partition("\t")
            queries.append(Query(path.stem, title, tuple(_SELECTOR.findall(selectors))))
    return queries


def add_labels(selector: str, side: str) -> str:
    """The job by which kube-prometheus selects a metric, and the side that is asked."""
    name, _, inside = selector.partition("{")
    wanted = [f'side="{side}"']
    if name.startswith("node_"):
        wanted.append('job="node-exporter"')
    elif name.startswith(("container_", "machine_")):
        wanted += ['job="kubelet"', 'metrics_path="/metrics/cadvisor"']
    inner = inside.rstrip("}")
    return f"{name}{{{','.join([*wanted, *([inner] if inner else [])])}}}"


@contextlib.contextmanager
def bundles(groups: dict[str, Group]) -> Iterator[dict[str, dict[str, str]]]:
    """containerd's files for the pods; the labels of each container by its id."""
    names: dict[str, dict[str, str]] = {}
    made: list[Path] = []
    try:
        for name, group in groups.items():
            container = group.path.rpartition("/")[2].removeprefix("cri-containerd-").removesuffix(".scope")
            labels = {"namespace": "shop", "pod": f"{name}-0", "container": name, "image": f"shop/{name}:1"}
            names[container] = {**labels, "name": container}
            folder = BUNDLES / container
            folder.mkdir(parents=True)
            made.append(folder)
            annotations = {
                "io.kubernetes.cri.container-type": "container",
                "io.kubernetes.cri.container-name": name,
                "io.kubernetes.cri.image-name": labels["image"],
                "io.kubernetes.cri.sandbox-name": labels["pod"],
                "io.kubernetes.cri.sandbox-namespace": labels["namespace"],
            }
            (folder / "config.json").write_text(json.dumps({"annotations": annotations}))
        yield names
    finally:
        for folder in made:
            (folder / "config.json").unlink(missing_ok=True)
            folder.rmdir()


@contextlib.contextmanager
def running_prometheus(folder: Path, jobs: list[dict[str, object]]) -> Iterator[httpx.Client]:
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"scrape_configs": jobs}))
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            wait_for(lambda: is_ready(client), "a Prometheus that is ready")
            yield client
    finally:
        stop(process)


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


@contextlib.contextmanager
def running_bed() -> Iterator[httpx.Client]:
    """The agent and its peers on pods that work, all scraped by one Prometheus."""
    with (
        tempfile.TemporaryDirectory(prefix="nodescope-foreign-") as name,
        Cgroups() as cgroups,
        bundles(start_pods(cgroups, Path(name))) as names,
        agent_running() as agent,
        peer_running("node_exporter") as node_exporter,
        peer_running("cadvisor") as cadvisor,
    ):
        jobs = [
            build_job(f"127.0.0.1:{agent.port}", NODE, INTERVAL),
            build_node_exporter_job(f"127.0.0.1:{node_exporter.port}", NODE, INTERVAL),
            build_cadvisor_job(f"127.0.0.1:{cadvisor.port}", NODE, INTERVAL, names),
        ]
        with running_prometheus(Path(name), jobs) as client:
            time.sleep(SETTLE_SECONDS)
            yield client


def start_pods(cgroups: Cgroups, folder: Path) -> dict[str, Group]:
    """Pods that work, and one that has a network of its own."""
    own = cgroups.container()
    own.spawn(["unshare", "-n", "sh", "-c", NETWORK])
    return {**start_load(cgroups, folder), "network": own}


class Answers:
    """Asks each selector once."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._known: dict[str, bool] = {}

    def has(self, selector: str) -> bool:
        if selector not in self._known:
            found = self._client.get("/api/v1/query", params={"query": f"count({selector})"}).json()
            if found["status"] != "success":
                raise SystemExit(f"{selector}: {found['error']}")
            self._known[selector] = bool(found["data"]["result"])
        return self._known[selector]

    def answers(self, query: Query, side: str) -> bool:
        return all(self.has(add_labels(selector, side)) for selector in query.selectors)


def render_table(queries: list[Query], answered: dict[str, set[Query]]) -> Iterator[str]:
    yield f"{'list':<52}{'queries':>8}{'peers':>7}{'ours':>7}{'of theirs':>11}"
    for name in [*sorted({query.list_name for query in queries}), "all"]:
        mine = [query for query in queries if name in (query.list_name, "all")]
        theirs = [query for query in mine if query in answered["peers"]]
        ours = [query for query in mine if query in answered["nodescope"]]
        both = sum(query in answered["nodescope"] for query in theirs)
        share = f"{both / len(theirs):.1%}" if theirs else "-"
        yield f"{name:<52}{len(mine):>8}{len(theirs):>7}{len(ours):>7}{share:>11}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lists", type=Path, required=True, metavar="DIR")
    parser.add_argument("--missing", action="store_true", help="which selectors only the peers answer")
    parser.add_argument(
        "--skip", default="gpu-", metavar="PREFIX", help="lists that are left out; gpu- unless given"
    )
    options = parser.parse_args()
    reason = why_not()
    if reason:
        raise SystemExit(f"this needs real cgroups: {reason}")
    queries = [query for query in read_lists(options.lists) if not query.list_name.startswith(options.skip)]
    if not queries:
        raise SystemExit(f"no lists in {options.lists}")
    with running_bed() as client:
        asked = Answers(client)
        answered = {side: {query for query in queries if asked.answers(query, side)} for side in SIDES}
        sys.stdout.write("\n".join(render_table(queries, answered)) + "\n")
        if options.missing:
            lost = {
                selector
                for query in queries
                for selector in query.selectors
                if not asked.has(add_labels(selector, "nodescope"))
            }
            for selector in sorted(lost):
                theirs = "peers have it" if asked.has(add_labels(selector, "peers")) else "nobody has it here"
                sys.stdout.write(f"  {selector}: {theirs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
