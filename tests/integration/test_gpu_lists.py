"""Queries of dashboards for GPUs, asked of an agent on fakes of the vendors' interfaces."""

import pytest
from tests.samples import find_samples
from tools.eval_gpus import has_series, judge, matches, read_gpu_lists, scrape_both

pytestmark = pytest.mark.real

WANTED_SHARE = 0.95


def test_what_the_vendors_can_say_is_answered() -> None:
    queries = read_gpu_lists(find_samples("foreign"))
    families = scrape_both()
    judged = judge(queries, families)
    lost = sorted({one for query in judged for one in query.selectors if not has_series(families, one)})
    assert sum(judged.values()) >= WANTED_SHARE * len(judged) > 0, lost


def test_matchers_are_prometheus_own() -> None:
    labels = {"pod": "a", "card_model": "102-D67305-00"}
    assert matches(labels, 'x{card_model=~"102-D65208-0C|102-D67305-00",pod!=""}')
    assert not matches(labels, 'x{card_model=~"102-D67305"}'), "a pattern matches the whole"
    assert not matches(labels, 'x{job_id!=""}')
    assert matches(labels, "x")
