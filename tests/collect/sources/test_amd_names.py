"""AMD's own names, the firmware's table behind them, and partitions."""

import json
import math
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.amd_board import MI210, MI300X, build_board, make_table_1_3, make_table_1_7
from tests.fakes.amd_tree import build_tree

from nodescope.base.block import Block
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.amd.amd_smi import parse_amd_smi
from nodescope.collect.sources.amd.exporter_names import pick_one
from nodescope.collect.sources.amd.gpu_metrics import REVISIONS, parse_gpu_metrics
from nodescope.collect.sources.amd.source import AmdSource
from nodescope.collect.sources.gpu.owner import JOB


def take(folder: Path, **settings: Any) -> dict[str, Block]:
    root = NodeRoot(folder)
    options = Settings(**{"amd_tools": "never", "amd_names": True, **settings})
    source = AmdSource(Context(root, Descriptors(100), options, ContainerNames(root), LiveContainers()))
    return {block.table.name: block for block in source.parse(json.loads(json.dumps(source.read())), 1)}


def values_of(block: Block, row: int) -> dict[str, float]:
    names = [metric.published for metric in block.table.metrics]
    return {str(name): value for name, value in zip(names, block.values[row].tolist())}


def test_two_generations_have_each_what_they_have(tmp_path: Path) -> None:
    build_board(tmp_path, "0::/")
    blocks = take(tmp_path)
    cards = blocks["amd.amd_names"]
    assert [entity.attribute("card_model") for entity in cards.entities] == [MI210, MI210, MI300X, MI300X]
    old, new = values_of(cards, 0), values_of(cards, 2)
    assert old["gpu_average_package_power"] == 39
    assert math.isnan(old["gpu_package_power"])
    assert new["gpu_package_power"] == 750
    assert math.isnan(new["gpu_average_package_power"])
    assert old["gpu_energy_consumed"] == 1e6
    assert old["gpu_gfx_activity"] == 37, "a file of its own comes before the table"
    assert new["gpu_gfx_activity"] == 40, "the mean of its compute units"
    assert old["gpu_total_vram"] == 34342961152 / 2**20
    assert [
        new[f"pcie_{name}_count"] for name in ("recovery", "replay_rollover", "nack_sent", "nack_received")
    ] == [5, 7, 8, 9]
    assert math.isnan(old["pcie_nack_sent_count"])
    assert (new["pcie_max_speed"], new["pcie_bandwidth"]) == (16, 1234)
    assert (new["gpu_ecc_correct_total"], new["gpu_ecc_uncorrect_total"]) == (3, 1)
    assert blocks["amd.nodes.amd_names"].values.tolist() == [[4]]


def test_units_and_stacks_have_their_own_labels(tmp_path: Path) -> None:
    build_board(tmp_path, "0::/")
    blocks = take(tmp_path)
    units = blocks["amd.units.amd_names"]
    places = [
        (one.attribute("gpu_id"), one.attribute("gpu_partition_id"), one.attribute("xcc_index"))
        for one in units.entities
    ]
    assert places == [(card, "0", unit) for card in ("2", "3") for unit in ("0", "1")]
    assert units.values.ravel().tolist() == [30, 50, 30, 50]
    stacks = blocks["amd.stacks.amd_names"]
    assert [one.attribute("hbm_index") for one in stacks.entities][:4] == ["0", "1", "2", "3"]
    assert stacks.values.ravel().tolist()[:4] == [51, 52, 53, 54]


def test_a_card_is_its_job_s_and_one_of_two_jobs_is_nobody_s(tmp_path: Path) -> None:
    build_board(tmp_path, "0::/")
    assert [entity.attribute("job_id") for entity in take(tmp_path)["amd.amd_names"].entities] == [
        "",
        "77",
        "",
        "77",
    ]
    assert pick_one([{"pod": "a"}, {"pod": "b"}], "pod") == ""
    assert pick_one([{"pod": "a"}, {"pod": "a"}, {}], "pod") == "a"


@pytest.mark.parametrize(
    ("line", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0", "123"),
        ("4:memory:/slurm/uid_1000/job_5/step_batch", "5"),
        ("0::/system.slice/job_9.service", None),
        ("0::/kubepods.slice/job_9/x", None),
    ],
)
def test_jobs_are_slurm_s(line: str, job: str | None) -> None:
    found = JOB.search(line)
    assert (found[1] if found else None) == job


def test_without_the_setting_nothing_is_added(tmp_path: Path) -> None:
    build_tree(tmp_path / "sys", 1)
    assert not any(name.endswith("amd_names") for name in take(tmp_path, amd_names=False))


def test_a_table_is_read_only_when_its_size_is_its_revision_s() -> None:
    table = make_table_1_7()
    assert parse_gpu_metrics(table)["utilization"] == 40
    assert parse_gpu_metrics(table[:-1]) == {}
    assert parse_gpu_metrics(struct.pack("<HBB", 2207, 1, 7) + table[4:]) == {}
    assert parse_gpu_metrics(struct.pack("<HBB", 2208, 1, 5) + table[4:]) == {}
    assert parse_gpu_metrics(b"") == {}
    assert "unit_busy.0.2" not in parse_gpu_metrics(table), "all bits set is no measurement"
    assert parse_gpu_metrics(make_table_1_3(energy=2**64 - 1)).get("energy") is None


@pytest.mark.parametrize("version", REVISIONS)
def test_every_field_lies_within_its_revision(version: tuple[int, int]) -> None:
    revision = REVISIONS[version]
    spans = sorted((offset, offset + struct.calcsize(form)) for _, form, offset, _ in revision.fields)
    assert spans[-1][1] <= revision.size
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert revision.partitions_at + 8 * revision.partition_size <= revision.size


@given(st.binary(max_size=4000), st.sampled_from(sorted(REVISIONS)))
def test_any_bytes_are_readings_or_none(data: bytes, version: tuple[int, int]) -> None:
    body = struct.pack("<HBB", REVISIONS[version].size, *version) + data
    assert all(math.isfinite(value) and value >= 0 for value in parse_gpu_metrics(body).values())


def test_partitions_of_amd_smi_are_the_use_of_a_split_card() -> None:
    usage = {
        "gfx_activity": "N/A",
        "gfx_busy_inst": {
            "xcp_0": [{"value": 30, "unit": "%"}, "N/A"],
            "xcp_1": [50],
            "xcp_x": [1],
            "xcp_2": "N/A",
        },
    }
    (gpu,) = parse_amd_smi(json.dumps([{"gpu": 0, "usage": usage}]))["gpus"]
    assert gpu["readings"] == {"unit_busy.0.0": 30, "unit_busy.1.0": 50, "utilization": 40}


def test_activity_as_a_whole_comes_first() -> None:
    usage = {"gfx_activity": {"value": 11, "unit": "%"}, "gfx_busy_inst": {"xcp_0": [99]}}
    (gpu,) = parse_amd_smi(json.dumps([{"gpu": 0, "usage": usage}]))["gpus"]
    assert gpu["readings"]["utilization"] == 11
