"""GPUs downstream of their sources: the scrape, the window, the health score."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodescope.base.block import Block
from nodescope.base.frame import OK, Frame
from nodescope.base.settings_load import load_settings
from nodescope.collect.sources.gpu.metrics import METRICS, GpuFamily
from nodescope.hold.ring import Ring
from nodescope.hold.window import take_node_window
from nodescope.publish.derived import gather_health_inputs
from nodescope.publish.exposition import Exposition

SECOND = 10**9


def gpus(vendor: str, **readings: list[float]) -> tuple[Block, ...]:
    """As many GPUs as there are values; a value of None was not measured."""
    count = max(len(values) for values in readings.values())
    records: list[dict[str, Any]] = [
        {
            "index": index,
            "uuid": f"{vendor}-{index}",
            "name": "GPU",
            "readings": {key: values[index] for key, values in readings.items() if index < len(values)},
            "processes": [{"pid": 7, "memory": 100, "owner": {"pod": "trainer", "name": 'a"b'}}],
        }
        for index in range(count)
    ]
    return GpuFamily(vendor).blocks({"driver": "1.2", "gpus": records}, SECOND)


def hold(*blocks: Block) -> Ring:
    ring = Ring(120, 2**24, 1.0)
    ring.accept(Frame(0, SECOND, SECOND, blocks, {"nvidia": OK, "amd": OK}))
    return ring


def test_the_seeds_names_and_labels_are_published() -> None:
    """Names that dashboards rely on; labels gpu_index, uuid, vendor; the pod in gpu_process_info."""
    blocks = gpus(
        "nvidia", utilization=[87], memory_used=[50], memory_total=[200], temperature=[60], power=[411.2]
    )
    samples = {
        sample.name: sample
        for family in text_string_to_metric_families(
            Exposition("compatible", openmetrics=False).render(blocks)
        )
        for sample in family.samples
    }
    values = {
        "gpu_utilization_percent": 87,
        "gpu_memory_used_bytes": 50,
        "gpu_memory_total_bytes": 200,
        "gpu_memory_used_percent": 25,
        "gpu_temperature_celsius": 60,
        "gpu_power_draw_watts": 411.2,
        "gpu_process_memory_bytes": 100,
        "gpu_info": 1,
    }
    assert {name: samples[name].value for name in values} == values
    assert samples["gpu_power_draw_watts"].labels == {
        "gpu_index": "0",
        "uuid": "nvidia-0",
        "vendor": "nvidia",
    }
    assert {"gpu_index", "pid"} <= set(samples["gpu_process_memory_bytes"].labels)
    assert samples["gpu_process_info"].labels["pod"] == "trainer"
    assert samples["gpu_info"].labels["driver_version"] == "1.2"


def test_both_vendors_share_their_families() -> None:
    text = Exposition("compatible", openmetrics=False).render(
        [*gpus("nvidia", utilization=[10]), *gpus("amd", utilization=[20])]
    )
    assert text.count("# TYPE gpu_utilization_percent gauge") == 1
    assert 'gpu_utilization_percent{gpu_index="0",uuid="amd-0",vendor="amd"} 20' in text


def test_window_features_are_means_over_the_gpus_that_measured() -> None:
    """A MIG GPU has no utilisation: it is left out of the mean, not counted as idle."""
    window = take_node_window(
        hold(
            *gpus(
                "nvidia",
                power=[100, 200, 300],
                utilization=[40, 60],
                memory_used=[1, 3, 2],
                memory_total=[4, 4, 4],
            )
        ),
        5,
        SECOND,
    )
    assert window.metrics["mean_gpu_util"] == pytest.approx(0.5)
    assert window.metrics["mean_gpu_power_watts"] == pytest.approx(200)
    assert window.metrics["mean_gpu_mem_util"] == pytest.approx(0.5)
    assert window.sources["gpu_util"] == "nvidia"


def test_amd_serves_where_there_is_no_nvidia() -> None:
    window = take_node_window(hold(*gpus("amd", utilization=[30])), 5, SECOND)
    assert window.metrics["mean_gpu_util"] == pytest.approx(0.3)
    assert window.sources["gpu_util"] == "amd"
    assert "gpu_power_watts" in window.missing


def test_the_health_score_hears_of_all_gpus() -> None:
    latest = hold(*gpus("nvidia", utilization=[100]), *gpus("amd", utilization=[50])).latest()
    assert gather_health_inputs(latest, None).gpu_utilization_ratio == pytest.approx(0.75)
    assert gather_health_inputs(hold().latest(), None).gpu_utilization_ratio is None


def test_one_published_name_means_one_thing() -> None:
    meanings: dict[str, set[tuple[str, str, str]]] = {}
    for metric in METRICS:
        assert metric.help.endswith(".")
        if metric.published:
            meanings.setdefault(metric.published, set()).add((metric.kind, metric.unit, metric.help))
            assert metric.published.endswith("_total") == (metric.kind == "counter")
    assert all(len(found) == 1 for found in meanings.values())


def test_the_seeds_variable_paces_the_gpus() -> None:
    """COLLECTION_INTERVAL is seconds; the tick keeps its own."""
    settings = load_settings({}, {"COLLECTION_INTERVAL": "30"}, {}).settings
    assert (settings.gpu_interval_seconds, settings.interval_seconds) == (30.0, 1.0)
