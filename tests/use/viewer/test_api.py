"""The viewer's answers over an archive: their shapes, their numbers, their refusals."""

import pytest
from pydantic import BaseModel
from tests.use.viewer.archives import END_MS, HOURS
from tests.use.viewer.asking import Asker

from nodescope.use.viewer import shapes

ANSWERS: dict[str, type[BaseModel]] = {
    "/api/health": shapes.Health,
    "/api/instance": shapes.Instance,
    "/api/summary": shapes.Summary,
    "/api/metrics": shapes.Metrics,
    "/api/filters": shapes.Filters,
    "/api/containers": shapes.Containers,
    "/api/timeseries?metric=cpu": shapes.Timeseries,
    "/api/timeseries?metric=memory&range=all&max_points=50": shapes.Timeseries,
    "/api/timeseries?metric=cpu.load_1m": shapes.Timeseries,
    "/api/timeseries?metric=gpu_power&scope=gpu": shapes.Timeseries,
    "/api/studies": shapes.Studies,
    "/api/study/summary?metric=memory": shapes.Study,
    "/api/events?range=all": shapes.Events,
}


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_has_the_shape_it_promises(viewer: Asker, path: str) -> None:
    """The OpenAPI document says what comes; an answer has no field beside it, and none missing."""
    content = viewer.json(path)
    shape = ANSWERS[path].model_validate(content, strict=False)
    said = shape.model_dump(by_alias=True)
    assert said.keys() == {key for key in content if key in said}


def test_an_archive_says_what_it_is(viewer: Asker) -> None:
    """Node, range and that nothing is live, from files alone."""
    found = viewer.json("/api/instance")
    assert found["nodes"] == ["demo-1"]
    assert found["to"] == pytest.approx(END_MS / 1000, abs=2)
    assert found["from"] == pytest.approx(END_MS / 1000 - HOURS * 3600, abs=2)
    assert found["live"] is False
    assert found["lag_seconds"] == pytest.approx(30, abs=2)
