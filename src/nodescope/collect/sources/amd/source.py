"""
AMD GPUs: the kernel's own files first, the vendor's tools for what they lack.

Reads   /sys/class/drm/cardN/device/*, its hwmon, /sys/class/kfd; rocm-smi and amd-smi where they are needed
Needs   Linux with amdgpu; no ROCm, no privileges, no device files; the host's pid namespace to name processes
Docs    https://docs.kernel.org/gpu/amdgpu/thermal.html

    /sys/class/drm/card0/device/gpu_busy_percent               37
    /sys/class/drm/card0/device/mem_info_vram_used             6782976
    /sys/class/drm/card0/device/hwmon/hwmon3/power1_average    39000000

A card that sleeps is up, asleep and silent; it is not woken for a reading. A
card that was there and is gone stays with gpu_up 0.
"""

from typing import Any

from nodescope.base.block import Block
from nodescope.base.clock import Clock, SystemClock
from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.text import clean_text
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.amd.exporter_names import make_blocks
from nodescope.collect.sources.amd.sysfs import KFD, read_cards
from nodescope.collect.sources.amd.tools import fill_in, is_wanting, make_cards, read_tools
from nodescope.collect.sources.gpu.metrics import GpuFamily
from nodescope.collect.sources.gpu.owner import read_owner
from nodescope.collect.sources.gpu.vendor_tool import find_tool

NO_CARD = "no AMD GPU: no card with amdgpu in /sys/class/drm, and neither rocm-smi nor amd-smi has one"
# A tool starts an interpreter: asked this often unless settings say otherwise.
TOOL_SECONDS = 30.0
# Facts of a card that is gone.
KEPT = ("uuid", "index", "card", "pci_bus_id", "name", "serial", "vbios_version", "model")


class AmdSource(CallDefaults):
    """Reads every card each time, and asks a tool now and then."""

    name = "amd"
    # A tool may take its twenty seconds; the files take none.
    deadline_seconds = 30.0

    def __init__(self, context: Context, clock: Clock | None = None) -> None:
        self.pace_seconds = context.settings.gpu_interval_seconds or 1.0
        self.note = ""
        self._context = context
        self._clock = clock or SystemClock()
        self._family = GpuFamily(self.name)
        self._known: dict[str, dict[str, Any]] = {}
        self._tool: dict[str, Any] | None = None
        self._tool_reason = ""
        self._tool_mono_ns: int | None = None
        if not read_cards(context.root) and not self._may_ask():
            raise SourceAbsent(NO_CARD)

    def _may_ask(self) -> bool:
        """Whether there is a tool, and a sign of an AMD GPU that makes it worth running."""
        context = self._context
        if context.settings.amd_tools == "never":
            return False
        if context.root.is_fixture:
            return context.root.exists(f"calls/{self.name}.json")
        return context.root.exists(KFD) and any(find_tool(name) for name in ("amd-smi", "rocm-smi"))

    def read(self) -> Any:
        context = self._context
        cards = read_cards(context.root)
        wanted = context.settings.amd_tools == "always" or not cards or is_wanting(cards)
        if wanted and self._may_ask():
            self._ask_tool()
        else:
            self._tool = None
        if self._tool is not None and cards:
            fill_in(cards, self._tool)
        elif self._tool is not None:
            cards = make_cards(self._tool)
            self.pace_seconds = context.settings.gpu_interval_seconds or TOOL_SECONDS
        if not cards and not self._known:
            if self._tool_reason:
                raise SourceFailed(self._tool_reason)
            raise SourceAbsent(NO_CARD)
        self._add_missing(cards)
        for card in cards:
            for process in card.get("processes", ()):
                process["owner"] = read_owner(context, process["pid"])
        self._note(cards)
        told = (self._tool or {}).get("driver", "")
        return {"driver": read_driver(context, told), "gpus": cards}

    def _ask_tool(self) -> None:
        """At its own pace; what it said last is kept until then, and not longer."""
        every_ns = (self._context.settings.gpu_interval_seconds or TOOL_SECONDS) * 1e9
        now_ns = self._clock.mono_ns()
        if self._tool_mono_ns is not None and now_ns - self._tool_mono_ns < every_ns:
            return
        self._tool_mono_ns = now_ns
        try:
            self._tool = self._context.root.call(self.name, read_tools)
            self._tool_reason = ""
        except ParseError as error:
            self._tool = None
            self._tool_reason = str(error)

    def _add_missing(self, cards: list[dict[str, Any]]) -> None:
        """A card that is gone keeps its number, and so do the others."""
        present = {card["uuid"] for card in cards}
        taken = {facts["index"] for facts in self._known.values()}
        for card in cards:
            if card["uuid"] in self._known:
                card["index"] = self._known[card["uuid"]]["index"]
            elif card["index"] in taken:
                card["index"] = max(taken) + 1
            taken.add(card["index"])
            self._known[card["uuid"]] = {key: card[key] for key in KEPT if key in card}
        for uuid, facts in self._known.items():
            if uuid not in present:
                cards.append({**facts, "readings": {"up": 0}})

    def _note(self, cards: list[dict[str, Any]]) -> None:
        words = [f"{len(cards)} card{'s' * (len(cards) != 1)}"]
        words += [f"GPU {card['index']} is gone" for card in cards if not card["readings"]["up"]]
        words += [f"GPU {card['index']} is asleep" for card in cards if card["readings"].get("asleep")]
        if self._tool is not None:
            words.append(f"filled in by {self._tool['tool']}")
        if self._tool_reason:
            words.append(self._tool_reason)
        self.note = "; ".join(words)

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        blocks = self._family.blocks(answer, mono_ns, dcgm=self._context.settings.dcgm_names)
        return (*blocks, *make_blocks(answer, mono_ns)) if self._context.settings.amd_names else blocks


def read_driver(context: Context, told: str = "") -> str:
    """The version of an amdgpu that came by itself, or what the tool told; else the kernel's, which it is part of."""
    version = context.root.read_text("sys/module/amdgpu/version")
    return clean_text(version or told or context.root.read_text("proc/sys/kernel/osrelease") or "")
