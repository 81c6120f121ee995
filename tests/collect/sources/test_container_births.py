"""Containers between two ticks: every life is told once, however many hierarchies announce it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.collect.sources.container.births import NOTED, PATIENCE, Birth, Births
from nodescope.collect.sources.container.facts import TOO_SHORT, derive_short_facts

POD = "kubepods/pod" + "0" * 32
HIERARCHIES = ("memory", "cpu", "v2")


def path_of(number: int) -> str:
    return f"{POD}/{number:064x}"


class Time:
    def __init__(self) -> None:
        self.now_ns = 0

    def read(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


@pytest.fixture
def births() -> Births:
    time = Time()
    return Births(time.read, time.read)


def live(births: Births, path: str, inode: int = 5, hierarchies: tuple[str, ...] = HIERARCHIES) -> None:
    for place, hierarchy in enumerate(hierarchies):
        births.note_made(hierarchy, path, inode + 100 * place)
    for hierarchy in hierarchies:
        births.note_removed(hierarchy, path)


def take(births: Births, *met: str, is_there: bool = False) -> list[Birth]:
    return births.take(met, lambda _: is_there)


def test_a_life_is_told_once_although_every_hierarchy_announces_it(births: Births) -> None:
    live(births, path_of(1))
    (birth,) = take(births)
    assert (birth.path, birth.lives, birth.inode) == (path_of(1), 1, "5")
    assert birth.ended_mono_ns is not None
    assert birth.ended_mono_ns > birth.mono_ns
    assert take(births) == []


def test_listed_and_announced_is_one_life(births: Births) -> None:
    """The folder was there when its pod was listed; its announcement comes later, maybe after its end."""
    births.note_made("memory", path_of(1), 5)
    births.note_made("memory", path_of(1), 5)
    births.note_made("memory", path_of(1), None)
    births.note_removed("memory", path_of(1))
    assert [birth.lives for birth in take(births)] == [1]


def test_a_folder_made_again_under_the_same_name_is_two_lives(births: Births) -> None:
    live(births, path_of(1), inode=5)
    live(births, path_of(1), inode=6)
    assert [birth.lives for birth in take(births)] == [2]


def test_who_is_met_by_the_tick_is_not_told(births: Births) -> None:
    births.note_made("memory", path_of(1), 5)
    assert take(births, path_of(1)) == []
    births.note_removed("memory", path_of(1))
    assert take(births) == []


def test_earlier_lives_of_one_that_the_tick_met_are_told(births: Births) -> None:
    live(births, path_of(1), inode=5)
    births.note_made("memory", path_of(1), 6)
    assert [birth.lives for birth in take(births, path_of(1))] == [1]


def test_a_living_one_that_no_tick_has_met_waits_for_its_end(births: Births) -> None:
    """It was made behind the tick's back: the next tick meets it, or hears of its end."""
    births.note_made("memory", path_of(1), 5)
    assert take(births, is_there=True) == []
    births.note_removed("memory", path_of(1))
    assert [birth.path for birth in take(births)] == [path_of(1)]


@pytest.mark.parametrize(("is_there", "told"), [(True, 0), (False, 1)])
def test_an_end_that_is_never_announced_is_looked_for(births: Births, is_there: bool, told: int) -> None:
    """Left out by the tick (too many containers), it is no short life; gone, it is."""
    births.note_made("memory", path_of(1), 5)
    found = [birth for _ in range(PATIENCE + 1) for birth in take(births, is_there=is_there)]
    assert len(found) == told
    assert not births.is_pending


def test_a_pod_whose_container_was_never_announced_is_counted(births: Births) -> None:
    births.note_made("memory", POD, 1)
    births.note_made("cpu", POD, 2)
    births.note_removed("memory", POD)
    births.note_removed("cpu", POD)
    assert births.unseen_pods == 1
    births.note_made("memory", POD, 3)
    live(births, path_of(1))
    births.note_removed("memory", POD)
    assert births.unseen_pods == 1


def test_more_than_can_be_noted_are_counted(births: Births) -> None:
    for number in range(NOTED + 3):
        live(births, path_of(number), hierarchies=("memory",))
    assert births.unnoted == 3
    assert len(take(births)) == NOTED


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=30), st.data())
def test_every_life_is_told_by_exactly_one_take(lives: list[tuple[int, int]], data: st.DataObject) -> None:
    """forall lives, takes between them: sum of what takes tell == number of lives."""
    births = Births(lambda: 0, lambda: 0)
    told = 0
    for inode, (number, count) in enumerate(lives):
        live(births, path_of(number), 10 * inode, HIERARCHIES[:count])
        if data.draw(st.booleans()):
            told += sum(birth.lives for birth in take(births))
    told += sum(birth.lives for birth in take(births))
    distinct = set(lives)
    if all(count == 3 for _, count in distinct):
        assert told == len(lives)
    assert told <= len(lives)
    assert (told > 0) == bool(lives)


def test_the_facts_of_a_short_life_say_that_it_was_not_measured() -> None:
    birth = Birth(path_of(1), 7_000_000_000, 1_000_000_000, ended_mono_ns=1_100_000_000)
    assert derive_short_facts(birth, 1, 0) == {
        "lifetime_seconds": 0.1,
        "started_at": 7.0,
        "last_look": "none",
        "unmeasured": TOO_SHORT,
    }
    birth.last = {"cgroup.v2.cpu.stat.usage_usec": 4000.0}
    facts = derive_short_facts(birth, 2, 0)
    assert (facts["last_look"], facts["cpu_seconds"], facts["lives"]) == ("at exit", 0.004, 2.0)
