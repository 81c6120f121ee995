"""GPU features are means over all GPUs of a node, whoever made them."""

from collections.abc import Mapping, Sequence

import pytest

from nodescope.base.block import Block
from nodescope.base.frame import OK, Frame, Outcome
from nodescope.collect.sources.gpu.metrics import GpuFamily
from nodescope.hold.ring import Ring
from nodescope.hold.window import NodeWindow, take_node_window

SECOND = 1_000_000_000
BOTH = {"nvidia": OK, "amd": OK}
FAMILIES = {"nvidia": GpuFamily("nvidia"), "amd": GpuFamily("amd")}


def gpu_block(vendor: str, number: int, *gpus: Mapping[str, float]) -> Block:
    records = [
        {"index": index, "uuid": f"{vendor}-{index}", "readings": {"up": 1, **readings}}
        for index, readings in enumerate(gpus)
    ]
    return FAMILIES[vendor].blocks({"driver": "", "gpus": records}, number * SECOND)[0]


def take(frames: Sequence[Sequence[Block]], outcomes: Mapping[str, Outcome] = BOTH) -> NodeWindow:
    """A window over all the frames, one a second from second 1 on."""
    ring = Ring(120.0, 2**24, 1.0)
    for number, blocks in enumerate(frames, 1):
        ring.accept(Frame(number, number * SECOND, number * SECOND, tuple(blocks), outcomes))
    return take_node_window(ring, len(frames), len(frames) * SECOND)


def reading(percent: float, watts: float, used: float) -> dict[str, float]:
    return {"utilization": percent, "power": watts, "memory_used": used, "memory_total": 100}


def test_a_node_with_both_vendors_has_the_mean_over_all_its_gpus() -> None:
    nvidia = (reading(90, 300, 80), reading(60, 200, 50), reading(30, 100, 20))
    amd = (reading(20, 40, 10),)
    window = take([[gpu_block("nvidia", n, *nvidia), gpu_block("amd", n, *amd)] for n in (1, 2)])
    assert window.metrics["mean_gpu_util"] == pytest.approx((0.9 + 0.6 + 0.3 + 0.2) / 4)
    assert window.metrics["mean_gpu_mem_util"] == pytest.approx((0.8 + 0.5 + 0.2 + 0.1) / 4)
    assert window.metrics["mean_gpu_power_watts"] == pytest.approx((300 + 200 + 100 + 40) / 4)
    assert window.sources["gpu_util"] == "nvidia+amd"
    assert window.metrics["std_gpu_util"] == pytest.approx(0)


def test_a_vendor_that_is_asked_less_often_still_counts_at_every_tick() -> None:
    """AMD's tools answer each half minute: in between their last answer holds."""
    frames = [[gpu_block("nvidia", n, {"utilization": 80})] for n in range(1, 7)]
    frames[2].append(gpu_block("amd", 3, {"utilization": 20}))
    frames[5].append(gpu_block("amd", 6, {"utilization": 0}))
    window = take(frames)
    assert window.metrics["mean_gpu_util"] == pytest.approx((5 * 0.5 + 0.4) / 6)
    assert "gpu_util" not in window.samples_of, "a value for each tick of the window"


def test_a_reading_that_a_gpu_lacks_does_not_count_as_zero() -> None:
    blocks = [gpu_block("nvidia", 1, {"power": 250}, {}), gpu_block("amd", 1, {"utilization": 40})]
    window = take([blocks])
    assert window.metrics["mean_gpu_power_watts"] == 250
    assert (window.metrics["mean_gpu_util"], window.sources["gpu_util"]) == (0.4, "amd")
    assert window.missing["gpu_mem_util"] == (
        "nvidia was not measured in the window; amd was not measured in the window"
    )


def test_one_vendor_alone_is_named_alone_and_none_is_explained() -> None:
    absent = {"nvidia": Outcome("absent", "no driver"), "amd": OK}
    window = take([[gpu_block("amd", 1, {"utilization": 10})]], absent)
    assert (window.metrics["mean_gpu_util"], window.sources["gpu_util"]) == (0.1, "amd")
    assert window.missing["gpu_power_watts"].startswith("nvidia absent: no driver; amd was not")
