"""nvidia-smi where NVML cannot be loaded: a program of ours prints what a real one would."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from nodescope.base.block import Block
from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.gpu import vendor_tool
from nodescope.collect.sources.nvidia.nvidia_smi import parse_nvidia_smi
from nodescope.collect.sources.nvidia.source import NvidiaSource

GPU = """
  <gpu id="00000000:0{place}:00.0">
    <product_name>NVIDIA L4</product_name><uuid>GPU-{place}</uuid><serial>N/A</serial>
    <fan_speed>N/A</fan_speed><performance_state>P2</performance_state>
    <clocks_throttle_reasons>
      <clocks_throttle_reason_sw_power_cap>Active</clocks_throttle_reason_sw_power_cap>
    </clocks_throttle_reasons>
    <fb_memory_usage><total>23034 MiB</total><used>512 MiB</used><free>N/A</free></fb_memory_usage>
    <utilization><gpu_util>{busy} %</gpu_util><memory_util>[Unknown Error]</memory_util></utilization>
    <ecc_errors><volatile>
      <sram_correctable>2</sram_correctable><dram_correctable>3</dram_correctable>
      <sram_uncorrectable>1</sram_uncorrectable><dram_uncorrectable>N/A</dram_uncorrectable>
    </volatile></ecc_errors>
    <power_readings><power_draw>31.25 W</power_draw><enforced_power_limit>72.00 W</enforced_power_limit></power_readings>
    <processes>
      <process_info><pid>4242</pid><used_memory>100 MiB</used_memory></process_info>
      <process_info><pid>99</pid><used_memory>N/A</used_memory></process_info>
    </processes>
  </gpu>"""


def make_xml(*busy: int) -> str:
    gpus = "".join(GPU.format(place=place, busy=percent) for place, percent in enumerate(busy))
    return f'<?xml version="1.0" ?>\n<nvidia_smi_log><driver_version>550.1</driver_version>{gpus}</nvidia_smi_log>'


class Tool:
    """An nvidia-smi in PATH that prints a file."""

    def __init__(self, folder: Path) -> None:
        self.said = folder / "said"
        self.program = folder / "nvidia-smi"
        self.program.write_text(f'#!/bin/sh\n[ "$*" = "-q -x" ] && exec cat {self.said}\nexit 2\n')
        self.program.chmod(0o755)

    def say(self, text: str) -> None:
        self.said.write_text(text)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Tool(folder)


def open_source(folder: Path, **settings: Any) -> NvidiaSource:
    root = NodeRoot(folder)
    return NvidiaSource(
        Context(root, Descriptors(100), Settings(**settings), ContainerNames(root), LiveContainers()),
        str(folder / "no-such-library.so"),
    )


def take(source: NvidiaSource) -> dict[str, Block]:
    answer = json.loads(json.dumps(source.read()))
    return {block.table.name: block for block in source.parse(answer, 1)}


def cell(block: Block, row: int, column: str) -> float:
    return float(block.values[row, block.table.columns[f"gpu.{column}"]])


def test_without_nvml_the_tool_is_asked_at_its_own_pace(tmp_path: Path, tool: Tool) -> None:
    tool.say(make_xml(87, 12))
    source = open_source(tmp_path)
    assert (source.pace_seconds, source.deadline_seconds) == (30, 30)
    blocks = take(source)
    gpus = blocks["nvidia"]
    expected = {"up": 1, "utilization": 87, "memory_total": 23034 * 2**20, "power": 31.25, "power_limit": 72}
    expected |= {
        "ecc.corrected": 5,
        "performance_state": 2,
        "throttled.software_power_cap": 1,
        "processes": 2,
    }
    assert {key: cell(gpus, 0, key) for key in expected} == expected
    assert cell(gpus, 1, "utilization") == 12
    for silent in ("fan", "memory_busy", "memory_free", "ecc.uncorrected", "energy", "mig"):
        assert math.isnan(cell(gpus, 0, silent)), silent
    assert cell(blocks["nvidia.process"], 1, "process.memory") == 100 * 2**20
    assert math.isnan(cell(blocks["nvidia.process"], 0, "process.memory"))
    assert gpus.entities[1].attribute("pci_bus_id") == "00000000:01:00.0"
    assert "by nvidia-smi" in source.note


def test_a_gpu_that_the_tool_no_longer_lists_is_lost(tmp_path: Path, tool: Tool) -> None:
    tool.say(make_xml(87, 12))
    source = open_source(tmp_path, gpu_interval_seconds=5)
    assert source.pace_seconds == 5
    take(source)
    tool.say(make_xml(87))
    gpus = take(source)["nvidia"]
    assert [cell(gpus, row, "up") for row in range(2)] == [1, 0]
    assert math.isnan(cell(gpus, 1, "utilization"))
    assert "GPU 1: no longer listed" in source.note


@pytest.mark.parametrize(
    ("said", "situation", "reason"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            SourceAbsent,
            "not loaded",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch\n", SourceFailed, "different versions"),
        ("Failed to initialize NVML: Unknown Error\n", SourceFailed, "could not be initialised"),
        ("No devices were found\n", SourceFailed, "shows no GPU"),
        ("Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.\n", SourceFailed, "lost"),
        ("", SourceFailed, "no output"),
        (make_xml(87)[:300], SourceFailed, "breaks off"),
        (make_xml(), SourceFailed, "no GPU"),
        ("hello", SourceFailed, "neither XML"),
    ],
)
def test_what_is_said_instead_of_readings_is_the_reason(
    tmp_path: Path, tool: Tool, said: str, situation: type[Exception], reason: str
) -> None:
    tool.say(said)
    with pytest.raises(situation, match=reason):
        open_source(tmp_path).read()


def test_it_is_not_run_when_told_not_to(tmp_path: Path, tool: Tool) -> None:
    tool.say(make_xml(87))
    with pytest.raises(SourceAbsent, match="NVIDIA_VISIBLE_DEVICES"):
        open_source(tmp_path, nvidia_smi="never")


def test_a_tool_that_does_not_end_is_ended(
    tmp_path: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor_tool, "ANSWER_SECONDS", 0.2)
    tool.program.write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(SourceFailed, match="no answer within"):
        open_source(tmp_path).read()


def test_a_lost_gpu_is_up_0_beside_a_good_one() -> None:
    xml = make_xml(5, 7).replace(
        "<product_name>NVIDIA L4</product_name><uuid>GPU-1",
        "<product_name>GPU is lost</product_name><uuid>GPU-1",
    )
    good, lost = parse_nvidia_smi(xml)["gpus"]
    assert good["readings"]["utilization"] == 5
    assert lost["readings"] == {"up": 0}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("=====NVSMI LOG=====\nGPU 00000000:07:00.0\n", "long text"),
        ("+-----+\n| NVIDIA-SMI 550.1   Driver Version: 550.1 |\n", "table for people"),
        ("index, power.draw [W], memory.used [MiB]\n0, 3 W, 7 MiB\n", "CSV"),
    ],
)
def test_a_form_that_is_never_asked_for_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_nvidia_smi(text)


def test_a_unit_that_is_not_known_is_no_value() -> None:
    (gpu,) = parse_nvidia_smi(make_xml(5).replace("31.25 W", "3 furlongs"))["gpus"]
    assert "power" not in gpu["readings"]
    assert gpu["readings"]["memory_used"] == 512 * 2**20
