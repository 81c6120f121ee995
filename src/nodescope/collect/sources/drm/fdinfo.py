"""
What a graphics driver says of one open device: the lines of /proc/PID/fdinfo/FD.

    drm-driver:     amdgpu
    drm-pdev:       0000:0a:00.0
    drm-client-id:  42
    drm-engine-gfx: 123456789 ns
    drm-engine-capacity-gfx: 2
    drm-resident-vram: 1024 KiB
    drm-cycles-rcs: 28257900            xe counts cycles, beside those that went by
    drm-total-cycles-rcs: 7655183225

https://docs.kernel.org/gpu/drm-usage-stats.html. One client may be open by several
descriptors, of several processes: it counts once, for the process with the lowest pid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

DRIVERS = frozenset({"amdgpu", "xe", "i915", "amdxdna"})
# Keys with a name behind them; the longest first, as `engine` begins `engine-capacity`.
KEYS = ("engine-capacity", "total-cycles", "engine", "cycles", "memory", "resident", "total")
SIZES = {None: 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
NAME_CHARACTERS = 32
# Engines and regions of one client; drivers have some ten.
NAMES_MOST = 64


@dataclass(slots=True)
class DrmClient:
    """One client of one device, as it stands now."""

    driver: str = ""
    device: str = ""
    number: str = ""
    busy_ns: dict[str, float] = field(default_factory=dict)
    capacity: dict[str, float] = field(default_factory=dict)
    cycles: dict[str, float] = field(default_factory=dict)
    cycles_all: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    """Resident bytes by region."""

    @property
    def key(self) -> tuple[str, str]:
        return self.device, self.number


def parse_fdinfo(text: str) -> DrmClient | None:
    """None for what is no client of a driver that we know."""
    if "drm-driver:" not in text:
        return None
    client = DrmClient()
    resident: dict[str, float] = {}
    allocated: dict[str, float] = {}
    places: Mapping[str, dict[str, float]] = {
        "engine": client.busy_ns,
        "engine-capacity": client.capacity,
        "cycles": client.cycles,
        "total-cycles": client.cycles_all,
        "resident": resident,
        "memory": allocated,
    }
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if not key.startswith("drm-") or not words:
            continue
        read_line(client, places, key.removeprefix("drm-"), words)
    # drm-memory- is the older word for what is resident.
    client.memory = resident or allocated
    is_known = client.driver in DRIVERS and client.number
    return client if is_known else None


def read_line(client: DrmClient, places: Mapping[str, dict[str, float]], key: str, words: list[str]) -> None:
    if key == "driver":
        client.driver = words[0]
    elif key == "pdev":
        client.device = words[0].lower()
    elif key == "client-id":
        client.number = words[0]
    else:
        for prefix in KEYS:
            name = key.removeprefix(f"{prefix}-")
            if name != key and prefix in places:
                add_number(places[prefix], name, words)
                return


def add_number(found: dict[str, float], name: str, words: list[str]) -> None:
    unit = words[1] if len(words) > 1 else None
    times = 1.0 if unit == "ns" else SIZES.get(unit)
    if times is not None and words[0].isdigit() and len(words[0]) < 20 and len(found) < NAMES_MOST:
        name = name[:NAME_CHARACTERS]
        found[name] = max(found.get(name, 0.0), float(words[0]) * times)
