"""Debian's rocm-smi and the agent read the same synthetic /sys, in a mount namespace of their own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.real
TREE = Path(__file__).parents[1] / "fakes" / "amd_tree.py"
CARDS = 2
SCRIPT = """
set -e
mount -t tmpfs tmpfs /sys
{python} {tree} /sys {cards}
# It exits with 2 although all is well.
rocm-smi --showuse --showmemuse --showmeminfo vram --showtemp --showpower --showmaxpower --showclocks \
    --showuniqueid --showbus --json > {folder}/rocm.json 2> {folder}/rocm.err || true
rocm-smi --showpids --json > {folder}/pids.json 2>> {folder}/rocm.err || true
{python} -m nodescope sample --format prometheus > {folder}/agent.prom
"""


def refuse(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """A command that gives a mount namespace of one's own, and rocm-smi installed."""
    if shutil.which("rocm-smi") is None:
        if os.geteuid() == 0 and shutil.which("apt-get"):
            subprocess.run(["apt-get", "update", "-qq"], check=False, timeout=300)
            install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "rocm-smi"]
            subprocess.run(install, check=False, timeout=300, stdout=subprocess.DEVNULL)
        if shutil.which("rocm-smi") is None:
            refuse("no rocm-smi: sudo apt-get install rocm-smi")
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        probe = [*command, "mount", "-t", "tmpfs", "tmpfs", "/sys"]
        if (
            shutil.which("unshare")
            and subprocess.run(probe, capture_output=True, check=False).returncode == 0
        ):
            return command
    refuse("no mount namespaces here: run as root, or allow unprivileged user namespaces")
    raise AssertionError


def test_the_agent_agrees_with_rocm_smi(namespace: list[str], tmp_path: Path) -> None:
    script = SCRIPT.format(python=sys.executable, tree=TREE, cards=CARDS, folder=tmp_path)
    subprocess.run([*namespace, "bash", "-c", script], check=True, timeout=120)
    theirs = json.loads((tmp_path / "rocm.json").read_text())
    ours = {
        (sample.name, sample.labels.get("gpu_index", ""), sample.labels.get("clock", "")): sample
        for family in text_string_to_metric_families((tmp_path / "agent.prom").read_text())
        for sample in family.samples
        if sample.name.startswith("gpu_")
    }
    assert len(theirs) == CARDS
    for number in range(CARDS):
        card, index = theirs[f"card{number}"], str(number)
        expected = {
            ("gpu_utilization_percent", ""): card["GPU use (%)"],
            ("gpu_memory_busy_percent", ""): card["GPU memory use (%)"],
            ("gpu_memory_total_bytes", ""): card["VRAM Total Memory (B)"],
            ("gpu_memory_used_bytes", ""): card["VRAM Total Used Memory (B)"],
            ("gpu_temperature_celsius", ""): card["Temperature (Sensor edge) (C)"],
            ("gpu_junction_temperature_celsius", ""): card["Temperature (Sensor junction) (C)"],
            ("gpu_memory_temperature_celsius", ""): card["Temperature (Sensor memory) (C)"],
            ("gpu_power_draw_watts", ""): card["Average Graphics Package Power (W)"],
            ("gpu_power_limit_watts", ""): card["Max Graphics Package Power (W)"],
        }
        found = {key: ours[key[0], index, key[1]].value for key in expected}
        assert found == {key: float(value) for key, value in expected.items()}
        for clock, word in (("graphics", "sclk"), ("memory", "mclk"), ("soc", "socclk"), ("fabric", "fclk")):
            speed = float(card[f"{word} clock speed:"].strip("()").removesuffix("Mhz")) * 1e6
            assert ours["gpu_clock_hertz", index, clock].value == speed
        info = ours["gpu_info", index, ""].labels
        assert f"0x{info['uuid']}" == card["Unique ID"]
        assert info["pci_bus_id"] == card["PCI Bus"].lower()
    memory = json.loads((tmp_path / "pids.json").read_text())["system"]["PID4242"].rsplit(", ", 3)[1]
    process = ours["gpu_process_memory_bytes", "0", ""]
    assert (process.labels["pid"], process.value) == ("4242", float(memory))
