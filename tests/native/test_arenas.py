"""
Unused pages of Python's own heap go back to the kernel, and nothing else does.

Each test has a process of its own: the arena allocator belongs to all of a process.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nodescope.serve.allocator import find_heap, give_back_memory

HEAP = find_heap()
pytestmark = pytest.mark.skipif(
    HEAP is None or not sys.platform.startswith("linux"), reason="needs the native extension on Linux"
)
IS_KNOWN = (3, 11) <= sys.version_info < (3, 14)
needs_known = pytest.mark.skipif(not IS_KNOWN, reason="the heap of this version of Python is not known")

START = """
import ctypes, gc, random
from pathlib import Path
from nodescope.serve.allocator import find_heap, give_back_memory, settle_allocator

POOL, HEADER = 16384, 48
heap = find_heap()
settle_allocator()

def read_resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

def fill(count, size=64):
    return [bytes([number & 255]) * size for number in range(count)]
"""


def run(script: str, **environment: str) -> str:
    """What the script prints; it has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", START + script],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_known
def test_objects_that_stay_do_not_hold_the_memory_around_them() -> None:
    """Of 500,000 objects one in 5,000 stays, so one or two an arena: Python itself could give nothing back."""
    printed = run("""
before = read_resident()
objects = fill(500_000)
full = read_resident()
stay = objects[::5000]
objects.clear()
gc.collect()
without = read_resident()
give_back_memory()
print(full - before, full - without, full - read_resident())
assert stay == fill(500_000)[::5000]
""")
    grown, given_by_python, given = map(float, printed.split())
    assert grown > 40
    # The list itself is 4 MiB.
    assert given_by_python < 0.25 * grown
    assert given > 0.6 * grown


@needs_known
@pytest.mark.parametrize("malloc", ["pymalloc", "pymalloc_debug"])
def test_objects_are_what_they_were_whatever_comes_and_goes_between(malloc: str) -> None:
    """Objects of all sizes, replaced and removed at random; Python's own checks of its heap see nothing wrong."""
    script = """
chance = random.Random(27)
held, given = {}, 0
for turn in range(24):
    for _ in range(chance.randrange(20_000)):
        key, size = chance.randrange(50_000), chance.randrange(1, 470)
        held[key] = (bytes([key & 255]) * size, size)
    if turn % 4 == 3:
        for key in [key for key in held if chance.random() < 0.9]:
            del held[key]
    given += heap.give_back_pools()
    assert all(text == bytes([key & 255]) * size for key, (text, size) in held.items())
print(given)
"""
    assert int(run(script, PYTHONMALLOC=malloc)) > 2**20


@needs_known
def test_what_was_given_back_is_not_given_back_twice_and_is_used_again() -> None:
    printed = run("""
objects = fill(200_000)
stay = objects[::5000]
del objects
first, again = heap.give_back_pools(), heap.give_back_pools()
objects = fill(100_000, size=200)
assert objects == fill(100_000, size=200)
del objects
print(first, again, heap.give_back_pools())
""")
    first, again, later = map(int, printed.split())
    assert first > 5 * 2**20
    assert again == 0
    assert later > 2**20


@needs_known
@pytest.mark.parametrize(
    ("place", "value"), [(0, 5000), (32, 10**6), (36, 77), (40, 16400), (44, 8)], ids=str
)
def test_an_arena_with_one_odd_header_is_left_alone(place: int, value: int) -> None:
    """
    As if a Python laid its heap out otherwise.

    One number of the header of one unused pool is changed: blocks in use, arena, size class, offsets. The arena of
    this pool gives nothing; with the right number it does.
    """
    printed = run(f"""
objects = fill(300_000)
pool = id(objects[152_500]) & ~(POOL - 1)
stay = objects[::5000]
objects.clear()
number = ctypes.c_uint.from_address(pool + {place})
page = (ctypes.c_char * 4096).from_address(pool + 4096)
before, right = bytes(page), number.value
assert any(before), "the pool was never used"
number.value = {value}
heap.give_back_pools()
is_kept = bytes(page) == before
number.value = right
heap.give_back_pools()
print(is_kept, not any(bytes(page)))
""")
    assert printed.split() == ["True", "True"]


def test_only_versions_that_were_looked_at_are_touched() -> None:
    assert run("print(heap.watch_arenas())").strip() == str(IS_KNOWN)


def test_another_allocator_is_left_alone() -> None:
    assert (
        run("x = fill(100_000); del x; print(heap.give_back_pools())", PYTHONMALLOC="malloc").strip() == "0"
    )


@pytest.mark.parametrize("module", [None, ModuleType("nodescope._native")], ids=["none", "an older one"])
def test_without_a_fitting_extension_there_is_nothing_to_tell(
    module: ModuleType | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nodescope._native", module)
    find_heap.cache_clear()
    try:
        assert find_heap() is None
        give_back_memory()
    finally:
        find_heap.cache_clear()
