"""The AMD source on synthetic cards, and on what the vendor's tools print."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.nodes import Node
from tests.fakes.amd_tree import add_process, build_card, build_kfd, build_tree, device_of, write

from nodescope.base.block import Block
from nodescope.base.errors import ParseError, SourceAbsent
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.amd.amd_smi import parse_amd_smi
from nodescope.collect.sources.amd.rocm_smi import parse_rocm_smi
from nodescope.collect.sources.amd.source import AmdSource, read_driver
from nodescope.collect.sources.amd.tools import fill_in, is_wanting, make_cards, read_tools
from nodescope.collect.sources.gpu.vendor_tool import run_tool


def open_source(folder: Path, faults: dict[str, int] | None = None, **settings: Any) -> AmdSource:
    root = NodeRoot(folder, faults)
    return AmdSource(
        Context(
            root,
            Descriptors(100),
            Settings(**{"amd_tools": "never", **settings}),
            ContainerNames(root),
            LiveContainers(),
        )
    )


def take(source: AmdSource) -> dict[str, Block]:
    answer = json.loads(json.dumps(source.read()))
    return {block.table.name: block for block in source.parse(answer, 1)}


def cell(block: Block, row: int, column: str) -> float:
    return float(block.values[row, block.table.columns[f"gpu.{column}"]])


def cells(block: Block, row: int) -> dict[str, float]:
    names = [metric.name.removeprefix("gpu.") for metric in block.table.metrics]
    return {name: float(value) for name, value in zip(names, block.values[row]) if not math.isnan(value)}


# -- the kernel's files ---------------------------------------------------------


def test_a_card_is_read_from_its_files_in_base_units(tmp_path: Path) -> None:
    build_tree(tmp_path / "sys")
    gpus = take(open_source(tmp_path))["amd"]
    expected = {
        "up": 1,
        "asleep": 0,
        "utilization": 37,
        "memory_busy": 12,
        "memory_used": 6782976,
        "memory_total": 34342961152,
        "gtt_total": 135048462336,
        "temperature": 31,
        "temperature_junction": 34,
        "temperature_memory": 30,
        "power": 39,
        "power_limit": 290,
        "clock.graphics": 731e6,
        "clock.memory": 1200e6,
        "fan_rpm": 1200,
        "fan": 20,
        "pcie_generation": 4,
        "pcie_width": 16,
        "processes": 0,
    }
    assert {key: cell(gpus, 0, key) for key in expected} == expected
    entity = gpus.entities[0]
    assert dict(entity.labels) == {"gpu_index": "0", "uuid": "79ccd55167a21000", "vendor": "amd"}
    assert entity.attribute("pci_bus_id") == "0000:0a:00.0"
    assert entity.attribute("driver_version") == "6.8.5"


def test_cards_are_numbered_by_their_place_on_the_bus(tmp_path: Path) -> None:
    """card10 is not lost, connectors and other vendors' cards are not cards of ours."""
    sys = tmp_path / "sys"
    build_card(sys, 1, {"gpu_busy_percent": "11"}, drm=0)
    build_card(sys, 0, {"gpu_busy_percent": "10"}, drm=10)
    build_card(sys, 2, {"vendor": "0x10de"}, drm=2)
    (sys / "class/drm/card0-DP-1").mkdir()
    gpus = take(open_source(tmp_path))["amd"]
    assert [cell(gpus, row, "utilization") for row in range(2)] == [10, 11]
    assert [entity.attribute("card") for entity in gpus.entities] == ["card10", "card0"]


def test_a_sensor_that_is_not_there_leaves_no_value(tmp_path: Path) -> None:
    """Absent, empty, "N/A" and 65535 are no readings; the others stay."""
    changes = {
        "gpu_busy_percent": None,
        "mem_busy_percent": "65535",
        "unique_id": None,
        "hwmon/hwmonN/temp1_input": "",
        "hwmon/hwmonN/power1_average": "N/A",
    }
    build_card(tmp_path / "sys", 0, changes)
    gpus = take(open_source(tmp_path))["amd"]
    measured = cells(gpus, 0)
    assert not {"utilization", "memory_busy", "power"} & set(measured)
    # Without its edge sensor the hottest spot stands for the GPU.
    assert measured["temperature"] == 34
    assert "processes" not in measured, "no KFD: nobody knows"
    assert gpus.entities[0].ids == ("pci-0000:0a:00.0",)


def test_present_power_serves_where_there_is_no_mean(tmp_path: Path) -> None:
    power = {"hwmon/hwmonN/power1_average": None, "hwmon/hwmonN/power1_input": "133000000"}
    build_card(tmp_path / "sys", 0, power)
    assert cell(take(open_source(tmp_path))["amd"], 0, "power") == 133


@pytest.mark.parametrize("how", ["suspended", "EPERM"])
def test_a_sleeping_card_is_up_asleep_and_silent(tmp_path: Path, how: str) -> None:
    """It is not woken, and nothing about it is zero or stale."""
    build_tree(tmp_path / "sys", 2)
    faults = {}
    if how == "suspended":
        write(device_of(tmp_path / "sys", 1) / "power/runtime_status", "suspended")
    else:
        faults = {"sys/class/drm/card1/device/gpu_busy_percent": 1}
    source = open_source(tmp_path, faults)
    gpus = take(source)["amd"]
    assert cells(gpus, 1) == {"up": 1, "asleep": 1, "processes": 0}
    assert cell(gpus, 0, "utilization") == 37
    assert "GPU 1 is asleep" in source.note


@pytest.mark.parametrize("number", [22, 61, 95, 19, 5])
def test_an_errno_on_one_file_costs_one_value(tmp_path: Path, number: int) -> None:
    """EINVAL, ENODATA, EOPNOTSUPP, ENODEV, EIO."""
    build_tree(tmp_path / "sys")
    gpus = take(open_source(tmp_path, {"sys/class/drm/card0/device/gpu_busy_percent": number}))["amd"]
    assert math.isnan(cell(gpus, 0, "utilization"))
    assert cell(gpus, 0, "power") == 39


def test_a_card_that_is_gone_is_told_and_leaves_the_others_their_numbers(tmp_path: Path) -> None:
    build_tree(tmp_path / "sys", 3)
    source = open_source(tmp_path)
    take(source)
    (tmp_path / "sys/class/drm/card0").unlink()
    gpus = take(source)["amd"]
    ups = {entity.attribute("gpu_index"): cell(gpus, row, "up") for row, entity in enumerate(gpus.entities)}
    assert ups == {"0": 0, "1": 1, "2": 1}


def test_errors_are_summed_over_the_blocks_that_count_them(tmp_path: Path) -> None:
    device = build_card(tmp_path / "sys", 0)
    write(device / "ras/umc_err_count", "ue: 1\nce: 20")
    write(device / "ras/gfx_err_count", "ue: 0\nce: 3")
    measured = cells(take(open_source(tmp_path))["amd"], 0)
    assert (measured["ecc.uncorrected"], measured["ecc.corrected"]) == (1, 23)


def test_two_dies_with_one_id_are_two_gpus(tmp_path: Path) -> None:
    for number in range(2):
        build_card(tmp_path / "sys", number, {"unique_id": "719d230578348e8c"})
    gpus = take(open_source(tmp_path))["amd"]
    assert len({entity.ids for entity in gpus.entities}) == 2


def test_processes_come_from_kfd_for_the_card_they_use(tmp_path: Path) -> None:
    build_tree(tmp_path / "sys", 2)
    add_process(tmp_path / "sys", 4242, 1, 2**30, cards=2)
    write(tmp_path / "proc/4242/stat", f"4242 (python3) S {' '.join(['1'] * 18)} 777 0")
    uid = "0123abcd-1111-2222-3333-444455556666"
    write(tmp_path / "proc/4242/cgroup", f"0::/kubepods/besteffort/pod{uid}/{'cd' * 32}")
    (tmp_path / f"var/log/pods/research_infer-1_{uid}/main").mkdir(parents=True)
    source = open_source(tmp_path)
    assert source._context is not None
    source._context.names.refresh()
    blocks = take(source)
    assert [cell(blocks["amd"], row, "processes") for row in range(2)] == [0, 1]
    (entity,) = blocks["amd.process"].entities
    assert entity.attribute("gpu_index") == "1"
    assert (entity.attribute("pod"), entity.attribute("namespace")) == ("infer-1", "research")
    assert entity.ids[-2:] == ("4242", "777")
    assert cell(blocks["amd.process"], 0, "process.memory") == 2**30
    assert cell(blocks["amd.process"], 0, "process.sdma") == 5


def test_a_machine_without_a_card_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="no AMD GPU"):
        open_source(tmp_path)


# -- the tools ------------------------------------------------------------------


def test_secondary_dies_and_other_words_for_none_are_not_numbers() -> None:
    text = json.dumps(
        {"card0": {"Average Graphics Package Power (W)": "N/A (Secondary die)", "GPU use (%)": "None"}}
    )
    assert parse_rocm_smi(text)["gpus"][0]["readings"] == {}


def test_the_driver_that_the_tool_told_comes_before_the_kernel_s_release(tmp_path: Path) -> None:
    """Where the module carries no version; an amdgpu of its own does, and that comes first."""
    text = json.dumps({"card0": {"GPU use (%)": "37"}, "system": {"Driver version": "6.3.6"}})
    assert parse_rocm_smi(text)["driver"] == "6.3.6"
    node = Node(tmp_path)
    node.write("proc/sys/kernel/osrelease", "6.8.0-1015\n")
    assert read_driver(node.context(), "6.3.6") == "6.3.6"
    assert read_driver(node.context()) == "6.8.0-1015"
    node.write("sys/module/amdgpu/version", "6.10.5\n")
    assert read_driver(node.context(), "6.3.6") == "6.10.5"


def test_both_names_of_power_and_of_memory_business_are_known() -> None:
    text = json.dumps(
        {
            "card0": {"Average Graphics Package Power (W)": "39.0", "GPU memory use (%)": "12"},
            "card1": {
                "Current Socket Graphics Package Power (W)": "133.0",
                "GPU Memory Allocated (VRAM%)": "99",
                "GPU Memory Read/Write Activity (%)": "3",
            },
            "card10": {"Current Socket Graphics Package Power (W)": "7"},
        }
    )
    readings = [gpu["readings"] for gpu in parse_rocm_smi(text)["gpus"]]
    assert readings[0] == {"power": 39, "memory_busy": 12}
    assert readings[1] == {"power": 133, "memory_busy": 3, "memory_used_percent": 99}
    assert readings[2] == {"power": 7}


@pytest.mark.parametrize(
    "text",
    [
        'WARNING: {low} power\n{"card0": {"GPU use (%)": "37"}}',
        '\x1b[33mnote\x1b[0m {"card0": {"GPU use (%)": "37"}}\ntrailing words',
        '\n\n{"card0": {"GPU use (%)": 37}, "system": {}}',
    ],
)
def test_what_stands_around_the_json_does_no_harm(text: str) -> None:
    assert parse_rocm_smi(text)["gpus"][0]["readings"] == {"utilization": 37}


def test_amd_smi_of_every_generation_gives_the_same() -> None:
    """Bare numbers, values with units, a list, gpu_data, several documents, a banner."""
    bare = [
        {
            "gpu": 0,
            "usage": {"gfx_activity": 42},
            "power": {"socket_power": 10},
            "mem_usage": {"used_vram": 6},
        }
    ]
    with_units = [
        {
            "gpu": 0,
            "usage": {"gfx_activity": {"value": 42, "unit": "%"}, "umc_activity": "N/A"},
            "power": {"socket_power": {"value": 10, "unit": "W"}},
            "mem_usage": {"used_vram": {"value": 6, "unit": "MB"}},
            "temperature": "N/A",
        }
    ]
    expected = {"utilization": 42, "power": 10, "memory_used": 6 * 2**20}
    texts = [
        json.dumps(bare),
        json.dumps(with_units),
        json.dumps({"gpu_data": with_units}),
        "'CTRL' + 'C' to stop watching output:\n" + json.dumps(with_units, indent=4),
        "\n".join(
            json.dumps([{"gpu": 0, key: with_units[0][key]}]) for key in ("usage", "power", "mem_usage")
        ),
        "[WARN] a line of a library\n" + json.dumps(with_units),
    ]
    for text in texts:
        assert parse_amd_smi(text)["gpus"][0]["readings"] == expected, text


WORDS = ["gpu", "card0", "usage", "system", "PID1", "gfx_activity", "process_list", "gpu_data", "value"]
anything = st.recursive(
    st.none() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=10,
)


@given(st.text(max_size=300) | anything.map(json.dumps))
def test_any_text_is_a_reading_or_a_named_reason(text: str) -> None:
    """forall text: parse(text) returns, or raises ParseError; numbers are finite."""
    for parse in (parse_rocm_smi, parse_amd_smi):
        try:
            answer = parse(text)
        except ParseError:
            continue
        for gpu in answer["gpus"]:
            assert all(math.isfinite(value) for value in gpu["readings"].values())


def test_a_tool_fills_in_what_the_files_lack_and_nothing_else() -> None:
    cards: list[dict[str, Any]] = [
        {
            "index": 0,
            "pci_bus_id": "0000:0a:00.0",
            "name": "1002:738C",
            "readings": {"up": 1, "utilization": 5},
        },
        {"index": 1, "pci_bus_id": "0000:0b:00.0", "name": "", "readings": {"up": 1, "asleep": 1}},
    ]
    assert is_wanting(cards)
    answer = {
        "gpus": [
            {"index": 0, "pci_bus_id": "0000:0b:00.0", "name": "B", "readings": {"power": 2}},
            {
                "index": 1,
                "pci_bus_id": "0000:0a:00.0",
                "name": "A",
                "readings": {"power": 1, "utilization": 99},
            },
        ]
    }
    fill_in(cards, answer)
    assert cards[0]["readings"] == {"up": 1, "utilization": 5, "power": 1}
    assert cards[0]["name"] == "A"
    assert cards[1]["readings"] == {"up": 1, "asleep": 1}, "a sleeping card has no readings"


def test_the_second_tool_is_asked_when_the_first_knows_nothing() -> None:
    answers = {"amd-smi": '[{"gpu": 0, "usage": "N/A"}]', "rocm-smi": '{"card0": {"GPU use (%)": "37"}}'}
    found = read_tools(lambda command: (answers[command[0]], ""), lambda name: name)
    assert found is not None
    assert (found["tool"], found["reasons"]) == ("rocm-smi", ["amd-smi: every value is N/A"])
    assert make_cards(found)[0]["uuid"] == "amd-0"
    assert read_tools(find=lambda _: None) is None


def test_without_any_reading_every_tool_gives_its_reason() -> None:
    silent: Callable[[list[str]], tuple[str, str]] = lambda _: ("", "ERROR:root:Driver not initialized")  # noqa: E731
    with pytest.raises(ParseError, match=r"amd-smi: .*not loaded; rocm-smi: .*not loaded"):
        read_tools(silent, lambda name: name)


def test_a_wrong_exit_code_does_not_spoil_a_good_answer(tmp_path: Path) -> None:
    """rocm-smi 5.2.3 exits with 2 and is right."""
    tool = tmp_path / "rocm-smi"
    tool.write_text(
        '#!/bin/sh\necho "WARNING: low power" >&2\necho \'{"card0": {"GPU use (%)": "37"}}\'\nexit 2\n'
    )
    tool.chmod(0o755)
    assert parse_rocm_smi(*run_tool([str(tool)]))["gpus"][0]["readings"] == {"utilization": 37}


def test_cards_that_only_a_tool_sees_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/sys shows KFD but no card, as in some containers; the tool is then asked every 30 s."""
    build_kfd(tmp_path / "sys", 0)
    tool = tmp_path / "bin" / "rocm-smi"
    write(tool, '#!/bin/sh\necho \'{"card0": {"GPU use (%)": "37", "Unique ID": "0x79cc"}}\'')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    source = open_source(tmp_path, amd_tools="auto")
    gpus = take(source)["amd"]
    assert cell(gpus, 0, "utilization") == 37
    assert gpus.entities[0].ids == ("79cc",)
    assert source.pace_seconds == 30.0
