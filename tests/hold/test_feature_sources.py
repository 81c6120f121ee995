"""Features that several sources can give: the best is taken and named."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.collect.hardware import make_context, make_pcm, write_files
from tests.collect.sources.test_pcm_totals import COLUMNS, GOOD, make_answer, row_at, with_cell

from nodescope.base.block import Block
from nodescope.base.entity import Entity
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import OK, Frame, Outcome
from nodescope.collect.run.source import MakeCallSource
from nodescope.collect.sources import cpufreq, cpuidle, rapl, resctrl
from nodescope.collect.sources.pcm.totals import TABLES
from nodescope.collect.sources.perf import source as perf
from nodescope.hold.core_window import parse_cores
from nodescope.hold.feature import CORE_FEATURES, FEATURES, THESIS_FEATURES
from nodescope.hold.ring import Ring
from nodescope.hold.window import NodeWindow, take_node_window
from nodescope.publish.agent_json import answer_node_window
from nodescope.serve.json_text import render_json

SECOND = 1_000_000_000
HARDWARE = ("pcm", "perf", "resctrl", "rapl", "cpufreq", "cpuidle")


class StoppedClock:
    def __init__(self, mono_ns: int) -> None:
        self._mono_ns = mono_ns

    def mono_ns(self) -> int:
        return self._mono_ns

    def wall_ns(self) -> int:
        return 1_690_000_000 * SECOND

    def wait_until(self, deadline_mono_ns: int, stop: object) -> bool:
        raise NotImplementedError


def fill(ring: Ring, frames: list[list[Block]], outcomes: dict[str, Outcome] | None = None) -> None:
    for number, blocks in enumerate(frames):
        known = outcomes or dict.fromkeys(HARDWARE, OK)
        ring.accept(Frame(number, number * SECOND, number * SECOND, tuple(blocks), known))


def take(ring: Ring, seconds: float, at: int) -> NodeWindow:
    return take_node_window(ring, seconds, at * SECOND)


def make_ring() -> Ring:
    return Ring(120.0, 2**26, 1.0)


def pcm_frames(rows: list[tuple[str, ...]]) -> list[list[Block]]:
    source = make_pcm()
    return [list(source.parse(make_answer(row), number * SECOND)) for number, row in enumerate(rows)]


def perf_block(number: int, cores: int = 2) -> Block:
    """Each second and core: 4e9 instructions, 2e9 cycles, 100 lookups, 30 misses."""
    values = np.array([[2e9, 4e9, 100, 30, 1, 1, 1 / cores]] * cores) * number
    entities = tuple(Entity("cpu", (str(core),), (("cpu", str(core)),)) for core in range(cores))
    return Block(perf.TABLE, entities, values, number * SECOND)


def test_pcm_gives_every_feature_of_the_contract_exactly() -> None:
    """Means from sums; units as the contract has them."""
    ring = make_ring()
    fill(ring, pcm_frames([row_at(n) for n in range(11)]))
    window = take(ring, 10, 10)
    expected = {
        "ipc": 60 / 64,
        "cache_miss": 0.2,
        "l3_miss_rate": 0.03e6,
        "l2_miss_rate": 0.15e6,
        "mem_bw": 2.0,
        "mem_read_bw": 1.8,
        "mem_write_bw": 0.2,
        "mem_bw_util": 1.0,
        "freq_ghz": 1.2,
        "power_watts": 18.0,
        "c0_residency": 0.25,
    }
    for name, value in expected.items():
        assert window.metrics[f"mean_{name}"] == pytest.approx(value), name
        assert window.metrics[f"std_{name}"] == pytest.approx(0.0, abs=1e-6), name
        assert window.sources[name] == "pcm"
        assert name not in window.samples_of


def test_a_window_over_a_missing_cell_says_how_many_samples_it_has() -> None:
    ring = make_ring()
    rows = [row_at(n, with_cell("READ", "18446744073.71") if n == 4 else GOOD) for n in range(11)]
    fill(ring, pcm_frames(rows))
    window = take(ring, 10, 10)
    assert window.metrics["mean_mem_bw"] == pytest.approx(2.0)
    assert window.samples_of["mem_bw"] == 9
    assert "mem_write_bw" not in window.samples_of


def test_five_second_rows_give_rates_per_second() -> None:
    """The original never divided by time: training and serving differed five times."""
    ring = make_ring()
    fill(ring, pcm_frames([row_at(n, step=5.0) for n in range(5)]))
    window = take(ring, 4, 4)
    assert window.metrics["mean_mem_bw"] == pytest.approx(0.4)
    assert window.metrics["mean_power_watts"] == pytest.approx(3.6)


def test_without_pcm_the_next_source_is_taken_and_named() -> None:
    ring = make_ring()
    outcomes = {**dict.fromkeys(HARDWARE, OK), "pcm": Outcome("absent", "no pcm on this machine")}
    fill(ring, [[perf_block(n)] for n in range(6)], outcomes)
    window = take(ring, 5, 5)
    assert window.metrics["mean_ipc"] == pytest.approx(2.0)
    assert window.metrics["mean_cache_miss"] == pytest.approx(0.3)
    assert window.metrics["mean_l3_miss_rate"] == pytest.approx(60.0)
    assert window.sources["ipc"] == "perf"
    assert window.missing["l2_miss_rate"] == "pcm absent: no pcm on this machine"
    assert window.missing["mem_bw"].startswith("pcm absent: no pcm on this machine; resctrl has no sample")


def test_pcm_is_preferred_while_it_has_samples_in_the_window() -> None:
    ring = make_ring()
    frames = pcm_frames([row_at(n) for n in range(3)])
    fill(ring, [[*blocks, perf_block(n)] for n, blocks in enumerate([*frames, [], [], []])])
    assert take(ring, 5, 5).sources["ipc"] == "pcm"
    assert take(ring, 5, 5).samples_of["ipc"] == 2
    assert take(ring, 2, 5).sources["ipc"] == "perf"


def test_files_of_the_kernel_give_power_bandwidth_frequency_and_residency(tmp_path: Path) -> None:
    """rapl, resctrl, cpufreq and cpuidle, from their files to the window."""
    base = "sys/devices/system/cpu"

    def write(number: int) -> None:
        write_files(
            tmp_path,
            {
                "sys/class/powercap/intel-rapl:0/name": "package-0",
                "sys/class/powercap/intel-rapl:0/energy_uj": number * 30_000_000,
                "sys/class/powercap/intel-rapl:0/max_energy_range_uj": 10**11,
                "sys/class/powercap/intel-rapl:1/name": "package-1",
                "sys/class/powercap/intel-rapl:1/energy_uj": number * 12_000_000,
                "sys/class/powercap/intel-rapl:1/max_energy_range_uj": 10**11,
                "sys/fs/resctrl/info/x": 1,
                "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes": number * 10**9,
                "sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes": number * 3 * 10**9,
                **{
                    f"{base}/cpu{core}/cpufreq/scaling_cur_freq": 2_000_000 + core * 1_000_000
                    for core in (0, 1)
                },
                **{f"{base}/cpu{core}/cpuidle/state0/name": "C1" for core in (0, 1)},
                **{f"{base}/cpu{core}/cpuidle/state0/time": number * 750_000 for core in (0, 1)},
            },
        )

    write(0)
    context = make_context(tmp_path)
    frames = []
    makes: list[MakeCallSource] = [
        rapl.RaplSource,
        resctrl.ResctrlSource,
        cpufreq.CpufreqSource,
        cpuidle.CpuidleSource,
    ]
    sources = [make(context) for make in makes]
    for number in range(6):
        write(number)
        frames.append([block for source in sources for block in source.parse(source.read(), number * SECOND)])
    ring = make_ring()
    fill(ring, frames, {**dict.fromkeys(HARDWARE, OK), "pcm": Outcome("absent", "not here")})
    window = take(ring, 5, 5)
    assert window.metrics["mean_power_watts"] == pytest.approx(42.0)
    assert window.metrics["mean_mem_bw"] == pytest.approx(4.0)
    assert window.metrics["mean_freq_ghz"] == pytest.approx(2.5)
    assert window.metrics["mean_c0_residency"] == pytest.approx(0.25)
    assert {name: window.sources[name] for name in ("power_watts", "mem_bw", "freq_ghz", "c0_residency")} == {
        "power_watts": "rapl",
        "mem_bw": "resctrl",
        "freq_ghz": "cpufreq",
        "c0_residency": "cpuidle",
    }


# -- cores -------------------------------------------------------------------

CORES = tuple(
    (f"Core{core} (Socket 0)", metric)
    for core in (3, 4, 5)
    for metric in ("IPC", "INST", "ACYC", "L3MISS", "C0res%")
)


def core_ring() -> Ring:
    """Core 3: 1 IPC, core 4: 2 IPC with half the cycles, core 5: 4 IPC with a quarter."""
    cells = (
        "1.00",
        "8.00",
        "8.00",
        "0.01",
        "80.00",
        "2.00",
        "8.00",
        "4.00",
        "0.02",
        "40.00",
        "4.00",
        "8.00",
        "2.00",
        "0.03",
        "20.00",
    )
    columns = (*COLUMNS[:2], *CORES)
    source = make_pcm()
    ring = make_ring()
    fill(
        ring,
        [list(source.parse(make_answer(row_at(n, cells), columns=columns), n * SECOND)) for n in range(6)],
    )
    return ring


def answer(ring: Ring, **parameters: str) -> dict[str, object]:
    content = answer_node_window(ring, StoppedClock(5 * SECOND), "n", 5.0, **parameters)
    return dict(json.loads(render_json(content)))


def test_cores_are_told_one_by_one_and_as_a_set() -> None:
    """The set's ratio is the ratio of the sums: 24 / 14, not the mean of 1, 2 and 4."""
    metrics = answer(core_ring(), cores="3,4,5")["metrics"]
    assert isinstance(metrics, dict)
    assert metrics["mean_core3_ipc"] == pytest.approx(1.0)
    assert metrics["mean_core5_l3_miss_rate"] == pytest.approx(0.03e6)
    assert metrics["mean_cores_ipc"] == pytest.approx(24 / 14)
    assert metrics["mean_cores_l3_miss_rate"] == pytest.approx(0.02e6)
    assert metrics["p95_core4_c0_residency"] == pytest.approx(0.4)


def test_the_thesis_names_are_given_on_request() -> None:
    """In the units PCM prints once a second; the average over cores is the plain one."""
    content = answer(core_ring(), cores="3-5", names="thesis")
    metrics, sources, missing = content["metrics"], content["sources"], content["missing"]
    assert isinstance(metrics, dict)
    assert isinstance(sources, dict)
    assert isinstance(missing, dict)
    assert metrics["mean_Core3_IPC"] == pytest.approx(1.0)
    assert metrics["std_Core4_L3MISS"] == pytest.approx(0.0, abs=1e-9)
    assert metrics["mean_Core4_L3MISS"] == pytest.approx(0.02)
    assert metrics["mean_Core5_C0res"] == pytest.approx(20.0)
    assert metrics["p95_AvgCore_IPC"] == pytest.approx(7 / 3)
    assert sources["Core3_IPC"] == "pcm"
    assert "Core3_L2MISS" in missing
    assert not any(key.endswith("Core3_L2MISS") for key in metrics)


def test_thesis_names_without_cores_are_of_all_cores() -> None:
    metrics = answer(core_ring(), names="thesis")["metrics"]
    assert isinstance(metrics, dict)
    assert {"mean_Core3_IPC", "mean_Core4_IPC", "mean_Core5_IPC"} <= set(metrics)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "numbers and ranges"),
        ("3,", "numbers and ranges"),
        ("9", "there are: 3, 4, 5"),
        ("5-3", "not a range"),
        ("-1", "numbers and ranges"),
    ],
)
def test_wrong_cores_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(RequestRejected, match=words):
        parse_cores(text, core_ring())


def test_wrong_names_are_refused() -> None:
    with pytest.raises(RequestRejected, match="plain, thesis"):
        answer(core_ring(), names="theses")


def test_every_way_names_columns_that_its_table_has() -> None:
    """A misspelt column would be missing for ever, politely."""
    tables = (*TABLES.values(), perf.TABLE, resctrl.TABLE, rapl.TABLE, cpufreq.TABLE, cpuidle.make_table(()))
    columns = {table.name: table.columns for table in tables}
    for feature in (*FEATURES, *CORE_FEATURES, *THESIS_FEATURES):
        for way in feature.ways:
            if way.table in columns:
                named = [*way.top, *(way.bottom if isinstance(way.bottom, tuple) else ())]
                assert {name for name, _ in named} <= set(columns[way.table]), feature.name
