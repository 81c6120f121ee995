"""Rules about all sources, over all fixture nodes, by introspection."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.support import FixtureNode, list_nodes, read_faults

from nodescope.base.block import Table
from nodescope.base.frame import Frame
from nodescope.base.metric import Metric
from nodescope.base.unit_guess import NOT_KNOWN, unit_of
from nodescope.collect import sources
from nodescope.collect.files.batch import FileFault
from nodescope.collect.sources import BATCH_SOURCES, CALL_SOURCES

FOLDER = Path(sources.__file__).parent
TESTS = Path(__file__).parents[1]


# Folders of simple sources, one module each, like those beside them.
FAMILIES = ("board", "stack")


def name_source(path: Path) -> str:
    """`disk.py` is disk, `stack/netstat.py` netstat, `pcm/source.py` pcm, `perf/cgroup_source.py` perf_cgroup."""
    if path.parent == FOLDER or path.parent.name in FAMILIES:
        return path.stem
    return f"{path.parent.name}_{path.stem.removesuffix('source')}".strip("_")


SIMPLE_FILES = [
    path
    for folder in (FOLDER, *(FOLDER / family for family in FAMILIES))
    for path in sorted(folder.glob("*.py"))
    if path.stem != "__init__"
]
# A simple source is one file; a large one is a folder with *source.py.
MODULES = {name_source(path): path for path in [*SIMPLE_FILES, *sorted(FOLDER.glob("*/*source.py"))]}
NAMES = sorted(MODULES)

# What every Linux has, if it has anything: on `bare`, too.
ALWAYS = {"cpu", "machine", "memory", "process", "pod"}
# Cut-off and garbled files of `hostile`: faults that no errno explains.
GARBLED = {
    "hostile": (
        r"proc/diskstats",
        r"proc/3000/stat",
        r"sys/fs/cgroup/.*/cri-containerd-ba41.*/(cpu\.stat|memory\.max|io\.stat)",
        r"sys/fs/cgroup/.*docker-275d.*/pids\.current",
    )
}
# Names that cAdvisor fixes without their unit.
WITHOUT_UNIT = {
    "container_memory_rss",
    "container_memory_cache",
    "container_memory_mapped_file",
    "container_memory_swap",
    "container_memory_kernel_usage",
}
# Counters whose well-known name has no _total.
WITHOUT_TOTAL = re.compile(r"container_hugetlb_failcnt|node_(vmstat|netstat)_\w+|container_memory_failcnt")
SUFFIXES = {"seconds": "_seconds", "bytes": "_bytes", "ratio": "_ratio", "watts": "_watts"}

Runs = dict[str, tuple[Frame, Frame, list[FileFault]]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Both frames and the loud faults of every node."""
    found: Runs = {}
    for name in list_nodes():
        node = FixtureNode(name, tmp_path_factory.mktemp(name))
        first, second = node.run()
        faults = [fault for table in node.parts.sampler.faults.values() for fault in table]
        found[name] = (first, second, faults)
        node.close()
    return found


def module_of(name: str) -> ModuleType:
    inner = ".".join(MODULES[name].relative_to(FOLDER).with_suffix("").parts)
    return importlib.import_module(f"nodescope.collect.sources.{inner}")


def metrics_of(runs: Runs) -> Iterator[Metric]:
    for first, second, _ in runs.values():
        for frame in (first, second):
            for block in frame.blocks:
                yield from block.table.metrics


def test_sources_are_the_files_of_the_folder() -> None:
    """A source that is written but not listed would never be asked."""
    listed = [make.name for make in BATCH_SOURCES] + [make.name for make in CALL_SOURCES]
    assert sorted(listed) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_source_is_called_like_its_file(name: str) -> None:
    """File name = Source.name = settings key = docs heading."""
    made = {make.name: make for make in BATCH_SOURCES} | {make.name: make for make in CALL_SOURCES}
    assert made[name] in vars(module_of(name)).values()


@pytest.mark.parametrize("name", NAMES)
def test_a_header_says_what_is_read_needed_and_documented(name: str) -> None:
    """Reads, Needs, Docs with an address, and a sample, indented, as the kernel writes it."""
    header = module_of(name).__doc__ or ""
    assert re.search(r"^Reads   \S", header, re.MULTILINE)
    assert re.search(r"^Needs   \S", header, re.MULTILINE)
    assert re.search(r"^Docs    https://\S+$", header, re.MULTILINE)
    # Four blanks, or more where the kernel itself indents.
    assert re.search(r"^ {3,}\S", header, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_a_source_opens_no_file_itself(name: str) -> None:
    """Files come through NodeRoot: so every source runs on a fixture."""
    tree = ast.parse(MODULES[name].read_text())
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {func.id for func in called if isinstance(func, ast.Name)}
    attributes = {
        f"{func.value.id}.{func.attr}"
        for func in called
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
    }
    assert not names & {"open", "Path"}
    assert not attributes & {"os.open", "os.listdir", "os.scandir", "os.stat", "os.readlink", "io.open"}


def test_every_metric_has_a_sentence(runs: Runs) -> None:
    """Help ends with a full stop and is one line."""
    for metric in metrics_of(runs):
        assert metric.help.endswith("."), metric.name
        assert "\n" not in metric.help, metric.name


def test_every_published_name_carries_its_unit(runs: Runs) -> None:
    """Seconds say _seconds, bytes _bytes, counters _total; the exceptions are listed by name."""
    for metric in metrics_of(runs):
        for name in (metric.published, *metric.also):
            if name is None or name in WITHOUT_UNIT:
                continue
            assert SUFFIXES.get(metric.unit, "") in name, name
            if metric.kind == "counter" and not WITHOUT_TOTAL.fullmatch(name):
                assert name.endswith("_total"), name


def test_one_name_means_one_thing(runs: Runs) -> None:
    """Series of one published name share kind, unit and sentence."""
    meanings: dict[str, set[tuple[str, str, str]]] = {}
    for metric in metrics_of(runs):
        if metric.published:
            meanings.setdefault(metric.published, set()).add((metric.kind, metric.unit, metric.help))
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_every_metric_is_in_a_golden(runs: Runs) -> None:
    """What no fixture node shows, nobody has seen working."""
    goldens = "".join(path.read_text() for path in (TESTS / "golden").glob("*/metrics.prom"))
    shown = set(re.findall(r"^(\w+)", goldens, re.MULTILINE))
    published = {name for metric in metrics_of(runs) for name in (metric.published, *metric.also) if name}
    assert published <= shown


def test_what_is_optional_is_absent_on_a_bare_node(runs: Runs) -> None:
    """Nothing fails for lack of something, and each absence has a reason."""
    for frame in runs["bare"][:2]:
        assert isinstance(frame, Frame)
        for name, outcome in frame.outcomes.items():
            assert outcome.state == ("ok" if name in ALWAYS else "absent"), name
            assert bool(outcome.reason) == (outcome.state == "absent"), name


@pytest.mark.parametrize("name", list_nodes())
def test_no_source_fails_that_the_faults_do_not_explain(name: str, runs: Runs) -> None:
    """A failure or a fault on a fixture node names a path of faults.toml, or one listed as garbled."""
    first, second, faults = runs[name]
    explained = [re.escape(path) for path in read_faults(name)] + list(GARBLED.get(name, ()))
    pattern = re.compile("|".join(explained) or r"(?!)")
    assert [str(fault) for fault in faults if not pattern.match(fault.path)] == []
    failures = [outcome.reason for frame in (first, second) for outcome in frame.outcomes.values()]
    states = [outcome.state for frame in (first, second) for outcome in frame.outcomes.values()]
    assert [why for why, state in zip(failures, states) if state == "failed" and not pattern.match(why)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_source_is_seen_by_a_test(name: str, runs: Runs) -> None:
    """It is ok on a fixture node, and so in a golden, or it has a test module of its own."""
    covered = any(frame.outcomes[name].state == "ok" for _, frame, _ in runs.values())
    assert covered or (TESTS / "collect" / "sources" / f"test_{name}.py").exists()


def test_a_name_without_its_sidecar_has_its_unit_or_none(runs: Runs) -> None:
    """For every metric with a scale, and every one in bytes: the name says the same, or that it cannot."""
    unsure = set()
    for metric in metrics_of(runs):
        told = unit_of(metric.name)
        if told.unit == NOT_KNOWN:
            unsure.add(metric.name.partition(".")[0])
        elif metric.scale != 1.0 or metric.unit == "bytes":
            assert (told.unit, told.scale) == (metric.unit, metric.scale), metric.name
        else:
            assert told.scale == 1.0, metric.name
    assert unsure <= {"cpu", "process", "memory", "cgroup"}


# -- a simple source is known to its own file and to the list of sources --------

SIMPLE = sorted(path.stem for path in SIMPLE_FILES)
SOURCE_TREE = FOLDER.parents[1]
# Names of sources that are other words as well: scopes, cgroup controllers, settings, options.
# Their tables and metrics are looked for all the same, and so are imports.
COMMON_WORDS = {
    *("cpu", "disk", "filesystem", "fpga", "host", "kernel", "kubernetes", "memory", "network", "pod"),
    *("pressure", "interface", "machine", "sockets"),
}
# Modules that know simple sources, which sources, and why. Whoever adds a source adds nothing here.
KNOWN_BY: dict[str, tuple[set[str], str]] = {
    "base/metric_names.py": (
        {
            "cpu",
            "disk",
            "memory",
            "netstat",
            "network",
            "pod",
            "pod_tcp",
            "pressure",
            "smaps_rollup",
            "vmstat",
        },
        "plain names are made of raw ones",
    ),
    "collect/run/budget.py": ({"cpu"}, "what is slowed last"),
    "collect/sources/host.py": (
        {"cpu", "disk", "memory", "network"},
        "macOS: the series that the Linux sources have, under their names",
    ),
    "collect/sources/stack/pod_tcp.py": ({"netstat", "sockstat"}, "files of /proc, called like the sources"),
    "collect/sources/stack/sockets.py": ({"sockstat"}, "a file of /proc, called like the source"),
    "collect/sources/pod.py": ({"network"}, "the layout of net/dev, which is the same in every namespace"),
    "hold/core_window.py": ({"cpu", "cpufreq", "cpuidle"}, "tables with a row per core"),
    "hold/feature.py": (
        {"cpu", "cpufreq", "cpuidle", "memory", "pressure", "rapl", "resctrl"},
        "the scheduler's features",
    ),
    "keep/demo/samples.py": ({"cpu", "memory"}, "the demo writes an archive of them"),
    "publish/derived.py": ({"cpu", "memory", "pressure"}, "the health score"),
    "use/answers/incidents/signal.py": ({"pod", "pod_tcp"}, "the signals that an incident is looked for in"),
    "use/answers/incidents/table.py": (
        {"cpu", "memory", "schedstat"},
        "how large the node is, against what was taken; whether its cores waited for disks, and tasks for its cores",
    ),
    "use/answers/node_summary/summary.py": ({"filesystem"}, "how full the node's disks are"),
    "use/answers/overview.py": ({"memory"}, "the node's tile shows its memory"),
    "use/answers/swept/sheet.py": ({"pod"}, "a container's network is that of its pod"),
    "use/push/convention.py": (
        {"cpu", "disk", "filesystem", "machine", "memory", "network", "pod", "vmstat"},
        "OpenTelemetry's names for them",
    ),
    "use/push/request.py": ({"cpu"}, "when the node booted: since when its counters count"),
    "watch/look.py": (
        {"cpu", "filesystem", "memory", "pressure"},
        "what a node has and who waits on it: the watcher looks at every tick, without the plain names' table",
    ),
}


def list_names(name: str, runs: Runs) -> set[str]:
    """A source's tables and metrics: from every fixture node, and from its module where no node has it."""
    tables = {block.table for first, second, _ in runs.values() for block in (*first.blocks, *second.blocks)}
    tables |= {value for value in vars(module_of(name)).values() if isinstance(value, Table)}
    mine = [table for table in tables if table.source == name]
    found = {table.name for table in mine} | {metric.name for table in mine for metric in table.metrics}
    # `host` gives the series of other sources, under their names.
    return {one for one in found if one.partition(".")[0] == name}


def list_texts(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """(text, whether it is the beginning of an f-string) of the code's strings; docstrings are none."""
    beginnings = {
        id(node.values[0]) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and node.values
    }
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
            yield node.value, id(node) in beginnings


def list_imported(tree: ast.Module) -> set[str]:
    """Simple sources that a module imports, whole or in part."""
    package = "nodescope.collect.sources"
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    whole = {alias.name for node in froms if node.module == package for alias in node.names}
    inner = [str(node.module).removeprefix(f"{package}.") for node in froms]
    families = {alias.name for node, name in zip(froms, inner) if name in FAMILIES for alias in node.names}
    return (
        whole | families | {name.rpartition(".")[2] if name.startswith(FAMILIES) else name for name in inner}
    )


def is_named(source: str, names: set[str], text: str, *, is_beginning: bool) -> bool:
    if text == source and source not in COMMON_WORDS:
        return True
    if is_beginning:
        return text.startswith(f"{source}.") and any(name.startswith(text) for name in names)
    return "." in text and text in names


def find_knowing(runs: Runs) -> dict[str, set[str]]:
    """Module -> simple sources that it names, by import, by name, by a table or by a metric."""
    names = {source: list_names(source, runs) for source in SIMPLE}
    knowing: dict[str, set[str]] = {}
    for path in sorted(SOURCE_TREE.rglob("*.py")):
        own = path.stem if path.parent == FOLDER or path in SIMPLE_FILES else ""
        if own == "__init__":
            continue
        tree = ast.parse(path.read_text())
        texts, imported = list(list_texts(tree)), list_imported(tree)
        found = {
            source
            for source in SIMPLE
            if source != own
            if source in imported
            or any(is_named(source, names[source], text, is_beginning=first) for text, first in texts)
        }
        if found:
            knowing[path.relative_to(SOURCE_TREE).as_posix()] = found
    return knowing


def test_a_simple_source_is_named_by_its_own_file_and_the_list_alone(runs: Runs) -> None:
    """
    A new source costs the seven files of CONTRIBUTING and not an eighth.

    Everything behind the source is generic: ring, archive, /metrics, queries and
    pages see tables and metrics, not sources. This fails as soon as a module
    imports a simple source, or holds its name or the name of one of its tables
    or metrics as a string, and is not listed above with a reason; and when a
    module that is listed no longer does, so that the list stays true.
    """
    assert find_knowing(runs) == {module: sources for module, (sources, _) in KNOWN_BY.items()}


def test_the_search_for_names_finds_an_eighth_file() -> None:
    """An import, a name, a metric and the beginning of one; a docstring or another word does not count."""
    names = {"rapl", "rapl.package.energy", "cpu", "cpu.idle"}
    assert is_named("rapl", names, "rapl", is_beginning=False)
    assert is_named("rapl", names, "rapl.package.energy", is_beginning=False)
    assert is_named("cpu", names, "cpu.", is_beginning=True)
    assert not is_named("cpu", names, "cpu", is_beginning=False)
    assert not is_named("cpu", names, "cpu.stat", is_beginning=True)
    tree = ast.parse('"""rapl"""\nfrom nodescope.collect.sources import rapl\nname = "x"')
    assert [text for text, _ in list_texts(tree)] == ["x"]
    assert "rapl" in list_imported(tree)
