"""Whole devices: where they fit, what is taken, and claims."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples
from tests.support import TurnableClock
from tests.use.scheduler.world import World

from nodescope.base.errors import KubernetesAway
from nodescope.use.scheduler.devices.claims import DeviceClaims, DeviceSlices, parse_claim, parse_slice
from nodescope.use.scheduler.devices.device_request import PLACEMENT, count_devices, is_whole, list_claims
from nodescope.use.scheduler.devices.node_capacities import NodeCapacities, parse_capacity
from nodescope.use.scheduler.devices.packing import DeviceRoom
from nodescope.use.scheduler.devices.stranded import SIZES, count_change, count_stranded
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.pod_request import parse_pod_request

GPU = "nvidia.com/gpu"
DRIVER = "gpu.nvidia.com"


class DeviceWorld(World):
    """Nodes with devices."""

    def __init__(self, placement: str = "pack", **gpus: int) -> None:
        super().__init__()
        capacities = NodeCapacities(None, self.clock, self.placed.asks_devices, self.nodes.names)
        self.room = DeviceRoom(self.placed, capacities)
        made = (self.nodes, self.placed, self.extender.decisions, self.clock, "cost", True)
        self.extender = Extender(*made, self.room, placement)
        for name, count in gpus.items():
            capacities.found[name] = {GPU: count}
            self.load(name, mean_cpu_util=0.2)

    def bind(self, pod: str, node: str, gpus: int, phase: str = "Running") -> None:
        about = {"name": pod, "namespace": "d", "uid": f"uid-{pod}"}
        spec = {"nodeName": node, "containers": wants(gpus)}
        self.placed.change({"metadata": about, "spec": spec, "status": {"phase": phase}})

    def choose(self, gpus: int, pod: str = "p", **labels: str) -> str:
        found = self.scores_of(self.call(pod, labels, containers=wants(gpus)))
        return max(found, key=found.__getitem__)


def wants(gpus: int) -> list[dict[str, Any]]:
    return [{"resources": {"limits": {GPU: str(gpus)}}}]


def test_a_pod_fills_a_node_that_was_begun() -> None:
    world = DeviceWorld(empty=8, begun=8, small=4)
    world.bind("there", "begun", 3)
    assert world.choose(1) == "begun"
    assert world.explain()["empty"]["terms_ms"]["stranded"] > world.explain()["begun"]["terms_ms"]["stranded"]


def test_pods_of_one_wave_fill_one_node_and_leave_room_for_eight() -> None:
    """Our own answers count before the watch shows them."""
    world = DeviceWorld(a=8, b=8, c=8)
    first = world.choose(1, "p0")
    assert [world.choose(1, f"p{number}") for number in range(1, 8)] == [first] * 7
    assert world.choose(8, "large") != first


def test_groups_of_four_stay_together() -> None:
    """Six are free, or four: the pod of two takes of the six."""
    world = DeviceWorld(four=8, six=8)
    world.bind("x", "four", 4)
    world.bind("y", "six", 2)
    assert world.choose(2) == "six"


def test_an_exact_fit_comes_first() -> None:
    world = DeviceWorld(two=8, six=8, whole=8)
    world.bind("x", "two", 6)
    world.bind("y", "six", 2)
    assert world.choose(2) == "two"


@examples(200)
@given(st.integers(0, 64), st.integers(1, 64))
def test_no_change_is_negative(left: int, wanted: int) -> None:
    """forall free >= wanted: and a device taken from a whole group of all sizes costs most."""
    assert count_change(left + wanted, wanted) >= 0
    assert count_stranded(0) == count_stranded(max(SIZES)) == 0


@examples(100)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=6), st.integers(1, 8))
def test_an_empty_node_is_never_begun_while_another_has_room(taken: list[int], wanted: int) -> None:
    """forall nodes of eight: unless the pod takes all of it."""
    world = DeviceWorld("pack", **{f"n{number}": 8 for number in range(len(taken))})
    for number, count in enumerate(taken):
        if count:
            world.bind(f"x{number}", f"n{number}", count)
    free = {f"n{number}": 8 - count for number, count in enumerate(taken)}
    fitting = {name for name, count in free.items() if wanted <= count < 8}
    call = world.call("p", {}, containers=wants(wanted))
    scores = world.scores_of(call)
    if fitting and wanted < 8:
        best = max(scores[name] for name in fitting)
        assert all(scores[name] < best for name, count in free.items() if count == 8)


def test_a_pod_that_ended_gives_its_devices_back() -> None:
    world = DeviceWorld(a=8, b=8)
    world.bind("x", "a", 7)
    assert world.placed.held_devices() == {("a", GPU): 7}
    world.bind("x", "a", 7, phase="Succeeded")
    assert not world.placed.held_devices()


def test_a_node_of_which_nothing_is_known_is_not_the_best() -> None:
    world = DeviceWorld(a=8, b=8)
    world.bind("x", "a", 4)
    world.load("unread", mean_cpu_util=0.0)
    assert world.choose(4) == "a"
    assert "is not known" in world.explain()["unread"]["why"]
    assert world.explain()["unread"]["confidence"] == 0


def test_before_the_nodes_were_listed_pods_are_packed_all_the_same() -> None:
    """The first pods of a cluster: their nodes' devices are taken as eight, and the answer says so."""
    world = DeviceWorld()
    for name in ("a", "b"):
        world.load(name, mean_cpu_util=0.2)
    first = world.choose(1, "p0")
    assert [world.choose(1, f"p{number}") for number in range(1, 4)] == [first] * 3
    assert "was not read yet: taken as 8" in world.explain("p0")[first]["why"]


def test_a_node_that_our_watch_shows_full_says_so() -> None:
    world = DeviceWorld(a=8, b=8)
    world.bind("x", "a", 8)
    assert world.choose(2) == "b"
    assert f"0 of 8 {GPU} are free by our watch, 2 are asked for" in world.explain()["a"]["why"]


@pytest.mark.parametrize("where", ["label", "annotation", "setting"])
def test_who_wants_to_spread_is_rated_by_load(where: str) -> None:
    world = DeviceWorld("spread" if where == "setting" else "pack")
    for name, util in (("idle", 0.1), ("busy", 0.9)):
        world.room.capacities.found[name] = {GPU: 8}
        world.load(name, mean_cpu_util=0.2, mean_gpu_util=util)
    world.bind("x", "busy", 6)
    about = {"name": "p", "namespace": "d", "uid": "uid-p"}
    if where != "setting":
        about[f"{where}s"] = {PLACEMENT: "spread"}  # type: ignore[assignment]
    pod = parse_pod_request({"metadata": about, "spec": {"containers": wants(1)}})
    ratings = world.extender._judge(pod, world.nodes.all())
    assert max(ratings, key=lambda one: one.score).node == "idle"
    assert "gpu_util" in ratings[0].facts


def test_an_unknown_word_is_as_if_it_were_not_said() -> None:
    about = {"name": "p", "labels": {PLACEMENT: "scatter"}}
    assert parse_pod_request({"metadata": about, "spec": {"containers": wants(1)}}).placement == ""


def test_a_pod_that_changes_later_is_not_bound_again() -> None:
    """A GPU pod that was bound two minutes ago and becomes ready now."""
    world = DeviceWorld(a=8)
    world.bind("x", "a", 1)
    assert world.placed.bound_total.total() == 1
    world.clock.advance(120 * 10**9)
    world.placed.arriving("gpu")
    then = {"type": "PodScheduled", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    about = {"name": "x", "namespace": "d", "uid": "uid-x"}
    spec = {"nodeName": "a", "containers": wants(1)}
    world.placed.change({"metadata": about, "spec": spec, "status": {"conditions": [then]}})
    assert world.placed.bound_total.total() == 1
    assert world.placed.held_devices() == {("a", GPU): 1}


def test_devices_are_counted_as_kube_scheduler_counts_them() -> None:
    """Containers together, or the largest init container; slices of a GPU are none."""
    two = {"resources": {"requests": {GPU: "2"}, "limits": {GPU: "2"}}}
    init = {"resources": {"limits": {GPU: 5, "nvidia.com/mig-1g.5gb": "7"}}}
    assert count_devices({"spec": {"containers": [two, two, {}], "initContainers": [init]}}) == ((GPU, 5),)
    assert count_devices({"spec": {"containers": [two, two, two]}}) == ((GPU, 6),)
    assert [is_whole(name) for name in ("amd.com/gpu", "gpu.intel.com/xe", "nvidia.com/gpu.shared")] == [
        True,
        True,
        False,
    ]


# -- claims ----------------------------------------------------------------


def build_slice(node: str, count: int, driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    spec = {"driver": driver, "nodeName": node, "pool": {"name": node}}
    listed = [{"name": f"gpu-{number}"} for number in range(count)]
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": {**spec, "devices": listed, **more}}


def build_claim(name: str, count: int, node: str = "", device_class: str = DRIVER) -> dict[str, Any]:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    item: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "d"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }
    if node:
        results = [
            {"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{n}"} for n in range(count)
        ]
        item["status"] = {"allocation": {"devices": {"results": results}}}
    return item


def claim_spec(name: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": "gpus", "resourceClaimName": name}], "containers": [{"name": "c"}]}


def build_claim_world() -> DeviceWorld:
    world = DeviceWorld()
    for name in ("empty", "begun"):
        world.load(name, mean_cpu_util=0.2)
        world.room.slices.change(build_slice(name, 8))
    world.room.claims.change(build_claim("old", 3, "begun"))
    return world


def test_a_pod_with_a_claim_is_no_plain_pod_and_is_packed() -> None:
    world = build_claim_world()
    world.room.claims.change(build_claim("mine", 1))
    call = world.call("p", {}, **claim_spec("mine"))
    assert call.pod.kind == "claim"
    scores = world.scores_of(call)
    assert scores["begun"] > scores["empty"]
    assert world.explain()["begun"]["facts"][f"free_{DRIVER}"] == 5


def test_a_claim_of_a_template_is_found_by_the_pod_s_status() -> None:
    pod = {
        "spec": {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "t"}]},
        "status": {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "p-gpus-x7"}]},
    }
    assert list_claims(pod) == ("p-gpus-x7",)
    assert list_claims({"spec": pod["spec"]}) == ("",)


def test_the_driver_of_a_class_is_learned_from_claims() -> None:
    world = build_claim_world()
    world.room.slices.change(build_slice("empty", 4, driver="nic.example.com"))
    world.room.claims.change(build_claim("old", 3, "begun", device_class="large"))
    world.room.claims.change(build_claim("mine", 2, device_class="large"))
    world.room.claims.change(build_claim("strange", 2, device_class="never-seen"))
    find = world.room.find_wanted
    assert find(world.call("p", {}, **claim_spec("mine")).pod) == ((DRIVER, 2),)
    assert find(world.call("q", {}, **claim_spec("strange")).pod) == ()


def test_a_claim_that_is_not_known_leaves_the_host() -> None:
    """Rated by load of the host, in place of not at all."""
    world = build_claim_world()
    world.load("empty", mean_cpu_util=0.95)
    scores = world.scores_of(world.call("p", {}, **claim_spec("nowhere")))
    assert scores["begun"] > scores["empty"]


class CountedSlices(DeviceSlices):
    """Knows how often it was looked through."""

    looks = 0

    def drivers(self) -> set[str]:
        self.looks += 1
        return super().drivers()


def test_pods_that_wait_for_their_claims_do_not_make_the_next_one_dearer() -> None:
    """All slices and claims of the cluster were looked through once for each of them."""
    world = build_claim_world()
    world.room.slices = counted = CountedSlices()
    for number in range(12):
        world.room.claims.change(build_claim(f"c{number}", 1))
        before = counted.looks
        world.scores_of(world.call(f"p{number}", {}, **claim_spec(f"c{number}")))
        assert counted.looks - before <= 2


def test_waves_of_claims_count_before_they_are_allocated() -> None:
    world = build_claim_world()
    for number in range(6):
        world.room.claims.change(build_claim(f"c{number}", 1))
        world.scores_of(world.call(f"p{number}", {}, **claim_spec(f"c{number}")))
    assert world.explain("p5")["begun"]["confidence"] == 0
    assert "0 of 8" in world.explain("p5")["begun"]["why"]


def test_older_forms_of_the_api_are_read() -> None:
    """v1beta1 has no `exactly`, and its devices are below `basic`."""
    request = {"name": "r", "deviceClassName": DRIVER, "count": 2}
    item = {"metadata": {}, "spec": {"devices": {"requests": [request]}}}
    assert parse_claim(item).asked == ((DRIVER, 2),)
    first = {"name": "r", "firstAvailable": [{"deviceClassName": "a", "count": 3}, {"deviceClassName": "b"}]}
    assert parse_claim({"spec": {"devices": {"requests": [first]}}}).asked == (("a", 3),)
    everything = {"exactly": {"deviceClassName": "a", "allocationMode": "All"}}
    assert parse_claim({"spec": {"devices": {"requests": [everything]}}}).asked == (("a", 0),)


@pytest.mark.parametrize(
    "more",
    [
        {"sharedCounters": [{"name": "gpu-0"}]},
        {"devices": [{"name": "a", "basic": {"consumesCounters": [{}]}}]},
        {"devices": [{"name": "a", "allowMultipleAllocations": True}]},
    ],
)
def test_devices_that_share_are_not_counted(more: Mapping[str, Any]) -> None:
    found = parse_slice(build_slice("n", 8, **more))
    assert found is not None
    assert found.devices is None


def test_watches_keep_claims_and_slices() -> None:
    slices, claims = DeviceSlices(), DeviceClaims()
    slices.replace([build_slice("a", 8), build_slice("a", 4, driver="other"), {"metadata": {"name": "x"}}])
    assert slices.totals() == {("a", DRIVER): 8, ("a", "other"): 4}
    slices.remove(build_slice("a", 8))
    assert slices.drivers() == {"other"}
    claims.replace([build_claim("one", 2, "a")])
    assert claims.held() == {(DRIVER, "a"): 2}
    claims.remove(build_claim("one", 2, "a"))
    assert not claims.held()


@examples(100)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "spec",
                        "status",
                        "devices",
                        "requests",
                        "exactly",
                        "allocation",
                        "results",
                        "pool",
                        "nodeName",
                        "driver",
                        "deviceClassName",
                        "count",
                        "firstAvailable",
                        "resourceClaims",
                        "metadata",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_no_object_breaks_the_parsers(item: Any) -> None:
    """forall objects that anybody with rights to them may write."""
    holder = item if isinstance(item, dict) else {"spec": item, "status": item}
    parse_claim(holder)
    parse_slice(holder)
    list_claims(holder)
    count_devices(holder)
    parse_capacity(holder)


# -- what nodes have -------------------------------------------------------


class PagesOfNodes:
    """A client with one page of nodes, or none at all."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_away = False

    def read(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        self.asked += 1
        if self.is_away:
            raise KubernetesAway("nobody answers")
        room = {"allocatable": {GPU: "8", "cpu": "64"}}
        return {"metadata": {}, "items": [{"metadata": {"name": "a"}, "status": room}]}

    def close(self) -> None: ...


def test_whole_nodes_are_listed_where_somebody_asks_for_devices() -> None:
    clock, client, asked, names = TurnableClock(), PagesOfNodes(), [False], ["a"]
    found = NodeCapacities(client, clock, lambda: asked[0], lambda: names)  # type: ignore[arg-type]
    found.step()
    assert (client.asked, found.find("a", GPU)) == (0, None)
    asked[0] = True
    found.step()
    assert (client.asked, found.find("a", GPU), found.find("a", "amd.com/gpu")) == (1, 8, 0)
    clock.advance(60 * 10**9)
    found.step()
    assert client.asked == 1
    names.append("new")
    found.step()
    assert client.asked == 2
    clock.advance(600 * 10**9)
    client.is_away = True
    found.step()
    assert found.reason == "nobody answers"
    assert found.find("a", GPU) == 8
