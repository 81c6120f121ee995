"""What real tools printed on other people's hardware: the right values, or a named reason."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.samples import list_samples

from nodescope.base.errors import ParseError
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.amd.amd_smi import parse_amd_smi
from nodescope.collect.sources.amd.rocm_smi import parse_rocm_smi
from nodescope.collect.sources.amd.sysfs import read_cards
from nodescope.collect.sources.gpu.metrics import DCGM_METRICS, GpuFamily
from nodescope.collect.sources.nvidia.nvidia_smi import parse_nvidia_smi

PARSERS = {
    "rocm-smi": parse_rocm_smi,
    "amd-smi": parse_amd_smi,
    "nvidia-smi": parse_nvidia_smi,
    "dcgm": parse_nvidia_smi,
}
# What a tool printed; the rest of a folder tells how it ended (.rc, .stderr) or is about the samples.
OUTPUTS = (".json", ".txt", ".stdout", ".xml", ".prom", ".metrics")
BESIDE = (".rc", ".stderr")
MIB = 2**20


@pytest.fixture
def samples() -> Path:
    where = os.environ.get("NODESCOPE_SAMPLES")
    if not where:
        pytest.skip("NODESCOPE_SAMPLES is not set: samples of other people's hardware are not at hand")
    folder = Path(where) / "gpu"
    assert folder.is_dir(), f"NODESCOPE_SAMPLES is set, but {folder} is missing"
    return folder


def read_sample(path: Path, tool: str) -> dict[str, Any]:
    errors = path.with_suffix(".stderr")
    stderr = errors.read_text() if path.suffix == ".stdout" and errors.exists() else ""
    return PARSERS[tool](path.read_text(), stderr)


def list_outputs() -> list[str]:
    """Every file under the samples' folders that is not known to be something else."""
    return [
        path.as_posix().split("/gpu/")[-1]
        for tool in PARSERS
        for path in list_samples(f"gpu/{tool}/**/*")
        if path.is_file() and path.suffix not in BESIDE
    ]


@pytest.mark.parametrize("sample", list_outputs())
def test_every_sample_is_read_or_refused_by_name(samples: Path, sample: str) -> None:
    """No other exception, and a reason that says more than "invalid"."""
    tool = sample.split("/", maxsplit=1)[0]
    assert Path(sample).suffix in OUTPUTS, "a kind of file that no reader was told of"
    reason = ""
    try:
        answer = read_sample(samples / sample, tool)
    except ParseError as error:
        answer, reason = {"gpus": []}, str(error)
    assert answer["gpus"] or len(reason) > len(tool) + 10


def test_no_folder_of_samples_is_forgotten(samples: Path) -> None:
    """Folders that are programs or trees, not outputs, have tests of their own."""
    assert {path.name for path in samples.iterdir() if path.is_dir()} == {
        *PARSERS,
        "fakesysfs",
        "fake-nvml-poc",
    }


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("rocm-smi/beszel_rembrandt680m_rocm6.json", {"temperature": 49, "power": 28.159, "utilization": 0}),
        (
            "rocm-smi/marimo9237_rx7900xt_rocm6plus.json",
            {"memory_total": 21458059264, "memory_used": 27856896},
        ),
        (
            "rocm-smi/telegraf_rx6700xt_rocm430.json",
            {"power": 6, "temperature_memory": 46, "clock.memory": 96e6},
        ),
        (
            "rocm-smi/telegraf_rx6700xt_rocm612.json",
            {"memory_busy": 0, "memory_used": 1572745216, "power": 6},
        ),
        ("rocm-smi/telegraf_vega-10-XT.json", {"fan": 13, "fan_rpm": 682, "temperature_memory": 92}),
        (
            "rocm-smi/wandb_mi250_rocm5.json",
            {"utilization": 10, "memory_busy": 20, "power": 89, "power_limit": 560},
        ),
        ("rocm-smi/lowpower_prefix_json_merged_stderr_composed.txt", {"utilization": 37, "power": 39}),
        (
            "rocm-smi/fakesysfs-real-cli/deb-5.2.3/multi_json.stdout",
            {"utilization": 37, "memory_busy": 12, "power": 39},
        ),
        (
            "rocm-smi/fakesysfs-real-cli/rocm-6.2.2/multi_json.stdout",
            {"utilization": 37, "memory_busy": 12, "power": 39},
        ),
        ("amd-smi/fakesysfs-real-cli/metric_json.stdout", {"temperature": 31, "memory_total": 34342961152}),
        ("amd-smi/metric_power_rocm6.1.0_changelog.json", {"power": 10}),
        ("amd-smi/metric_usage_rocm6_w7700_beszel737.json", {"utilization": 42, "memory_busy": 1}),
        ("amd-smi/malformed_groups_warning_before_json.txt", {"utilization": 5}),
    ],
)
def test_known_samples_have_known_values(samples: Path, sample: str, expected: dict[str, float]) -> None:
    readings = read_sample(samples / sample, sample.split("/", maxsplit=1)[0])["gpus"][0]["readings"]
    assert {key: readings.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ("rocm-smi/nogpu-real/rocm-smi_5.2.3_nodriver_showuse_json.stdout", "driver is not loaded"),
        ("rocm-smi/fakesysfs-real-cli/rocm-6.2.2/nokfd_json.stdout", "no KFD"),
        ("rocm-smi/fakesysfs-real-cli/rocm-6.2.2/missing_busy_json.stdout", "nothing to report"),
        ("rocm-smi/fakesysfs-real-cli/rocm-6.2.2-libmissing/multi_json.stdout", "librocm_smi64"),
        ("rocm-smi/truncated_json_composed.txt", "breaks off"),
        ("rocm-smi/thamada_mi300x_x4_out.txt", "concise table"),
        ("rocm-smi/thamada_mi300x_x4_out_a.txt", "its text form"),
        ("rocm-smi/fakesysfs-real-cli/rocm-6.2.2/showuse_csv.stdout", "CSV"),
        ("amd-smi/libmissing-real/metric_json.stdout", "libamd_smi"),
        ("amd-smi/fakesysfs-real-cli/nodriver_metric_json.stdout", "driver is not loaded"),
    ],
)
def test_known_failures_have_known_reasons(samples: Path, sample: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        read_sample(samples / sample, sample.split("/", maxsplit=1)[0])


AMD_OUTPUTS = [
    sample
    for sample in list_outputs()
    if sample.startswith(("rocm-smi/", "amd-smi/")) and sample.endswith((".json", ".stdout", ".txt"))
]


@pytest.mark.parametrize("sample", AMD_OUTPUTS)
def test_no_number_of_a_sample_is_made_up(samples: Path, sample: str) -> None:
    """Every reading stands in the text, up to the unit; a sum or a share would not."""
    text = (samples / sample).read_text()
    numbers = {float(word) for word in re.findall(r"\d+(?:\.\d+)?", text)}
    try:
        gpus = read_sample(samples / sample, sample.split("/", maxsplit=1)[0])["gpus"]
    except ParseError:
        return
    for gpu in gpus:
        for key, value in gpu["readings"].items():
            assert {value, value / 1e6, value * 1e6, value / MIB, value / 1000} & numbers, (key, value)


@pytest.mark.parametrize("sample", [sample for sample in AMD_OUTPUTS if sample.startswith("rocm-smi/")])
def test_what_a_card_says_of_itself_is_not_overlooked(samples: Path, sample: str) -> None:
    """The keys that every generation of rocm-smi has kept, cut out card by card."""
    text = (samples / sample).read_text()
    cards = re.findall(r'"card(\d+)": \{(.*?)\}', text, re.DOTALL)
    try:
        gpus = {gpu["index"]: gpu["readings"] for gpu in read_sample(samples / sample, "rocm-smi")["gpus"]}
    except ParseError:
        gpus = {}
    for number, card in cards:
        expected = {
            key: value
            for key, pattern in (
                ("utilization", r'"GPU use \(%\)": "(\d+)"'),
                ("temperature", r'"Temperature \(Sensor edge\) \(C\)": "([\d.]+)"'),
                ("memory_used", r'"VRAM Total Used Memory \(B\)": "(\d+)"'),
                ("memory_total", r'"VRAM Total Memory \(B\)": "(\d+)"'),
                ("power", r'"(?:Average|Current Socket) Graphics Package Power \(W\)": "([\d.]+)"'),
            )
            if (value := cut(card, pattern)) is not None
        }
        if expected:
            check(gpus[int(number)], dict(expected), (sample, number))


def test_real_cards_are_read_from_their_dumps(samples: Path) -> None:
    """A Vega 56 and an integrated one, as others captured their /sys."""
    (vega,) = read_cards(NodeRoot(samples / "fakesysfs/procfs-amdgpu-real"))
    assert (vega["readings"]["utilization"], vega["readings"]["memory_used"]) == (4, 1490378752)
    assert vega["pci_bus_id"] == "0000:09:00.0"
    (small,) = read_cards(NodeRoot(samples / "fakesysfs/glances/amd"))
    assert (small["readings"]["utilization"], small["readings"]["temperature"]) == (10, 24)
    assert json.dumps(vega)


# -- nvidia-smi: expectations are cut out of the text by expressions, not by the reader -------------


def cut(text: str, pattern: str, times: float = 1) -> float | None:
    """The first number that an expression finds; None where it says N/A or nothing."""
    match = re.search(pattern, text, re.DOTALL)
    number = re.match(r"\s*(-?\d+(?:\.\d+)?)", match[1]) if match else None
    return float(number[1]) * times if number else None


def check(readings: dict[str, float], expected: dict[str, float | None], where: object) -> None:
    assert {key: readings.get(key) for key in expected} == expected, where


@pytest.mark.parametrize("sample", [path.name for path in list_samples("gpu/nvidia-smi/*.xml")])
def test_xml_of_every_schema_has_the_values_that_stand_in_it(samples: Path, sample: str) -> None:
    text = (samples / "nvidia-smi" / sample).read_text()
    (gpu,) = parse_nvidia_smi(text)["gpus"]
    # The parts have memory of their own; the GPU's stands outside of them.
    own = re.sub(r"<mig_devices>.*?</mig_devices>", "", text, flags=re.DOTALL)
    memory = r"<fb_memory_usage>.*?<{}>(.*?)</.*</fb_memory_usage>"
    expected = {
        "temperature": cut(own, r"<gpu_temp>(.*?)</"),
        "utilization": cut(own, r"<gpu_util>(.*?)</"),
        "memory_busy": cut(own, r"<memory_util>(.*?)</"),
        "fan": cut(own, r"<fan_speed>(.*?)</"),
        "clock.sm": cut(own, r"<clocks>.*?<sm_clock>(.*?)</", 1e6),
        "clock.memory": cut(own, r"<clocks>.*?<mem_clock>(.*?)</", 1e6),
        "pcie_generation": cut(own, r"<current_link_gen>(.*?)</"),
        "pcie_width": cut(own, r"<current_link_width>(.*?)</"),
        "pcie_transmit_rate": cut(own, r"<tx_util>(.*?)</", 1000),
        "performance_state": cut(own, r"<performance_state>P(.*?)</"),
        **{f"memory_{part}": cut(own, memory.format(part), MIB) for part in ("total", "used", "free")},
    }
    check(gpu["readings"], expected, sample)
    drawn = [
        cut(own, rf"power_readings>.*?<{name}>(.*?)</")
        for name in ("power_draw", "average_power_draw", "instant_power_draw")
    ]
    assert gpu["readings"].get("power") == next((watts for watts in drawn if watts is not None), None)
    assert gpu["uuid"] == re.search(r"<uuid>(.*?)</", own)[1]  # type: ignore[index]
    pids = sorted(map(int, re.findall(r"<pid>(\d+)</pid>", text.split("<accounted_processes>")[0])))
    assert [process["pid"] for process in gpu.get("processes", [])] == pids
    assert len(gpu.get("parts", [])) == text.count("<mig_device>")


def split_capture(text: str) -> dict[str, str]:
    """A capture's sections: what was run, and what it printed."""
    parts = re.split(r"^#{80}\n# (.*)\n(?:# \$ .*\n)?#{80}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize(
    "sample", [path.name for path in list_samples("gpu/nvidia-smi/*__*.txt") if "expected" not in path.name]
)
def test_every_section_of_a_capture_is_refused_by_name(samples: Path, sample: str) -> None:
    """Long text, CSV, tables, help, lists, topology, monitors: a reason each, and the whole has one, too."""
    text = (samples / "nvidia-smi" / sample).read_text()
    with pytest.raises(ParseError, match="several answers in one text"):
        parse_nvidia_smi(text)
    for title, section in split_capture(text).items():
        with pytest.raises(ParseError, match=r"^nvidia-smi: ") as refusal:
            parse_nvidia_smi(section)
        assert "neither XML" not in str(refusal.value), title


def test_mig_devices_of_a_capture_have_their_memory(samples: Path) -> None:
    """Hand-read from a GPU that was split."""
    text = (samples / "nvidia-smi/netdata_a100-sxm4-mig.xml").read_text()
    (gpu,) = parse_nvidia_smi(text)["gpus"]
    assert [part["readings"]["memory_used"] // MIB for part in gpu["parts"]] == [19, 19]
    assert gpu["parts"][0]["readings"]["multiprocessors"] == 42


def test_our_dcgm_names_are_dcgms(samples: Path) -> None:
    """Each alias is a field of DCGM, and carries labels that its exporter has."""
    fields = set((samples / "dcgm/netdata_all_fields_nonlabel.txt").read_text().split())
    assert {metric.published for metric in DCGM_METRICS} <= fields
    scrape = (samples / "dcgm/datadog_metrics.txt").read_text()
    labels = set(re.findall(r'(\w+)="', scrape)) | {"pci_bus_id"}
    block = GpuFamily("nvidia").blocks({"gpus": [{"index": 0, "readings": {}}]}, 1, dcgm=True)[-1]
    assert {name for name, _ in block.entities[0].labels} <= labels
