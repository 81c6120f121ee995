"""The long forms of the torture's rows about cgroups and memory: `make soak`."""

import pytest
from tests.cgroups import why_not
from tests.torture import agent_day, archive_day, cgroup_fuzzer, many_containers

pytestmark = pytest.mark.soak


def test_a_day_leaves_no_memory_descriptor_or_thread_behind() -> None:
    assert [row for row in agent_day.run() if not row.met] == []


@pytest.mark.skipif(bool(why_not()), reason="a recording needs real cgroups")
def test_a_day_is_written_as_stated_and_leaves_no_memory_behind() -> None:
    assert [row for row in archive_day.run() if not row.met] == []


def test_a_hundred_thousand_operations_of_tenants_alter_nobody() -> None:
    assert [row for row in cgroup_fuzzer.run() if not row.met] == []


def test_five_thousand_containers_fit_and_are_given_back() -> None:
    assert [row for row in many_containers.run() if not row.met] == []
