"""
rocm-smi's JSON, of every generation.

    {"card0": {"GPU use (%)": "37", "Average Graphics Package Power (W)": "39.0", "Unique ID": "0x79cc"},
     "system": {"Driver version": "6.8.5"}}

All values are text. Keys changed with ROCm 4.3, 5.0, 6.0, 6.1.1 and 6.1.2; a
card's number is its place on the bus. "GPU memory use (%)" is how busy the
memory was, not how full. What stands before the first brace (warnings, colours)
is not ours. The exit code says nothing: 5.2.3 exits with 2 and is right, and
exits with 0 without a driver. So the answer is judged by what can be read of it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from nodescope.base.errors import ParseError
from nodescope.base.text import clean_text

# What is asked for; every version since 4.0 knows these.
ARGUMENTS = (
    "--showuse",
    "--showmemuse",
    "--showtemp",
    "--showpower",
    "--showmaxpower",
    "--showclocks",
    "--showfan",
    "--showid",
    "--showuniqueid",
    "--showbus",
    "--showproductname",
    "--showmeminfo",
    "vram",
    "--json",
)
_CARD = re.compile(r"card(\d+)")
_NUMBER = re.compile(r"\(?(-?\d+(?:\.\d+)?)\s*(?:%|c|w|mhz|rpm|b|uj)?\)?", re.IGNORECASE)
_MHZ = re.compile(r"(\d+(?:\.\d+)?)\s*mhz", re.IGNORECASE)
_POWER = re.compile(r"(average|current)\b.*\bpower \(w\)")
_HBM = re.compile(r"temperature \(sensor hbm \d+\) \(c\)")
# Braces tried as the beginning of the answer; warnings have a few.
BRACES = 200
MISSING = ("", "n/a", "none", "unsupported", "unknown", "not supported", "inf", "nan")

# Key, in lower case and without its colon -> (ours, divided by).
KEYS = {
    "gpu use (%)": ("utilization", 1),
    "gpu memory use (%)": ("memory_busy", 1),
    "gpu memory read/write activity (%)": ("memory_busy", 1),
    "gpu memory allocated (vram%)": ("memory_used_percent", 1),
    "vram total memory (b)": ("memory_total", 1),
    "vram total used memory (b)": ("memory_used", 1),
    "vis_vram total memory (b)": ("visible_total", 1),
    "vis_vram total used memory (b)": ("visible_used", 1),
    "gtt total memory (b)": ("gtt_total", 1),
    "gtt total used memory (b)": ("gtt_used", 1),
    "temperature (sensor edge) (c)": ("temperature", 1),
    "temperature (sensor junction) (c)": ("temperature_junction", 1),
    "temperature (sensor memory) (c)": ("temperature_memory", 1),
    "max graphics package power (w)": ("power_limit", 1),
    "accumulated energy (uj)": ("energy", 1_000_000),
    "fan speed (%)": ("fan", 1),
    "fan rpm": ("fan_rpm", 1),
    "pcie replay count": ("pcie_replays", 1),
}
CLOCKS = {"sclk": "clock.graphics", "mclk": "clock.memory", "socclk": "clock.soc", "fclk": "clock.fabric"}
# The first that is given: (ours, keys).
FACTS = (
    ("pci_bus_id", ("pci bus",)),
    ("name", ("card series", "device name", "card model")),
    ("unique_id", ("unique id",)),
    ("serial", ("serial number",)),
    ("vbios_version", ("vbios version",)),
)


def parse_rocm_smi(stdout: str, stderr: str = "") -> dict[str, Any]:
    """{"gpus": [...], "driver": version}; ParseError with the reason when there is no reading."""
    text = stdout.strip()
    tables = find_json(text)
    if tables is None:
        raise ParseError(f"rocm-smi: {explain(stdout, stderr)}")
    numbered = [(int(match[1]), card) for key, card in tables.items() if (match := _CARD.fullmatch(key))]
    gpus = [{"index": index, **parse_card(card)} for index, card in sorted(numbered)]
    return {"gpus": gpus, "driver": clean_text(str(tables.get("system", {}).get("Driver version", "")))}


def is_answer(value: Any) -> bool:
    """A dict with at least one card; other JSON is not rocm-smi's."""
    if not isinstance(value, dict) or not all(isinstance(part, dict) for part in value.values()):
        return False
    return any(_CARD.fullmatch(key) for key in value)


def find_json(text: str) -> dict[str, dict[str, Any]] | None:
    """The first whole document that is an answer, whatever stands before it."""
    place = text.find("{")
    for _ in range(BRACES):
        if place < 0:
            return None
        try:
            value, _end = json.JSONDecoder().raw_decode(text, place)
        except (ValueError, RecursionError):
            value = None
        # A card inside an answer that broke off is no answer by itself.
        if is_answer(value):
            answer: dict[str, dict[str, Any]] = value
            return answer
        place = text.find("{", place + 1)
    return None


def parse_number(value: Any) -> float | None:
    """A number in text, maybe with its unit; None for every way of saying "none"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e300 else None
    word = str(value).strip()
    if word.lower() in MISSING or word.lower().startswith("n/a"):
        return None
    match = _NUMBER.fullmatch(word)
    return float(match[1]) if match and len(word) < 40 else None


def parse_card(card: Mapping[str, Any]) -> dict[str, Any]:
    keys = {str(key).strip().rstrip(":").strip().lower(): value for key, value in card.items()}
    readings: dict[str, float] = {}
    for key, (ours, divisor) in KEYS.items():
        number = parse_number(keys.get(key))
        if number is not None and number >= 0:
            readings[ours] = number / divisor
    add_power(readings, keys)
    add_clocks(readings, keys)
    add_temperatures(readings, keys)
    facts = {ours: first_fact(keys, names) for ours, names in FACTS}
    facts["pci_bus_id"] = facts["pci_bus_id"].lower()
    return {**facts, "readings": readings}


def add_power(readings: dict[str, float], keys: Mapping[str, Any]) -> None:
    """Average or current, package or socket, as the part has it; "N/A (Secondary die)" has none."""
    for key in sorted(keys):
        number = parse_number(keys[key]) if _POWER.fullmatch(key) else None
        if number is not None:
            readings["power"] = number


def add_clocks(readings: dict[str, float], keys: Mapping[str, Any]) -> None:
    for word, ours in CLOCKS.items():
        for key in (f"{word} clock speed", f"{word} clock level"):
            speed = _MHZ.search(str(keys.get(key, "")))
            if speed:
                readings[ours] = float(speed[1]) * 1e6
                break


def add_temperatures(readings: dict[str, float], keys: Mapping[str, Any]) -> None:
    """The hottest stack stands for the memory; without an edge sensor the junction stands for the GPU."""
    stacks = [
        number for key in keys if _HBM.fullmatch(key) and (number := parse_number(keys[key])) is not None
    ]
    if stacks and "temperature_memory" not in readings:
        readings["temperature_memory"] = max(stacks)
    if "temperature_junction" in readings:
        readings.setdefault("temperature", readings["temperature_junction"])


def first_fact(keys: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first that is given; a bare number such as 0x1002 only when no word is."""
    words = [clean_text(str(keys.get(name, "")).strip()) for name in names]
    given = [word for word in words if word.lower() not in MISSING and not word.lower().startswith("n/a")]
    return next((word for word in given if not word.startswith("0x")), given[0] if given else "")


# Words in what was printed -> what it means.
REASONS = (
    ("amdgpu not found in modules", "the amdgpu driver is not loaded"),
    ("driver not initialized", "the amdgpu driver is not loaded"),
    ("no json data to report", "it has nothing to report for these cards"),
    ("librocm_smi64", "its library librocm_smi64 is not installed"),
    ("unable to load the rocm_smi library", "its library librocm_smi64 is not installed"),
    ("libamd_smi", "its library libamd_smi is not installed"),
    ("required groups", "this user is not in the groups render and video"),
    ("permission denied", "permission denied"),
    ("rocm smi returned 8", "it could not be initialised: no KFD (/dev/kfd) here"),
    ("unable to detect any gpu", "it found no GPU"),
    ("concise info", "the concise table of its text form, which is for people; ask with --json"),
    ("kfd processes", "the process table of its text form, which is for people; ask with --json"),
    ("device,gpu use", "CSV; ask with --json"),
    ("low-power state", "every card is in a low-power state"),
    ("data is inaccessible", "every card is in a low-power state"),
)


def explain(stdout: str, stderr: str) -> str:
    """Why there is no reading, in words that name the remedy where there is one."""
    said = f"{stdout}\n{stderr}".lower()
    for words, meaning in REASONS:
        if words in said:
            return meaning
    if "{" in stdout or "[" in stdout:
        return "its JSON breaks off or holds no card"
    first = next((line.strip() for line in (*stderr.splitlines(), *stdout.splitlines()) if line.strip()), "")
    return f"no JSON in its answer: {clean_text(first, 120)}" if first else "it printed nothing"
