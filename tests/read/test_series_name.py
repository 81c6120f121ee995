"""What a series is called."""

import pytest

from nodescope.base.entity import Entity
from nodescope.keep.label_columns import describe_entity
from nodescope.read.series_name import name_of

UUID = "GPU-c701a623-f66d-5fe7-613a-aae3cb977748"
PLACE = (("gpu_index", "0"), ("uuid", UUID), ("vendor", "nvidia"))
MODEL = (("name", "NVIDIA A100-SXM4-40GB"), ("serial", "1"))
CALLED = {
    "its index and model": (Entity("gpu", (UUID,), PLACE, MODEL), "GPU 0, A100-SXM4-40GB"),
    "its index where the model is not known": (Entity("gpu", (UUID,), PLACE), "GPU 0"),
    "its uuid where nothing else is": (Entity("gpu", (UUID,)), f"gpu {UUID}"),
    "a model of AMD's": (
        Entity("gpu", (UUID,), PLACE, (("name", "AMD Instinct MI250X"),)),
        "GPU 0, AMD Instinct MI250X",
    ),
    "a MIG device": (Entity("gpu", (UUID, "MIG-1"), PLACE, (("name", "MIG 1g.5gb"),)), "GPU 0, MIG 1g.5gb"),
    "a link": (Entity("gpu", (UUID, "nvlink", "3"), (*PLACE, ("link", "3"))), "GPU 0, nvlink 3"),
    "a process on it": (
        Entity("gpu", (UUID, "process", "41", "9"), (*PLACE, ("pid", "41")), (("name", "python"),)),
        "GPU 0, python 41",
    ),
    "dcgm's own labels": (
        Entity("gpu", (UUID, "dcgm"), (("gpu", "0"), ("modelName", "NVIDIA H100"))),
        "GPU 0, H100",
    ),
}


@pytest.mark.parametrize("what", CALLED)
def test_a_gpu_is_called_by(what: str) -> None:
    entity, name = CALLED[what]
    assert name_of(describe_entity(entity, "n1", 0)) == name
    assert name_of(describe_entity(entity, "n1", 0), "n1") == f"{name} on n1"
