"""What healthy nodes do every day and nobody should be woken for; beside each, the trouble that looks like it."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from tests.stories.generate.cluster import GIB

from nodescope.base.block import Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.frame import EXIT, OOM_EXIT, Event
from nodescope.base.metric import Metric
from nodescope.collect.sources import filesystem
from nodescope.hold.ring import Moment
from nodescope.watch.detect import Learner
from nodescope.watch.detect.disk_full import FullDisks
from nodescope.watch.detect.memory_leak import Leaks
from nodescope.watch.detect.noisy_neighbour import Neighbours
from nodescope.watch.detect.throttling import Throttling
from nodescope.watch.finding_store import FILE_NAME, FindingStore
from nodescope.watch.learned import read_levels
from nodescope.watch.look import ContainerLook, DiskLook, Eyes, NodeLook, list_disks
from nodescope.watch.sighting import Sighting

STEP = 10.0
HOUR = 3600.0
LIMIT = 1 * GIB


def container(
    name: str,
    *,
    held: float = 0.0,
    cpu: float = 0.1,
    wait: float = 0.0,
    life: int = 0,
    details: Mapping[str, str] | None = None,
) -> ContainerLook:
    identity = f"{name}-{life}"
    known = (("workload", name), ("qos", "Burstable"), ("workload_kind", "Deployment"))
    entity = Entity(
        "container",
        (identity,),
        (("namespace", "shop"), ("pod", name), ("container", name)),
        tuple({**dict(known), **(details or {})}.items()),
    )
    return ContainerLook(entity.key, entity, cpu, 0.0, wait, 0.0, 0.0, 0.0, 0.0, held, LIMIT, inf)


def look_at(
    at: float,
    containers: Sequence[ContainerLook] = (),
    disks: Sequence[DiskLook] = (),
    events: Sequence[Event] = (),
) -> NodeLook:
    return NodeLook(at, STEP, containers, {}, 8, 64 * GIB, 32 * GIB, disks, events=events)


def sure(found: Iterable[Sighting]) -> list[Sighting]:
    return [one for one in found if one.is_sure]


# -- memory ------------------------------------------------------------------------------


def follow(
    leaks: Leaks, shares: Iterable[float], start: float = 0.0, life: int = 0
) -> list[tuple[float, Sighting]]:
    """What is sure of one container whose memory takes these shares of its limit."""
    found = []
    for number, share in enumerate(shares):
        at = start + STEP * number
        sightings = leaks.look(look_at(at, [container("heap", held=share * LIMIT, life=life)]))
        found += [(at, one) for one in sure(sightings)]
    return found


def rise(hours: float, low: float, high: float) -> list[float]:
    return [float(share) for share in np.linspace(low, high, round(hours * HOUR / STEP))]


LEVEL = [0.4] * 360


def test_a_rise_below_half_of_the_limit_is_nothing_yet_and_above_it_is_told() -> None:
    found = follow(Leaks(), [*[0.05] * 360, *rise(3, 0.05, 1.0)])
    assert found
    shares = [float(one.evidence["held_bytes"] or 0) / LIMIT for _, one in found]
    assert 0.5 <= shares[0] < 0.6


def test_a_rise_that_is_over_within_minutes_is_told_from_any_height() -> None:
    """The limit is less than half an hour away: height does not matter."""
    found = follow(Leaks(), [*[0.02] * 360, *rise(0.8, 0.02, 1.0)])
    assert float(found[0][1].evidence["held_bytes"] or 0) < 0.5 * LIMIT


def test_a_height_that_was_survived_is_no_news_to_another_container_of_the_workload() -> None:
    """A heap filled up to three quarters, stayed, and was released anew: the next one does the same."""
    leaks = Leaks()
    follow(leaks, [*LEVEL, *rise(3, 0.4, 0.75), *[0.75] * 720])
    leaks.look(look_at(30_000, events=[Event(EXIT, 0, "container", ("heap-0",))]))
    again = [*LEVEL, *rise(3, 0.4, 0.75), *[0.75] * 720]
    assert not follow(leaks, again, 31_000, life=1)
    assert follow(leaks, [*LEVEL, *rise(4, 0.4, 1.0)], 90_000, life=2)


def test_what_was_survived_before_a_kill_counts_no_more() -> None:
    leaks = Leaks()
    follow(leaks, [*[0.9] * 800])
    assert leaks.remember()
    leaks.look(look_at(20_000, events=[Event(OOM_EXIT, 0, "container", ("heap-0",))]))
    assert not leaks.remember()


def test_a_heap_with_deep_falls_has_to_leave_them_behind() -> None:
    """Teeth of a third of the limit, one of them a little higher than all before."""
    tooth = np.linspace(0.4, 0.7, 90).tolist()
    higher = np.linspace(0.4, 0.84, 132).tolist()
    assert not follow(Leaks(), [*tooth * 12, *higher])
    assert follow(Leaks(), [*tooth * 12, *np.linspace(0.4, 0.99, 600).tolist()])


def test_what_was_survived_outlives_the_agent(tmp_path: Path) -> None:
    """Through findings.json, as the watcher keeps it; what is no number is left out."""
    leaks = Leaks()
    follow(leaks, [*[0.8] * 800])
    assert isinstance(leaks, Learner)
    store = FindingStore("node", tmp_path / FILE_NAME)
    store.extra["levels"] = {"memory_leak": {**leaks.remember(), "broken": "much", "void": None}}
    store.save(0.0, always=True)
    later = FindingStore("node", tmp_path / FILE_NAME)
    later.load()
    known = read_levels(later.extra["levels"]["memory_leak"])
    assert known == leaks.remember()
    fresh = Leaks()
    fresh.recall(known)
    assert not follow(fresh, [*LEVEL, *rise(3, 0.4, 0.8)])
    assert read_levels(["no", "names"]) == {}


@pytest.mark.parametrize("hours", [1.0, 2.0, 8.0, 14.0])
def test_a_cache_that_fills_from_its_start_is_nothing_however_long_that_takes(hours: float) -> None:
    """Longer than the hour, or the six, that a level of the ladder reaches back."""
    assert not follow(Leaks(), [*rise(hours, 0.02, 0.85), *[0.85] * 360])
    found = follow(Leaks(), rise(hours, 0.02, 1.0))
    assert float(found[0][1].evidence["held_bytes"] or 0) == pytest.approx(0.92 * LIMIT, rel=0.03)


@pytest.mark.parametrize("hours", [1.5, 5.0, 9.0])
def test_a_leak_after_a_level_hour_is_told_before_half_of_its_time(hours: float) -> None:
    begins = len(LEVEL) * STEP
    found = follow(Leaks(), [*LEVEL, *rise(hours, 0.4, 1.0)])
    assert (found[0][0] - begins) / (hours * HOUR) < 0.5


def test_workers_that_are_replaced_rise_by_no_more_than_they_fell() -> None:
    """The first of them was half grown when the watcher came, and the next one lives longer."""
    first = np.linspace(0.5, 0.6, 120).tolist()
    assert not follow(Leaks(), [*first, *rise(2, 0.35, 0.7), *rise(2.2, 0.35, 0.75)])


def test_a_peak_at_the_start_does_not_hide_a_leak() -> None:
    """It fell by half of its limit once; near the limit that counts no more."""
    found = follow(Leaks(), [*[0.8] * 30, *[0.3] * 720, *rise(5, 0.3, 1.0)])
    assert 0.9 * LIMIT < float(found[0][1].evidence["held_bytes"] or 0) < 0.96 * LIMIT


def test_who_grew_by_little_is_not_why_the_node_is_full() -> None:
    """Without a limit of its own the node is the limit: 32 GiB are left of 64."""
    for grown, is_told in ((0.2 * GIB, False), (20 * GIB, True)):
        leaks = Leaks()
        found = []
        for number, share in enumerate([*[0.0] * 360, *rise(2, 0.0, 1.0)]):
            one = container("heap", held=GIB + share * grown)._replace(limit=inf)
            # Somebody else takes the rest.
            left = 32 * GIB * (1 - share) + 2**20
            look = NodeLook(STEP * number, STEP, [one], {}, 8, 64 * GIB, left)
            found += sure(leaks.look(look))
        assert bool(found) is is_told


def test_a_heap_that_was_collected_is_no_leak_from_that_moment_on() -> None:
    """Its rise was found in buckets of minutes: the next one is not full yet."""
    leaks = Leaks()
    before = follow(leaks, [*[0.3] * 360, *rise(2, 0.3, 0.8)])
    assert before[-1][0] == STEP * (360 + 719)
    assert not follow(leaks, [0.4] * 360, STEP * 1080)


@pytest.mark.parametrize(("taken", "is_told"), [(8 * GIB, False), (0.2 * GIB, True)])
def test_where_another_took_what_the_node_had_its_neighbours_are_no_leaks(
    taken: float, is_told: bool
) -> None:
    """It has risen for an hour and its own limit is far; within minutes the node has nothing left."""
    leaks = Leaks()
    shares = [*[0.0] * 360, *rise(1, 0.0, 1.0)]
    found = []
    for number, share in enumerate(shares):
        one = container("heap", held=GIB + share * GIB)._replace(limit=40 * GIB)
        late = max(0.0, (number - 600) / 120)
        look = NodeLook(
            STEP * number, STEP, [one], {}, 8, 16 * GIB, 1.3 * GIB + taken - share * GIB - late * taken
        )
        found += sure(leaks.look(look))
    assert bool(found) is is_told


# -- what no generator has: a week of a shop ----------------------------------------------


def test_a_jvm_that_warms_up_is_nothing_also_where_the_agent_came_later() -> None:
    """The heap within minutes; classes and compiled code for hours, up to nine tenths of the limit."""
    hours = np.arange(2160) / 360
    shares = 0.15 + 0.55 * (1 - np.exp(-5 * hours)) + 0.19 * (1 - np.exp(-hours))
    for seen_from in (0, 120):
        assert not follow(Leaks(), shares[seen_from:].tolist())


@pytest.mark.parametrize("minutes", [4, 6])
def test_what_grows_for_minutes_and_stops_is_nothing(minutes: int) -> None:
    """An index is built and stays; a burst of logs is written to a file system in memory, and is gone."""
    grows = np.linspace(0.3, 0.65, minutes * 6).tolist()
    assert not follow(Leaks(), [*[0.3] * 1080, *grows, *[0.65] * 360])
    assert not follow(Leaks(), [*[0.3] * 1080, *grows, *[0.65] * 30, *[0.3] * 360])
    to_its_end = follow(Leaks(), [*[0.3] * 1080, *np.linspace(0.3, 1.0, 2 * minutes * 6).tolist()])
    assert to_its_end


def test_a_workload_that_was_killed_before_gets_no_such_minutes() -> None:
    """It is told as early as a rise of an hour."""
    minutes = 12
    leak = [*[0.3] * 360, *np.linspace(0.3, 1.0, minutes * 6).tolist()]
    leaks = Leaks()
    first = follow(leaks, leak)
    leaks.look(look_at(5000, events=[Event(OOM_EXIT, 0, "container", ("heap-0",))]))
    again = follow(leaks, leak, 6000, life=1)
    assert again[0][0] - 6000 < first[0][0]


def test_files_that_are_mapped_are_not_held() -> None:
    """A database reads its files through memory: the kernel gives that back."""
    entity = Entity("container", ("db",))
    counted = Table(
        "container",
        "container",
        ("container",),
        (Metric("cgroup.v2.cpu.stat.usage_usec", "counter", "CPU."),),
    )
    names = (
        "memory.stat.anon",
        "memory.stat.shmem",
        "memory.stat.kernel",
        "memory.stat.file",
        "memory.stat.file_mapped",
    )
    metrics = tuple(Metric(f"cgroup.v2.{name}", "gauge", "Bytes.", unit="bytes") for name in names)
    sizes = Table("container.memory_stat", "container", ("container",), metrics)
    held = []
    for mapped in (0.0, 50.0 * GIB):
        latest = {
            "container": Moment(1, 1, 1, make_block(counted, {entity: [1.0]}, 1)),
            sizes.name: Moment(1, 1, 1, make_block(sizes, {entity: [3.0, 2.0, 1.0, mapped, mapped]}, 1)),
        }
        held.append([one.held for one in Eyes().look(0.0, latest, {}).containers])
    assert held == [[6.0], [6.0]]


def test_an_image_that_is_pulled_within_minutes_wakes_nobody() -> None:
    """Of 24 GiB, onto a disk that was level for hours: the kubelet begins to remove images at 85 %."""
    for minutes in (3, 5, 10, 20):
        pulled = np.linspace(0.6, 0.84, minutes * 6).tolist()
        found = fill(FullDisks(), [*[0.6] * 2160, *pulled, *[0.84] * 360])
        assert {one.severity for one in found} <= {"curious"}
        full = fill(FullDisks(), [*[0.6] * 2160, *np.linspace(0.6, 1.0, minutes * 6 + 60).tolist()])
        assert any(one.severity == "kill" and float(one.evidence["used_share"] or 0) < 0.95 for one in full)


def test_a_weekly_backup_wakes_nobody() -> None:
    """
    Its archive lies on the disk for some minutes before it is sent away.

    While it reads, others wait for the disk a little longer than usual; hard waits are told.
    """
    written = [*np.linspace(0.5, 0.82, 720).tolist(), *[0.82] * 60, *[0.5] * 60]
    assert {one.severity for one in fill(FullDisks(), [*[0.5] * 2160, *written])} <= {"curious"}
    for wait, is_told in ((0.07, False), (0.3, True)):
        neighbours, told = Neighbours(), []
        for number in range(720):
            reads = number >= 360
            pair = [
                container("web")._replace(wait_io=wait if reads else 0.02, disk=2e6),
                container("backup", details={"workload_kind": "CronJob"})._replace(
                    disk=1.5e8 if reads else 0.0
                ),
            ]
            told += sure(neighbours.look(look_at(number * STEP, pair)))
        assert bool(told) is is_told


# -- disks -------------------------------------------------------------------------------


def fill(disks: FullDisks, shares: Iterable[float], start: float = 0.0) -> list[Sighting]:
    size = 100 * GIB
    found = []
    for number, share in enumerate(shares):
        found += sure(
            disks.look(look_at(start + STEP * number, disks=[DiskLook("/var/log", size, size * (1 - share))]))
        )
    return found


def test_logs_that_were_rotated_at_this_height_are_no_news() -> None:
    """The first time nobody can know; from then on only what goes beyond is told."""
    disks = FullDisks()
    fill(disks, rise(4, 0.5, 0.9))
    assert not fill(disks, rise(4, 0.5, 0.9), 20_000)
    assert fill(disks, rise(4, 0.5, 0.99), 40_000)


def test_a_rotation_is_known_after_a_restart() -> None:
    before, after = FullDisks(), FullDisks()
    fill(before, [*rise(4, 0.5, 0.9), 0.5])
    after.recall(before.remember())
    assert not fill(after, rise(4, 0.5, 0.9), 20_000)


def test_a_disk_that_fills_since_the_watcher_knows_it_wakes_nobody_until_it_is_full() -> None:
    """It may be a log on its way to its first rotation; after two level hours it is not."""
    for calm, severities in (([], ["curious"]), ([0.5] * 720, ["curious", "kill"])):
        found = fill(FullDisks(), [*calm, *rise(6, 0.5, 0.94)])
        assert list(dict.fromkeys(one.severity for one in found)) == severities
    assert {one.severity for one in fill(FullDisks(), rise(1, 0.951, 0.97))} == {"kill"}


def test_a_disk_that_is_full_in_many_hours_wakes_nobody() -> None:
    found = fill(FullDisks(), [*[0.5] * 360, *rise(20, 0.5, 1.0)])
    severities = list(dict.fromkeys(one.severity for one in found))
    assert severities == ["curious", "kill"]
    first = next(one for one in found if one.severity == "kill")
    assert first.time_to_limit_seconds is not None
    assert first.time_to_limit_seconds == pytest.approx(3 * HOUR, rel=0.2)


def test_what_is_mounted_read_only_is_no_disk_that_fills_up() -> None:
    rows = {
        Entity("filesystem", (point,), (("device", device), ("fstype", "btrfs"), ("mountpoint", point))): [
            GIB, 0.0, 0.0, nan, nan, readonly, 0.0,
        ]
        for device, point, readonly in (("/dev/dm-0", "/usr", 1.0), ("/dev/sda1", "/data", 0.0))
    }  # fmt: skip
    block = make_block(filesystem.TABLE, rows, 1)
    found = list_disks({"filesystem": Moment(1, 1, 1, block)})
    assert [one.mountpoint for one in found] == ["/data"]


# -- neighbours --------------------------------------------------------------------------


def crowd(seconds: float, victim: dict[str, str], cause: dict[str, str]) -> list[Sighting]:
    """A quiet hour; then one takes seven cores, and another waits for half of the time."""
    neighbours = Neighbours()
    found = []
    for number in range(round((HOUR + seconds) / STEP)):
        is_late = number * STEP >= HOUR
        pair = [
            container("victim", wait=0.5 if is_late else 0.01, details=victim),
            container("cause", cpu=7.0 if is_late else 0.1, details=cause),
        ]
        found += sure(neighbours.look(look_at(number * STEP, pair)))
    return found


def test_who_asked_for_no_cpu_is_no_victim_of_one_that_asked() -> None:
    best_effort = {"qos": "BestEffort"}
    assert not crowd(900, best_effort, {})
    assert crowd(900, best_effort, best_effort)
    assert crowd(900, {}, {})


def test_who_comes_in_the_last_minute_of_a_crowding_has_not_made_it() -> None:
    """Somebody takes seven cores for ten minutes; a job begins as it ends, while others still wait."""
    neighbours, told = Neighbours(), []
    for number in range(480):
        busy, job = 360 <= number < 420, 417 <= number < 426
        look = [
            container("victim", wait=0.5 if busy or job else 0.01),
            container("cause", cpu=7.0 if busy else 0.1),
            container("job", cpu=7.0 if job else 0.0),
        ]
        told += sure(neighbours.look(look_at(number * STEP, look)))
    assert {one.cause for one in told} == {"shop/cause"}


def test_where_only_jobs_wait_nobody_is_woken() -> None:
    assert {one.severity for one in crowd(900, {"workload_kind": "CronJob"}, {})} == {"curious"}
    assert {one.severity for one in crowd(900, {}, {})} == {"hurt"}


def test_a_build_of_three_minutes_is_no_neighbour_and_one_of_ten_is() -> None:
    assert not crowd(180, {}, {})
    assert crowd(600, {}, {})


def test_a_name_that_comes_later_is_the_name_of_the_cause() -> None:
    """The API answers after the container was seen."""
    neighbours = Neighbours()
    found = []
    for number in range(480):
        is_late = number >= 360
        named = {"workload": "etl"} if number > 100 else {"workload": ""}
        pair = [
            container("victim", wait=0.5 if is_late else 0.01),
            container("cause", cpu=7.0 if is_late else 0.1, details=named),
        ]
        found += sure(neighbours.look(look_at(number * STEP, pair)))
    assert {one.subject.workload for one in found} == {"etl"}
    assert {one.cause for one in found} == {"shop/etl"}


# -- throttling --------------------------------------------------------------------------


def hold_back(begins: float, seconds: float, first: float = 600.0) -> list[Sighting]:
    """A container that comes at `first` and is held back from `begins` on."""
    throttling = Throttling()
    found = []
    for number in range(round((begins + seconds) / STEP)):
        at = number * STEP
        limited = container("web", wait=0.5)._replace(throttled=0.6 if at >= begins else 0.0, quota=1.0)
        found += sure(throttling.look(look_at(at, [limited] if at >= first else [])))
    return found


def test_a_build_at_its_limit_from_its_first_moment_on_wakes_nobody() -> None:
    """Without the API nobody says that it is a job; a service that never gets out of it is told."""
    assert not hold_back(600, 1200)
    assert hold_back(600, 2400)


def test_a_build_that_comes_to_its_limit_after_some_minutes_wakes_nobody_either() -> None:
    assert not hold_back(900, 900)


def test_who_is_held_back_later_is_told_within_minutes() -> None:
    assert hold_back(3600, 600)


def test_who_was_there_before_the_watcher_is_as_old_as_an_earlier_run_says() -> None:
    """The agent is restarted in the middle of a build, which it may take for a service; a service it knew."""
    assert not hold_back(0, 1200, first=0.0)
    assert hold_back(0, 2400, first=0.0)
    before = Throttling()
    before.look(look_at(0.0, [container("web")._replace(quota=1.0)]))
    after = Throttling()
    after.recall(before.remember())
    limited = container("web", wait=0.5)._replace(throttled=0.6, quota=1.0)
    assert sure(one for number in range(60) for one in after.look(look_at(7200 + number * STEP, [limited])))
