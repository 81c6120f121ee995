"""Words for people: names as sentences have them."""

import pytest

from nodescope.use.studies.words import spoken


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("cpu", "CPU"),
        ("memory_working_set", "memory working set"),
        ("pressure_cpu", "CPU pressure"),
        ("gpu_utilization", "GPU utilization"),
        ("oom_kills", "OOM kills"),
        ("cgroup.v2.memory.current", "cgroup.v2.memory.current"),
        ("memory.MemAvailable", "memory.MemAvailable"),
    ],
)
def test_a_plain_name_is_said_as_words_and_a_raw_one_as_it_is(metric: str, said: str) -> None:
    assert spoken(metric) == said
