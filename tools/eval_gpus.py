"""
How many queries of dashboards for GPUs nodescope answers, on fakes of the vendors' interfaces.

    python -m tools.eval_gpus --lists DIR [--missing]

DIR holds the lists of tools.eval_foreign; those that begin with gpu- are asked. NVIDIA's driver is a library of
our own that says what an H100 says (tests/fakes/nvml); AMD's is a tree of files with four cards of two
generations (tests/fakes/amd_board). A query counts as answered when every selector has a series with those
labels. What the vendors' interfaces cannot say is told apart: AMD's gpu_prof_* needs its profiler.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.amd_board import build_board
from tests.fakes.nvml.library import Scenario, build_library, many_gpus
from tests.integration.agents import running_agent, wait_for
from tests.support import copy_node
from tools.eval_foreign import Query, read_lists

from nodescope.serve.prometheus_parse import TextFamily, parse_text

# Counted by rocprofiler alone; amd-smi and the kernel have no such figure.
UNSAYABLE = re.compile(r"gpu_prof_")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
# A process of the fixture node that runs in a pod.
OF_A_POD = 2401
# What Hopper's counters say of an H100 under load: metric of NVML -> percent.
COUNTERS = {1: 96.0, 2: 88.5, 3: 61.0, 5: 42.5, 10: 55.0}


def matches(labels: dict[str, str], selector: str) -> bool:
    for name, sign, value in _MATCHER.findall(selector.partition("{")[2]):
        have = labels.get(name, "")
        is_there = re.fullmatch(value, have) is not None if "~" in sign else have == value
        if is_there == sign.startswith("!"):
            return False
    return True


def has_series(families: dict[str, TextFamily], selector: str) -> bool:
    family = families.get(selector.partition("{")[0])
    return family is not None and any(matches(dict(labels), selector) for _, labels, _ in family.samples)


def scrape_nvidia(folder: Path) -> dict[str, TextFamily]:
    library = build_library(folder / "nvml")
    scenario = Scenario(folder / "scenario")
    scenario.say(
        {**many_gpus(2), "all.gpm": 1, **{f"all.gpm.{key}": value for key, value in COUNTERS.items()}}
    )
    environment = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_SCENARIO": str(scenario.path)}
    flags = ("--dcgm-names", "true", "--no-archive", "--no-kubernetes")
    with running_agent(*flags, environment=environment, ready_seconds=120) as agent:
        # Shares of time need two readings.
        wait_for(lambda: "PIPE_TENSOR" in agent.scrape(), "two readings of the GPU's counters", 60)
        return parse_text(agent.scrape())


def scrape_amd(folder: Path) -> dict[str, TextFamily]:
    root = copy_node("cgroup2-systemd", folder / "node")
    build_board(root, (root / f"proc/{OF_A_POD}/cgroup").read_text().strip())
    flags = (
        "--root",
        str(root),
        "--amd-names",
        "true",
        "--amd-tools",
        "never",
        "--no-archive",
        "--no-kubernetes",
    )
    with running_agent(*flags, ready_seconds=120) as agent:
        named = re.compile(r'gpu_gfx_activity\{[^}]*pod="[^"]')
        wait_for(lambda: named.search(agent.scrape()), "cards with the names of their pods", 60)
        return parse_text(agent.scrape())


def judge(queries: list[Query], families: dict[str, TextFamily]) -> dict[Query, bool]:
    """Of those that can be said at all: whether each is answered."""
    return {
        query: all(has_series(families, selector) for selector in query.selectors)
        for query in queries
        if not any(UNSAYABLE.match(selector) for selector in query.selectors)
    }


def scrape_both() -> dict[str, TextFamily]:
    with tempfile.TemporaryDirectory(prefix="nodescope-gpus-") as name:
        return {**scrape_nvidia(Path(name)), **scrape_amd(Path(name))}


def read_gpu_lists(folder: Path) -> list[Query]:
    """One entry for every line: a dashboard may ask the same twice."""
    return [
        Query(query.list_name, f"{number} {query.title}", query.selectors)
        for number, query in enumerate(read_lists(folder))
        if query.list_name.startswith("gpu-")
    ]


def render_table(queries: list[Query], judged: dict[Query, bool]) -> Iterator[str]:
    yield f"{'list':<28}{'queries':>8}{'can be said':>13}{'answered':>10}{'share':>8}"
    for name in [*sorted({query.list_name for query in queries}), "all"]:
        mine = [query for query in queries if name in (query.list_name, "all")]
        can = [query for query in mine if query in judged]
        answered = sum(judged[query] for query in can)
        share = f"{answered / len(can):.1%}" if can else "-"
        yield f"{name:<28}{len(mine):>8}{len(can):>13}{answered:>10}{share:>8}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lists", type=Path, required=True, metavar="DIR")
    parser.add_argument("--missing", action="store_true", help="which selectors have no series")
    options = parser.parse_args()
    queries = read_gpu_lists(options.lists)
    if not queries:
        raise SystemExit(f"no lists of GPUs in {options.lists}")
    families = scrape_both()
    judged = judge(queries, families)
    sys.stdout.write("\n".join(render_table(queries, judged)) + "\n")
    if options.missing:
        lost = {one for query in judged for one in query.selectors if not has_series(families, one)}
        sys.stdout.write("".join(f"  {selector}\n" for selector in sorted(lost)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
