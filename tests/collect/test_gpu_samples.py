"""What real tools printed on other people's hardware: the right values, or a named reason."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from nodescope.base.errors import ParseError
from nodescope.collect.amd_smi import parse_amd_smi
from nodescope.collect.amd_sysfs import read_cards
from nodescope.collect.rocm_smi import parse_rocm_smi
from nodescope.collect.roots import NodeRoot

PARSERS = {"rocm-smi": parse_rocm_smi, "amd-smi": parse_amd_smi}


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


@pytest.mark.parametrize("tool", PARSERS)
def test_every_sample_is_read_or_refused_by_name(samples: Path, tool: str) -> None:
    """No other exception, and a reason that says more than "invalid"."""
    outputs = [path for path in (samples / tool).rglob("*") if path.suffix in (".json", ".txt", ".stdout")]
    assert outputs
    for path in outputs:
        reason = ""
        try:
            answer = read_sample(path, tool)
        except ParseError as error:
            answer, reason = {"gpus": []}, str(error)
        assert answer["gpus"] or answer.get("processes") or len(reason) > len(tool) + 10, path


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
        (
            "rocm-smi/thamada_mi300x_x4_out_a.txt",
            {"temperature_junction": 35, "power": 133, "power_limit": 750},
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
        (
            "rocm-smi/fakesysfs-real-cli/rocm-6.2.2/showuse_csv.stdout",
            {"utilization": 37, "memory_used": 6782976},
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
        ("amd-smi/libmissing-real/metric_json.stdout", "libamd_smi"),
        ("amd-smi/fakesysfs-real-cli/nodriver_metric_json.stdout", "driver is not loaded"),
    ],
)
def test_known_failures_have_known_reasons(samples: Path, sample: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        read_sample(samples / sample, sample.split("/", maxsplit=1)[0])


def test_names_with_commas_do_not_shift_the_columns(samples: Path) -> None:
    answer = read_sample(
        samples / "rocm-smi/fakesysfs-real-cli/rocm-6.2.2/showpids_namespaces_json.stdout", "rocm-smi"
    )
    (process,) = answer["processes"]
    assert (process["name"], process["memory"]) == ("vllm, worker, 1", 2147483648)
    assert "cu_occupancy" not in process, "unknown is not zero"


def test_no_number_of_a_sample_is_made_up(samples: Path) -> None:
    """Every reading of a JSON sample of rocm-smi stands in its text, up to the unit."""
    for path in (samples / "rocm-smi").glob("*.json"):
        numbers = {float(word) for word in re.findall(r"\d+(?:\.\d+)?", path.read_text())}
        for gpu in parse_rocm_smi(path.read_text())["gpus"]:
            for value in gpu["readings"].values():
                assert {value, value / 1e6, value * 1e6} & numbers, (path.name, value)


def test_real_cards_are_read_from_their_dumps(samples: Path) -> None:
    """A Vega 56 and an integrated one, as others captured their /sys."""
    (vega,) = read_cards(NodeRoot(samples / "fakesysfs/procfs-amdgpu-real"))
    assert (vega["readings"]["utilization"], vega["readings"]["memory_used"]) == (4, 1490378752)
    assert vega["pci_bus_id"] == "0000:09:00.0"
    (small,) = read_cards(NodeRoot(samples / "fakesysfs/glances/amd"))
    assert (small["readings"]["utilization"], small["readings"]["temperature"]) == (10, 24)
    assert json.dumps(vega)
